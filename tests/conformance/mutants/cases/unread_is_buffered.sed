# file: link/channel.c
# red: VD1
# what is not read is kept in memory
s/^    link__watch\(link, link->interest & ~\(unsigned\)LINKPOOL_READ\);$/&\n    (void)link__alloc(link__core(link)->env, 65536);/
