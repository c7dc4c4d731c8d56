# file: link/words.c
# red: T119
# the peer's words are not kept
s/^    if \(owner->fail_reason != reason\)$/    if (true)/
