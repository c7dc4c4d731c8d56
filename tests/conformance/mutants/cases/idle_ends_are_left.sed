# file: link/io.c
# red: T43 XA11 XA13 XA15
# an end of file on an idle link is left for the next holder
/^    case TRANSPORT_EOF:$/ s/$/\n        link__watch(link, 0);\n        return true;/
