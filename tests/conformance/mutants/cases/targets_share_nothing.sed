# file: pool/members.c
# red: T20 T21 XC15
# each target has links of its own
s/^    if \(\(error = pool__host_find\(pool, &endpoint, settings/    endpoint.tag = target->name;\n&/
