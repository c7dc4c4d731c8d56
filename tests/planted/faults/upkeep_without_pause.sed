# file: pool/opening.c
# what is kept up is tried again at once where there is no memory
s/^        pool__pause_upkeep\(host\);//
