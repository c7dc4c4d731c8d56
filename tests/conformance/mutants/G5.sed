# file: pool/acquire.c
s/if \(is_down\(line\) && !\(lease->flags & POOL_WAIT_FOR_READY\)\)/if (false)/
