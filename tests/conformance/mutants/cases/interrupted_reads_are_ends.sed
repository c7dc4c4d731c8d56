# file: link/channel.c
# red: XJ7
# a read that a signal cut off is taken for a fault
s/^    if \(errno != EAGAIN && errno != EINTR\)$/    if (errno != EAGAIN)/
