# file: link/link.c
# red: XL4
# a link has 64 bytes more
s/rounded\(sizeof\(struct link\)\) \+ shared_size/rounded(sizeof(struct link) + 64) + shared_size/
