# file: pool/host.c
# what is too long idle is closed though it is leased
/^static void close_idle/,/^\}/ s/coldest = host->lists\[PLACE_IDLE\]->prev;/coldest = host->lists[PLACE_BUSY] ? host->lists[PLACE_BUSY]->prev : host->lists[PLACE_IDLE]->prev;/
