# file: pool/host.c
# red: XF8 XL3
# a host that nobody needs stays
/^void pool__host_rang/,/^}/ s/^    if \(!is_needed\(host\) && /    if (false \&\& /
