# file: link/framed_input.c
# red: XK10 T119
# a peer that leaves and says that something is wrong has left in order
s/LINK_SENT_AWAY, why/LINK_CLOSED_BY_PEER, NULL/
