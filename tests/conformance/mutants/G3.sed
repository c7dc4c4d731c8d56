# file: backoff/backoff.c
# the factor is not its own
/^const struct backoff_policy backoff_grpc = /,/^\};/ s/\.factor = 1\.6,/.factor = 1.5,/
