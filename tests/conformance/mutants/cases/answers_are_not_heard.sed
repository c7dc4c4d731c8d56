# file: link/heartbeat.c
# red: T134 XK16
# an answer is no sign of life
/^void link__heard\(/,/^\}/ s/asking = false;/asking = true;/
