# file: link/lease.c
# red: VB6 XH9
# a part of an answer is said to be none
/^enum pool_fate link__fate/,/^}/ s/^    if \(sent && answered\)$/    if (false)/
