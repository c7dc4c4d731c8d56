# file: pool/acquire.c
# red: XM1
# spread_links takes the link used last too
s/return pool__options\(host\)->spread_links \? .*;/return host->lists[PLACE_IDLE];/
