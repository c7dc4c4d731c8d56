# file: link/framed_input.c
# the peer's last id is not looked at
s/channel->id > framed__of\(pl\)->accepted/false/
