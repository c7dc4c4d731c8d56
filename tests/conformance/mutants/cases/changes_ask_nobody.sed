# file: link/heartbeat.c
# red: XI8
# links are asked in their own time when the network has changed
/^bool link__doubt\(/,/^\}/ s/= DOUBT_CAST;/= DOUBT_NONE;/
