# file: pool/members.c
# red: T45
# what failed by an empty list fails on by the next
s/^    target->stuck = false; .*$/    target->stuck = target->stuck || target->state == LINK_BACKOFF;/
