# file: link/link.c
# the handshake has a deadline of its own
/^void link__start_protocol/,/^\}/ s/arm\(link, link->since \+ link->owner->terms->connect_timeout - .*$/arm(link, link->owner->terms->connect_timeout);/
