# file: pool/verdict.c
# red: VD2 XJ7
# a want of descriptors takes the host offline
s/^    if \(delay < 0\)$/    if (delay < 0 || end->reason == LINK_NO_DESCRIPTORS)/
