# file: pool/host.c
# a pin keeps no host
/^static bool is_kept/,/^\}/ s/return host->pins \|\| /return /
