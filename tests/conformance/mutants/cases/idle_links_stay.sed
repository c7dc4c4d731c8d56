# file: pool/host.c
# red: T105 T106 T108 XA20 XG1 XG4 XG8 XG10 XG15
# idle links stay
/^static void close_idle/,/^}/ s/^    while \(timeout > 0 && /    while (false \&\& /
