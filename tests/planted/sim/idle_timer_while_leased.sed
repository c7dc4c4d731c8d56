# file: pool/host.c
# what is too long idle is closed though it is leased
/^static void close_idle/,/^\}/ s/coldest = pool__coldest\(host\)/coldest = host->lists[PLACE_BUSY] ? host->lists[PLACE_BUSY]->prev : pool__coldest(host)/
