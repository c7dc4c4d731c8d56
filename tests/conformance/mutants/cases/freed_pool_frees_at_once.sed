# file: pool/pool.c
# red: VC1 XF11
# the memory of a freed pool goes at once, though a callback is still under way
/^void pool_free/,/^}/ s/^    link__leave\(&pool->core\);.*$/    pool->core.depth = 1;\n    link__leave(\&pool->core);/
