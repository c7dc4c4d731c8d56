# file: pool/host.c
s/coldest->idle_since \+ timeout <= now/coldest->idle_since + 2 * timeout <= now/
