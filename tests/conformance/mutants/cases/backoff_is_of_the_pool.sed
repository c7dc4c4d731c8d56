# file: pool/verdict.c
# red: T35
# a host's backoff grows with the failures of all
s/\.attempt = host->failures,/.attempt = (unsigned)pool__of(host)->opened,/
