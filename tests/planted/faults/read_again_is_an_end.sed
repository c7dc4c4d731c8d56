# file: link/channel.c
# a read that a signal cuts short is an end
/^ssize_t channel_read/,/^\}/ s/errno != EAGAIN && errno != EINTR/errno != EAGAIN/
