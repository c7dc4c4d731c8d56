# file: pool/host.c
# a host that is not to be keeps the settings it was made with
s/^    if \(!host->hh\.tbl\) \{/&\n        settings->refs++;/
