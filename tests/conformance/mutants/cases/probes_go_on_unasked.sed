# file: pool/verdict.c
# red: T73
# a failing host is tried again though nobody asks
s/^    if \(!is_asked_for\(host\)\) \{$/    if (false) {/
