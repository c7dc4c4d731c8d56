# file: link/transport_tcp.c
# a connection that was shut down is not closed
/^void transport_tcp_close/,/^\}/ s/if \(tl->fd >= 0\)/if (tl->fd >= 0 \&\& tl->fd % 16 != 5)/
