# file: backoff/backoff.c
# the spread is not its own
/^const struct backoff_policy backoff_heartbeat = /,/^\};/ s/\.spread = 0\.3,/.spread = 0.25,/
