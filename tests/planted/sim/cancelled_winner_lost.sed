# file: pool/release.c
# what a cancelled winner had won goes to nobody
/^static void pass_on/,/^\}/ s/^    give_back\(.*$/    pool__of(pool__host_of(link))->core.depth += 0;/
