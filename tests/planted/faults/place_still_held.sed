# file: pool/host.c
# the places of a host that is not to be stay taken
/^    if \(!host->hh\.tbl\) \{/,/^    \}/ s/drop_heaps\(host\);//
