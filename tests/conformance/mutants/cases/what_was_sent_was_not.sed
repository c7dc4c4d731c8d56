# file: link/lease.c
# red: T97 VB6 XA19 XH9
# what was sent is said to be safe to repeat
s/return sent \? POOL_SENT_NO_ANSWER : POOL_NOT_SENT;/return POOL_NOT_SENT;/
