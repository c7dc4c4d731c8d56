# file: pool/acquire.c
# red: VA9 XF14
# a draining pool takes new leases
s/pool->draining \|\| pool->freed \? LINKPOOL_ECLOSED : 0/pool->freed ? LINKPOOL_ECLOSED : 0/
