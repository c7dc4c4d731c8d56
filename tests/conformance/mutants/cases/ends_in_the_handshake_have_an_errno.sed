# file: link/protocol.c
# red: XK3
# an end of file in the handshake has an errno
s/^        link__end\(link, LINK_CLOSED_BY_PEER, 0\);$/        link__end(link, LINK_CLOSED_BY_PEER, 104);/
