# file: pool/host.c
# red: T77 T123
# a drain keeps attempts that nobody waits for
/^void pool__close_unneeded/,/^}/ s/^    while \(host->lists\[PLACE_OPENING\]\)$/    while (false)/
