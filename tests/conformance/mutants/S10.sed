# file: link/alone.c
# a stop while connecting lets the connect go on
/^void link_stop\(/,/^\}/ s/^    link__stop\(link, LINK_STOPPED\);$/    if (link__state(link) != LINK_CONNECTING)\n        link__stop(link, LINK_STOPPED);/
