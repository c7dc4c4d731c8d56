# file: link/protocol.c
# red: T117
# streams that the leaving peer denies are not said to be safe to repeat
s/LINK_CLOSED_BY_PEER, 0, LINK_LOST_UNDONE\);/LINK_CLOSED_BY_PEER, 0, LINK_LOST_BY_PEER);/
