# file: link/channel.c
# red: XA15
# a write that fails is to be made again
/^ssize_t channel_writev/,/^}/ s/^    return errno == EAGAIN .*$/    return LINKPOOL_EAGAIN;/
