# file: link/link.c
# red: XK1
# the handshake has the whole connect_timeout again
s/arm\(link, link->since \+ link->owner->terms->connect_timeout - link__now\(link__core\(link\)\)\);/arm(link, link->owner->terms->connect_timeout);/
