# file: pool/release.c
# red: T89
# a link whose uses are up is said to have been drained
s/return LINK_USED_UP;/return LINK_DRAINED;/
