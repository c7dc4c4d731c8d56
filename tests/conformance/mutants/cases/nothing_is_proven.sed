# file: pool/verdict.c
# red: XH7
# failures are never forgotten
/^void pool__proven/,/^}/ s/^        host->failures = 0;$/        (void)0;/
