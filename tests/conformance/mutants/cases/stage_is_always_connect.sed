# file: pool/explain.c
# red: T83 XC14 XD7
# what a lease waited for is always said to be a connect
s/^    if \(ready\)$/    if (true)\n        return POOL_STAGE_CONNECT;\n    if (ready)/
