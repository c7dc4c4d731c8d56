# file: pool/opening.c
# what is kept up is tried again at once where there is no memory
s/^        pool__keep_after\(host, upkeep_retry\);//
