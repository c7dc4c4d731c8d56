# file: pool/release.c
# red: XG14
# the link that has been idle longest is lent first
s/DL_PREPEND\(host->lists\[PLACE_IDLE\], link\);/DL_APPEND(host->lists[PLACE_IDLE], link);/
