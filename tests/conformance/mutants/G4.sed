# file: link/link.c
s/LINK_ANSWERED \| LINK_SHUT/LINK_SHUT/
