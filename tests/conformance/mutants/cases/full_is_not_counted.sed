# file: pool/acquire.c
# red: T71 T98
# leases over a bound are not counted
/^    pool->full\+\+;$/d
