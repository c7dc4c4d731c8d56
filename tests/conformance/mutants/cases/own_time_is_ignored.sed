# file: pool/line.c
# red: T10 T68 XC6 XC20
# a lease's own time to wait is ignored
s/claim->has_own_time = lease->timeout > 0;/claim->has_own_time = false;/
