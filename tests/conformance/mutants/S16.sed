# file: link/fsm.c
# a link that shakes hands and is to rest waits instead
/^    \[LINK_HANDSHAKING\] = /,/^    \},/ s/(\[LINK_EV_END_REST\] += GO\()LINK_IDLE/\1LINK_BACKOFF/
