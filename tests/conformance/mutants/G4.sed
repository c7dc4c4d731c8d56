# file: link/link.c
s/link->bits & LINK_ANSWERED \|\| //
