# file: pool/verdict.c
# READY alone forgives
/^void pool__succeeded/,/^\}/ s/^    host->failed = host->holding = false;/&\n    host->failures = 0;/
