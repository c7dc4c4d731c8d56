# file: link/lease.c
# red: VB6 XH9
# a part of an answer is said to be none
s/is_answered\(channel, protocol\) \? POOL_PARTIAL : POOL_SENT_NO_ANSWER/POOL_SENT_NO_ANSWER/
