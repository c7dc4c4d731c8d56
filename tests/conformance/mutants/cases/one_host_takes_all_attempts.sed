# file: pool/opening.c
# red: XC21 XD8
# one host may have all of the pool's attempts
s/\(pool__of\(host\)->options.max_connecting \+ 1\) \/ 2/pool__of(host)->options.max_connecting/
