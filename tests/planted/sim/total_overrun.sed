# file: pool/opening.c
# so may the pool
/^static bool has_place/,/^\}/ s/pool->n_links < pool->options.max_links/pool->n_links <= pool->options.max_links/
