# file: pool/pool.c
# red: XC19
# the loop turns as long as somebody waits
s/^    if \(pool->to_tell \|\| pool->groups\)$/    if (pool->to_tell || pool->groups || pool->n_waiting)/
