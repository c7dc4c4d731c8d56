# file: pool/verdict.c
# red: XH5
# the success of one host forgets the failures of all
s/^    host->connected\+\+;$/&\n    for (struct pool_host *other = pool__of(host)->hosts; other; other = other->hh.next)\n        if (other != host)\n            other->failures = 0;/
