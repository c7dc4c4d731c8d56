# file: pool/opening.c pool/target.c
# red: T5 T26 T28 T66
# pick_first keeps its links up too
s/ \|\| !target->picker->keeps_up\)$/)/
s/^    if \(target->picker->keeps_up\)$/    if (true)/
