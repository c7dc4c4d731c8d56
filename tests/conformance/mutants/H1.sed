# file: link/heartbeat.c
# what is lost for silence is told otherwise
/^static bool miss\(/,/^\}/ s/LINK_HEARTBEAT_LOST/LINK_TIMED_OUT/
