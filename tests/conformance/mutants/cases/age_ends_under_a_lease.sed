# file: pool/pool.c
# red: XG16
# a link that is too old ends under its holder
/^static void on_aged/,/^}/ s/^    pool__retire\(link, reason\);$/    link__end(link, reason, 0);/
