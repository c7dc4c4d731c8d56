# file: pool/acquire.c
# red: XA7
# the out members of a lease are those of its last use
/memset\(&lease->channel, 0/d
