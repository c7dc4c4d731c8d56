# file: pool/verdict.c
# red: T14
# an attempt under way at a reset is not forgiven
/^void pool__reset_host_backoff/,/^}/ s/^    count_to_here\(host\);$//
