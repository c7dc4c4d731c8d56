# file: backoff/backoff.c
# there is no floor
/^const struct backoff_policy backoff_signalr = /,/^\};/ s/\.floor = 0\.1,/.floor = 0.05,/
