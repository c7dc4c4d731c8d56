# file: pool/acquire.c
# red: XM1
# spread_links takes the link used last too
s/^    return idle && pool__options\(host\)->spread_links \? idle->prev : /    return false \&\& idle ? idle->prev : /
