# file: pool/host.c
# red: XG1 XG11
# after a sweep the next is not planned
/^void pool__host_rang/,/^}/ s/^        pool__arm_host\(host\);$/        (void)0;/
