# file: link/fsm.c
# stop of a link that shakes hands takes it out of service instead of to rest
/^    \[LINK_HANDSHAKING\] = /,/^    \},/ s/(\[LINK_EV_STOP\] += GO\()LINK_IDLE/\1LINK_OFFLINE/
