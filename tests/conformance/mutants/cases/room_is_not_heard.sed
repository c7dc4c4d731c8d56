# file: link/protocol.c
# red: T82 T94 XK12
# what the peer says of its room is not heard
s/^    link__set_room\(link, channels\);$/    (void)channels;/
