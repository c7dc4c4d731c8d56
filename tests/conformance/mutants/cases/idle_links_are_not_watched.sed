# file: link/link.c link/lease.c
# red: XA6 XA13 XK4
# a link that nobody holds is not listened to
/^static void serve\(/,/^}/ s/^    link__watch\(link, LINKPOOL_READ\);$/    link__watch(link, 0);/
s/^    if \(link->interest != LINKPOOL_READ\)$/    if (false)/
