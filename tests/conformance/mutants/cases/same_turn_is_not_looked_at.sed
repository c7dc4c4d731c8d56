# file: pool/acquire.c
# red: VB1 XA4 XA10
# a link lent again in the turn of its return is not looked at
s/^    if \(!unsure && !may_have_news\(pool, link\)\)$/    if (!unsure || true)/
