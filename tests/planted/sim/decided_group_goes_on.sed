# file: pool/fanout.c
# the calls of a group that is decided go on
s/^    give_up_the_rest\(group, otherwise == LINKPOOL_ETIMEDOUT .*/    (void)give_up_the_rest;/
