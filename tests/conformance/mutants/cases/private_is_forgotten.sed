# file: link/lease.c link/internal.h
# red: VA1
# a link that carries an identity is lent again
s/\(LINK_SHUT \| LINK_PRIVATE\)/(LINK_SHUT)/
s/\(LINK_SHUT \| LINK_PRIVATE \| LINK_UNREAD/(LINK_SHUT | LINK_UNREAD/
