# file: pool/acquire.c
# red: XE13
# a lease served at once is not counted
/^        pool->acquired_ready\+\+;$/d
