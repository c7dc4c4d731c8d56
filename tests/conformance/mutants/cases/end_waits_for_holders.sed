# file: pool/pool.c
# red: T129 XF9 XF10
# the pool's end leaves what is held to its holder
/^static void stop_links/,/^}/ s/^        while \(\(link = host->lists\[place\]\)\) \{$/        while (place != PLACE_BUSY \&\& (link = host->lists[place])) {/
