# file: pool/opening.c
# so may the pool
/^static enum outcome open_one/,/^\}/ s/pool->n_links >= pool->options.max_links/pool->n_links > pool->options.max_links/
