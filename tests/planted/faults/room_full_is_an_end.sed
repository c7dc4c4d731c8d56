# file: link/transport_tcp.c
# a full backlog is not waited for
s/^    if \(errno == EAGAIN && address\.name\.any\.sa_family == AF_UNIX\)/    if (errno == EAGAIN \&\& address.name.any.sa_family == AF_INET)/
