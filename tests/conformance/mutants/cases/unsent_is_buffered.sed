# file: link/channel.c
# red: VD1
# what the peer does not take is kept in memory
/^ssize_t channel_writev/,/^}/ s/^    return errno == EAGAIN/    (void)link__alloc(link__core(link)->env, 65536);\n    errno = EAGAIN;\n&/
