# file: link/transport_tcp.c
# a connect() that a signal cuts short is a failure
s/errno == EINPROGRESS \|\| errno == EINTR/errno == EINPROGRESS/
