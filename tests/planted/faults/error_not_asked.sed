# file: link/transport_tcp.c
# what SO_ERROR says is not heard
s/^    return error \? failed\(tl, error, NULL\) : TRANSPORT_UP;/    return TRANSPORT_UP;/
