# file: pool/pool.c
# red: T123 T127 XF4 XF7 XF13 XF14
# a drain does not let those out finish
s/^    if \(timeout > 0\)$/    if (timeout > 0 \&\& !pool)/
