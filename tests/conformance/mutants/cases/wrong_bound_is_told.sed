# file: pool/acquire.c
# red: T71 T98
# the bound that is told is another than was met
s/full\(pool, lease, POOL_BOUND_LINE\)/full(pool, lease, POOL_BOUND_POOL_WAITING)/
