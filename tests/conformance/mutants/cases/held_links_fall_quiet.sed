# file: pool/host.c
# red: T96 T108 T113 XG15
# a link that is held falls quiet
/^static void close_idle/,/^}/ s/^    while \(timeout > 0 && \(coldest/    while (timeout > 0 \&\& host->lists[PLACE_BUSY] \&\& host->lists[PLACE_BUSY]->idle_since + timeout <= now)\n        link__end(host->lists[PLACE_BUSY], LINK_IDLE_TIMEOUT, 0);\n&/
