# file: link/protocol.c
# red: T114 T120 T126 XK11
# a peer that leaves ends those out
s/^    link__drained\(link\);$/    link__end(link, LINK_CLOSED_BY_PEER, 0);/
