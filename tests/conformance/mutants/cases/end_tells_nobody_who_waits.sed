# file: pool/pool.c
# red: T17 T69 T129 XF5 XF7
# those in line are not told of the pool's end
/^void pool__end_all/,/^}/ s/^    fail_all\(pool\);.*$//
