# file: link/internal.h link/lease.c
# red: VA9
# the holder's watcher stays with the link
s/^    link->channel.events = NULL;$//
s/^    channel->events = NULL;$//
s/^    link->channel.want = 0;$//
s/^    channel->want = 0;$//
