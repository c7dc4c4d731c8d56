# file: link/transport_tcp.c
# an idle link with an error is taken for clean
/^enum transport_idle transport_tcp_idle/,/^\}/ s/return TRANSPORT_BROKEN;/return TRANSPORT_CLEAN;/
