# file: pool/opening.c
# red: XD4 XE3 XE14
# the pool has one link more than max_links
s/return pool->n_links < pool->options.max_links \|\| make_room_for/return pool->n_links <= pool->options.max_links || make_room_for/
