# file: pool/target.c
# red: T29 T58
# a target that failed stays failing when a host is ready
s/^    if \(in\[LINK_READY\]\)$/    if (in[LINK_READY] \&\& !target->stuck)/
