# file: pool/acquire.c
# red: T94 T121 XK14
# a shared link whose uses are up goes on taking leases
s/^    if \(options->max_uses && link->uses >= options->max_uses\) \{$/    if (options->max_uses == UINT32_MAX) {/
