# file: link/heartbeat.c
# a new attempt knows what the last one knew
/^void link__heartbeat_reset\(/,/^\}/ s/if \(of\(link\)\)/if (of(link) \&\& !link->id)/
