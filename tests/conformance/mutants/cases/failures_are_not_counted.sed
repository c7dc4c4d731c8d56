# file: pool/verdict.c
# red: T9 VG1 XH1 XH3 XH7
# each failure is the first
s/\.attempt = host->failures,/.attempt = 1,/
