# file: pool/members.c
# red: T38 T41 XI1
# links of hosts that left the list stay
s/^    if \(!host->memberships && !host->pins\) \{$/    if (false) {/
