# file: link/lease.c
# red: T117 VB6 XH10
# where nothing was sent it is said that it may have been
s/^        return POOL_NOT_SENT;$/        return POOL_SENT_NO_ANSWER;/
