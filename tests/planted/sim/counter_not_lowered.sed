# file: pool/pool.c
# an attempt that fails is counted as under way
s/ - is_attempt\(from\);/ - (is_attempt(from) \&\& to != LINK_BACKOFF);/
