# file: pool/target.c
s/target->stuck \? LINK_BACKOFF : LINK_CONNECTING/LINK_CONNECTING/
