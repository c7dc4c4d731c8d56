# file: link/lease.c link/internal.h
# red: VB1 XA1 XA2 XA3
# a link whose holder sent last is lent again
s/ \|\| \(link->bits & LINK_SENT_LAST && !one_way\)\)/ || (link->bits \& LINK_SENT_LAST \&\& false \&\& one_way))/
s/LINK_UNREAD \| LINK_SENT_LAST \| LINK_LENT\)\) && !link->fault/LINK_UNREAD | LINK_LENT)) \&\& !link->fault/
