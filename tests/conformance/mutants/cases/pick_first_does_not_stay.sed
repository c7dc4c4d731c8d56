# file: pool/pickers.c
# red: T23 T24 T42
# pick_first begins at the top of each list
s/^    if \(!state->current\)$/    if (true)/
