# file: pool/verdict.c
# red: XJ2
# no idle link gives its descriptor
s/^        pool__make_room\(pool__of\(host\), NULL\)\)$/        false)/
