# file: pool/host.c
# red: T98 VD6
# one host more is made than max_hosts
s/pool->n_hosts >= pool->options.max_hosts/pool->n_hosts > pool->options.max_hosts/
