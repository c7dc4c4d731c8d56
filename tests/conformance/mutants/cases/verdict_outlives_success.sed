# file: pool/verdict.c
# red: XH15
# a probe that succeeds leaves the verdict
/^void pool__succeeded/,/^}/ s/host->failed = host->holding = false;/host->holding = false;/
