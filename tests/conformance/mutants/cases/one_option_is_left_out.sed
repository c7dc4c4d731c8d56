# file: pool/options.c
# red: XB6
# drain_timeout is left out of the match
s/ && a->drain_timeout == b->drain_timeout &&/ \&\&/
