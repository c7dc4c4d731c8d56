# file: link/ends.c
# red: T5 T26
# a peer that closes an idle link in order has failed
s/^    if \(reason == LINK_CLOSED_BY_PEER\) \{$/    if (reason == LINK_CLOSED_BY_PEER)\n        return LINK_END_FAILURE;\n    if (false) {/
