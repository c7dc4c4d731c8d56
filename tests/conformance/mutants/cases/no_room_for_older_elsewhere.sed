# file: pool/opening.c
# red: XD4
# a link that comes back never makes room for another host's waiter
/^bool pool__must_make_room/,/^}/ s/^    return !own .*$/    return false;/
