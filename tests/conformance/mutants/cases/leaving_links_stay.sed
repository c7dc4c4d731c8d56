# file: link/link.c
# red: T120 XK11
# a leaving link stays when its last stream is back
/^void link__drained/,/^}/ s/^    if \(link__state\(link\) != LINK_DRAINING \|\|.*$/    if (link)/
