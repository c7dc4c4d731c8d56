# file: pool/host.c
# red: T122 XF3
# a drain waits for idle links
/^void pool__close_unneeded/,/^}/ s/^    while \(\(link = first_unneeded\(host\)\)\)$/    while (false)/
