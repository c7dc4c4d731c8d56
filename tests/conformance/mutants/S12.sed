# file: backoff/backoff.c
# the cap is not its own
/^const struct backoff_policy backoff_edge = /,/^\};/ s/\.cap = 60,/.cap = 64,/
