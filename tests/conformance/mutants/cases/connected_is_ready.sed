# file: link/link.c
# red: T1 T2 T3 T4 XK2
# a link is ready before its handshake
s/^        protocol->start\(&link->protocol\);$/        protocol->start(\&link->protocol), link__ready(link);/
