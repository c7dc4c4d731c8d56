# file: link/framed_input.c
# of a peer that leaves, the last request that it takes is taken to be one that it does not
s/channel->id > framed__of\(pl\)->accepted/channel->id >= framed__of(pl)->accepted/
