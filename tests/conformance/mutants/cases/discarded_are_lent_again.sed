# file: link/lease.c
# red: T86 XC22
# a link that was discarded is lent again
s/^    if \(discard \|\| link->bits/    if (link->bits/
