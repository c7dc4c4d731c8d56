# file: pool/pool.c
# red: XC19
# the loop turns as long as somebody waits
s/^    if \(pool->to_tell\)$/    if (pool->to_tell || pool->n_waiting)/
