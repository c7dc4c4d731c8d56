# file: link/io.c
# red: T87 VB1 XA10
# bytes on an idle link are left for the next holder
/^    case TRANSPORT_BYTES:$/ s/$/\n        return true;/
