# file: pool/members.c
# red: T24 T39 T42 XI3
# a new list ends the idle links of those that stay
/^static void drop_old/,/^}/ s/^    size_t n = sort_out\(old, list\);.*$/    for (size_t i = 0; i < old->n; i++)\n        while (old->hosts[i]->lists[PLACE_IDLE])\n            link__end(old->hosts[i]->lists[PLACE_IDLE], LINK_DRAINED, 0);\n&/
