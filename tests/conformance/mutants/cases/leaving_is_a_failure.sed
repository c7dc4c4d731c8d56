# file: link/ends.c
# red: T54 T114
# a link whose peer left in order has failed
/^enum link_kind_of_end/,/^}/ s/^    if \(link__is_opening\(link\)\)$/    if (link__state(link) == LINK_DRAINING)\n        return LINK_END_FAILURE;\n&/
