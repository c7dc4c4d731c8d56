# file: pool/pool.c
# red: XG16
# a link that is too old ends under its holder
s/^    pool__retire\(link, \(enum link_reason\)link->retire\);$/    link__end(link, (enum link_reason)link->retire, 0);/
