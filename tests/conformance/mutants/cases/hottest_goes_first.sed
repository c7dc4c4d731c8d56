# file: pool/host.c
# red: XG14
# the link used last goes first
/^static void close_idle/,/^}/ s/^        link__end\(coldest, LINK_IDLE_TIMEOUT, 0\);$/        link__end(host->lists[PLACE_IDLE], LINK_IDLE_TIMEOUT, 0);/
