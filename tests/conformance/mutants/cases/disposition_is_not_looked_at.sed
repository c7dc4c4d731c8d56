# file: pool/release.c
# red: XE9
# a disposition that there is not is taken
s/^    if \(disposition != POOL_REUSE && disposition != POOL_DISCARD\)$/    if (false)/
