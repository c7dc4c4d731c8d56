# file: pool/pool.c
# red: T123 T127 XF4 XF13 XF14
# the pool is drained while leases are out
s/^    if \(pool->n_links \|\| pool->n_leased \|\| pool->n_waiting \|\| pool->to_tell\)$/    if (pool->to_tell)/
