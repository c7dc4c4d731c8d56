# file: pool/members.c
# red: T24 T39 T42 XI3
# a new list ends the idle links of those that stay
/^static void drop_old/,/^}/ s/^        if \(!is_member\(target, old->hosts\[i\]\)\)$/        while (old->hosts[i]->lists[PLACE_IDLE])\n            link__end(old->hosts[i]->lists[PLACE_IDLE], LINK_DRAINED, 0);\n    for (size_t i = 0; i < old->n; i++)\n&/
