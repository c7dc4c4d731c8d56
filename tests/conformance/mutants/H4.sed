# file: link/heartbeat_policy.c
# a miss too many is allowed
s/\.misses = 4/.misses = 5/
