# file: link/link.c
# red: XL4
# a link has 64 bytes more
s/link__rounded\(sizeof\(struct link\)\) \+/link__rounded(sizeof(struct link) + 64) +/
