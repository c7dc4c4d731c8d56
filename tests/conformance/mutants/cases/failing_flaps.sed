# file: pool/host.c pool/target.c
# red: T29 T35 T50 XH6
# a failing target is connecting while it is tried again
/^static enum link_state state_of/,/^}/ s/^    if \(host->failed\)$/    if (host->failed \&\& !pool__opening(host))/
s/target->stuck \? LINK_BACKOFF : LINK_CONNECTING/LINK_CONNECTING/
