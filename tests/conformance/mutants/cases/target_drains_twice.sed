# file: pool/target.c
# red: T115
# a second drain of a target is taken
s/^    if \(target->draining \|\| pool->freed\)$/    if (pool->freed)/
