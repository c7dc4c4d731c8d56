# file: pool/host.c
# red: XG14
# when one idle link is due all idle links go
/^static void close_idle/,/^}/ s/^    struct link \*coldest;$/&\n    bool any = false;/
/^static void close_idle/,/^}/ s/ && coldest->idle_since \+ timeout <= now / \&\& (any = any || coldest->idle_since + timeout <= now) /
