# file: link/internal.h link/lease.c
# red: T88 VA9
# the holder's pointer stays with the link
s/^    link->channel.data = NULL;$//
s/^    channel->data = NULL;$//
