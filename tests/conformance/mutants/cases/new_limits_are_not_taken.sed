# file: pool/host.c
# red: VG6
# a lowered limit of opening is not taken
s/^    if \(host->connect_limit > options->max_connecting\)$/    if (!host->connect_limit)/
