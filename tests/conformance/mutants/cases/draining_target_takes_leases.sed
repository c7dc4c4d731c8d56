# file: pool/acquire.c
# red: T115
# a draining target takes new leases
s/^    if \(target->draining\)$/    if (target->removed)/
