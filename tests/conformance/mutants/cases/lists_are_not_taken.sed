# file: pool/members.c
# red: T22 T38 T41 T110
# a new list is not taken
s/^    pool__members_put\(target, &list\);$/    pool__members_give_up(target->pool, \&list);/
