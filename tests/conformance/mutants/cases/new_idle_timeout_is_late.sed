# file: pool/host.c
# red: XA20
# a new idle_timeout holds for later links only
/^int pool_host_set_options/,/^}/ s/^    pool__arm_host\(host\);$/    (void)0;/
