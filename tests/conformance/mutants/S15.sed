# file: link/heartbeat_policy.c
# a silent period more
/heartbeat_edge = /,/;/ s/\.misses = 2/.misses = 3/
