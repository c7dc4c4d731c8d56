# file: pool/serve.c
# red: XC13 XD1 XD12
# a return that serves one tells the others as well
s/^            pool__give\(lease, channel\);$/            (pool__give(lease, channel), pool__fail_line(\&host->line, LINKPOOL_EUNAVAILABLE, false));/
