# file: pool/verdict.c
# red: VG1 XH7 XK10
# a link that comes up forgets all failures
s/^    host->connected\+\+;$/&\n    host->failures = 0;/
