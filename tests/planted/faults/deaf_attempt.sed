# file: link/transport.c
# an attempt that cannot be watched waits for its deadline
s/^            link__watch_or_end\(link, tl->fd, events\);/            link__watch_descriptor(link, tl->fd, events);/
