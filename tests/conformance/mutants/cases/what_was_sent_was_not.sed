# file: link/lease.c
# red: T97 VB6 XA19 XH9
# what was sent is said to be safe to repeat
s/^    return is_answered\(channel, protocol\) \? POOL_PARTIAL : POOL_SENT_NO_ANSWER;/    return is_answered(channel, protocol) ? POOL_PARTIAL : POOL_NOT_SENT;/
