# file: pool/verdict.c
# red: VG3
# the limit of opening is what the server before could take
s/^    if \(host->connect_limit <= first\)$/    if (true)/
