# file: link/link.c
# handles of an attempt outlive it
/^static void shut/,/^\}/ s/if \(link->bits & LINK_KEPT\)/if (0)/
