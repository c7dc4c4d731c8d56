# file: link/alone.c
# the owner of a connected link is told, but gets no channel
s/to->connected\(link, link__own_channel\(link\)\)/to->connected(link, NULL)/
