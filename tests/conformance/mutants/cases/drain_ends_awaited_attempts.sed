# file: pool/host.c
# red: T122
# a drain ends attempts for which somebody waits
/^int pool_host_drain/,/^}/ s/^    if \(!host->line.n\)$/    if (true)/
