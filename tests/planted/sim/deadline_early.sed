# file: pool/line.c
# the usual deadline comes a moment early
/^void pool__line_rang/,/^\}/ s/deadline <= pool__now\(pool\)/deadline <= pool__now(pool) + 0.01/
