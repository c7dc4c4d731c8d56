# file: pool/pool.c
# red: XF4
# a second drain of the pool is taken
s/^    if \(pool->draining \|\| pool->freed\)$/    if (pool->freed)/
