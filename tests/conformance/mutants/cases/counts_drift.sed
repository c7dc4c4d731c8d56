# file: pool/figures.c
# red: XE1
# what is connecting is counted as idle too
s/\.idle = pool__idle\(pool\),/.idle = pool__idle(pool) + pool->n_opening,/
