# file: pool/target.c
# red: T10
# a target whose list is not known is idle though somebody waits
s/return target->line.n \? LINK_CONNECTING : LINK_IDLE;/return LINK_IDLE;/
