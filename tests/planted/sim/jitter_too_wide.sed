# file: backoff/backoff.c
# half jitter goes down to nothing
s/return delay \/ 2 \+ delay \/ 2 \* draw;/return delay * draw;/
