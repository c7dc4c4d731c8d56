# file: pool/acquire.c
# red: XM1
# spread_links takes the link used last too
s/^    if \(idle && pool__options\(host\)->spread_links\)$/    if (false \&\& idle)/
