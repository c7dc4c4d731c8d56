# file: pool/target.c
# red: T115
# a second drain of a target is taken
s/^    if \(target->draining \|\| target->removed \|\| pool->freed\)$/    if (target->removed || pool->freed)/
