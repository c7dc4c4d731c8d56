# file: pool/host.c
# a host that is not to be is counted
s/^    if \(!host->hh\.tbl\) \{/&\n        pool->n_hosts++;/
