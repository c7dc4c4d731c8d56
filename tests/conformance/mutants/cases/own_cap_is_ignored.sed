# file: link/internal.h
# red: T83 T94
# what a peer allows is lent, whatever the host's own cap
s/^    link__shared\(link\)->room = most && most < said \? most : said;$/    link__shared(link)->room = most > UINT32_MAX \/ 2 ? most : said;/
