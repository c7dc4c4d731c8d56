# file: pool/host.c
# red: XC9
# a host that is back in service does not look at its lines
/^int pool_host_start/,/^}/ s/^    pool__(bring_back|host_changed)\(host\);$//
