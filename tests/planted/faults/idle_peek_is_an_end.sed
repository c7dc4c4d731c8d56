# file: link/transport_tcp.c
# a look at an idle link that a signal cuts short is an end
/^enum transport_idle transport_tcp_idle/,/^\}/ s/errno == EAGAIN \|\| errno == EINTR/errno == EAGAIN/
