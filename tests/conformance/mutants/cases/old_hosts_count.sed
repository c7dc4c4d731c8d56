# file: pool/members.c
# red: T27 T38 T45
# the states of hosts that left the list are counted still
/memset\(target->in_state, 0/d
