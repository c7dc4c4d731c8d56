# file: link/lease.c
# red: XA6
# where a holder had paused reading, it stays paused
s/^    if \(link->interest != LINKPOOL_READ\)$/    if (false)/
