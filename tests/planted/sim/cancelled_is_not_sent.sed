# file: pool/call_link.c
# a call that is given up after its request has gone is told that it was not sent
s/== CALL_SENT \? POOL_SENT_NO_ANSWER : POOL_NOT_SENT/== CALL_SENT ? POOL_NOT_SENT : POOL_NOT_SENT/
