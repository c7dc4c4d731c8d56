# file: link/channel.c
# of a fault another errno is told
s/^        channel->lease->system_errno = error;/        channel->lease->system_errno = EIO;/
