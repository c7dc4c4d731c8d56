# file: link/protocol.c
# red: T117
# streams that the leaving peer denies are not said to be safe to repeat
s/link->retire, 0, LINK_LOST_UNDONE\);/link->retire, 0, LINK_LOST_BY_PEER);/
