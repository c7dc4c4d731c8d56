# file: pool/target.c
# red: T45
# a target of no hosts is idle
/^    if \(!target->pick.n\)$/,/;/ s/return LINK_BACKOFF;/return target->known ? LINK_IDLE : LINK_BACKOFF;/
