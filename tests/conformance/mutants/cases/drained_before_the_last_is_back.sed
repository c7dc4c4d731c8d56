# file: pool/pool.c
# red: T115 XF13
# a target is drained while leases are out
s/!target->draining \|\| target->n_held \|\| target->line.n\)/!target->draining || target->line.n)/
