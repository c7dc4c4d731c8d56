# file: pool/pool.c
# red: T69 T129 T130
# the pool's end is told after pool_free() has returned, that is, not at all
/^void pool_free/,/^}/ s/^    while \(pool__tell_one\(pool, pool->decided\)\)$/    while (false)/
