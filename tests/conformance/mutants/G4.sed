# file: link/ends.c
s/LINK_ANSWERED \| LINK_SHUT/LINK_SHUT/
