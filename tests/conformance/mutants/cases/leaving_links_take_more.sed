# file: pool/places.c
# red: T126 XK11
# a leaving link takes new streams
/^    case LINK_RESETTING:$/,/^    case LINK_BACKOFF:$/ s/^        return PLACE_BUSY;$/        return link__state(link) == LINK_DRAINING \&\& link__has_room(link) ? PLACE_PARTIAL : PLACE_BUSY;/
