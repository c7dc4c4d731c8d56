# file: pool/host.c
# of a host's two timers one stays taken
/^no_coldest:/,/^no_timer:/ s/link__heap_drop\(&pool->core\.timers\);/;/
