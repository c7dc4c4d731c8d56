# file: pool/opening.c
# red: T55 XH4
# round_robin keeps nothing up
s/ \|\| !target->picker->keeps_up\)$/ || target->picker->keeps_up)/
