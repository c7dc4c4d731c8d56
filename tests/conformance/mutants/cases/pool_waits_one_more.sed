# file: pool/acquire.c
# red: T98
# one more waits than max_waiting
s/pool->n_waiting >= pool->options.max_waiting/pool->n_waiting > pool->options.max_waiting/
