# file: link/transport_tcp.c
# of a socket that cannot be made another errno is told
/^    if \(tl->fd < 0\)$/,/return/ s/errno/EIO/
