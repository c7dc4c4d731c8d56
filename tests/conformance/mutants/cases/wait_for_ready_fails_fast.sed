# file: pool/acquire.c
# red: XC9 XH8
# a lease that would wait for ready fails fast
s/^    if \(is_down\(line\) && !\(lease->flags & POOL_WAIT_FOR_READY\)\) \{/    if (is_down(line)) {/
