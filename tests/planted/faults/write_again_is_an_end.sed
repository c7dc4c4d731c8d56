# file: link/channel.c
# a write that a signal cuts short is an end
/^ssize_t channel_writev/,/^\}/ s/errno == EAGAIN \|\| errno == EINTR/errno == EAGAIN/
