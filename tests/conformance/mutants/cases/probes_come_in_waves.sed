# file: link/heartbeat_policy.c
# red: XK16
# links born together are asked together
s/\.jitter = 0\.1/.jitter = 0/
