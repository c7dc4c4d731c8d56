# file: pool/pool.c
# red: T81 XC22
# the end of a link is not looked at by those who wait
/^static void on_settled/,/^}/ s/^    pool__want_host\($/    (void)(/
