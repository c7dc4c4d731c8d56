# file: pool/acquire.c
# red: VB1 XA4 XA10
# a link lent again in the turn of its return is not looked at
s/^    if \(!same_turn\)$/    if (same_turn || true)/
