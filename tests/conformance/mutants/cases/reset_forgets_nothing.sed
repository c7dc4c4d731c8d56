# file: pool/pool.c
# red: T13 T14 T15
# pool_reset_backoff() does nothing
s/^        pool__reset_host_backoff\(host\);$/        (void)host;/
