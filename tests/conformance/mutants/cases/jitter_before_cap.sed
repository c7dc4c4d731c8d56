# file: backoff/backoff.c
# red: VG2
# jitter goes over the cap
s/^        return delay \/ 2 \+ delay \/ 2 \* draw;$/        return delay + delay \/ 2 * draw;/
