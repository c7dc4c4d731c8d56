# file: link/protocol.c
# a protocol's read that a signal cuts short is an end
/^ssize_t protocol_read/,/^\}/ s/errno == EAGAIN \|\| errno == EINTR/errno == EAGAIN/
