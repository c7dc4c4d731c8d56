# file: link/protocol.c
# a protocol's write that a signal cuts short is an end
/^ssize_t protocol_write/,/^\}/ s/errno != EAGAIN && errno != EINTR/errno != EAGAIN/
