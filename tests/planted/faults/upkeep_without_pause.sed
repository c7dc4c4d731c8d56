# file: pool/opening.c
# what is kept up is tried again at once where there is no memory
s/^        host->keep_after = pool__now\(pool\) \+ upkeep_retry;//
