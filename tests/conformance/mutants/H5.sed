# file: link/heartbeat_policy.c
# an answer is awaited too long
/heartbeat_adaptive = /,/^\s*\.max/ s/\.timeout = 5/.timeout = 5.1/
