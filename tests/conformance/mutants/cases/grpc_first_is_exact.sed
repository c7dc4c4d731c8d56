# file: backoff/backoff.c
# red: T18
# the first delay of the gRPC preset is exact
s/^    delay = spread_out\(&whole, grow\(&whole, seen.attempt\), draw\);$/    delay = seen.attempt == 1 ? whole.base : spread_out(\&whole, grow(\&whole, seen.attempt), draw);/
