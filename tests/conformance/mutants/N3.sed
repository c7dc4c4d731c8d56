# file: backoff/backoff.c
# the spread is not its own
/^const struct backoff_policy backoff_linkd = /,/^\};/ s/\.spread = 0\.2,/.spread = 0.25,/
