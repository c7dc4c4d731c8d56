# file: link/transport_tcp.c
# a getsockopt() that fails is taken for good news
s/^        error = errno;/        error = 0;/
