# file: pool/acquire.c
# red: VB6 XH10
# who asks for an unused link is given any
s/^        if \(!link->uses\)$/        if (link)/
