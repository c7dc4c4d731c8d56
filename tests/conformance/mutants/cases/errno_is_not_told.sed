# file: pool/explain.c
# red: T57 T73 XH8
# a lease that failed has no errno
s/^    lease->system_errno = host->owner.last_errno;$//
