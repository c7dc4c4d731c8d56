# file: pool/line.c
# red: T67 T70 XC23
# those who wait for ready fail with the others when their host goes down
s/if \(fail_fast_alone && lease->flags & POOL_WAIT_FOR_READY\)/if (false)/
