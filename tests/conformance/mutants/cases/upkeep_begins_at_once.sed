# file: pool/opening.c
# red: XD11
# the first of what is kept up is dialled without a draw
s/^        pool__spread_upkeep\(host\);$/        (void)0;/
