# file: link/heartbeat.c
# red: T131 T133 XA16 XK8
# answers that are missed end no link
s/history\.misses >= link->owner->terms->heartbeat\.misses/history.misses > UINT16_MAX/
