# file: backoff/backoff.c
# red: VG2
# the power of two is shifted, and wraps
s/^    return delay < policy->cap \? delay : policy->cap;$/    delay = policy->base * (double)(int)(1u << ((attempt - 1) % 32));\n&/
