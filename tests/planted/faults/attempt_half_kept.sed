# file: link/attempt.c
# an attempt without a handle is taken to have one
/^    if \(!entry\)$/,/return none;/ s/return none;/return link__set_bits(link, 0, LINK_KEPT), none;/
