# file: pool/line.c
# red: XC16
# a time-out in line is counted against the host
s/^    claim->pool->timed_out\+\+;$/&\n    if (claim->line->host)\n        claim->line->host->failures_seen++;/
