# file: pool/verdict.c
# red: XH15
# a host that was connected once does not fail again
s/^    host->failed = true;$/    host->failed = host->connected == 0;/
