# file: link/transport_tcp.c
# red: T77 T106 T129 XF3 XG8
# a link that ends keeps its socket
s/^    if \(tl->fd >= 0\)$/    if (false)/
