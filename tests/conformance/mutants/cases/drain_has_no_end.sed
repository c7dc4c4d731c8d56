# file: pool/pool.c
# red: XF2 XF4
# a drain waits for its holders however long
s/pool__now\(pool\) \+ timeout\);/INFINITY);/
