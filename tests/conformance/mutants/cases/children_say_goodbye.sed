# file: pool/pool.c
# red: XJ6
# a child ends its parent's links
s/^        stop_links\(host, true\);$/        stop_links(host, false);/
