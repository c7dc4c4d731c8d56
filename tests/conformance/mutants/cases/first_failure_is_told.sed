# file: pool/explain.c
# red: T57
# a lease is told the failure that was first
s/host->failed_at > latest->failed_at/host->failed_at < latest->failed_at/
