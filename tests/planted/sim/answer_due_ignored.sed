# file: link/lease.c
# a link whose holder sent last is lent again
s/ \|\| \(link->bits & LINK_SENT_LAST && !one_way\)\)/ \&\& (one_way || true))/
