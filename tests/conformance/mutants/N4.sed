# file: link/link.c
# TCP connect alone resets the count
s/^    link->bits = \(uint16_t\)\(link->bits \| LINK_STARTED\);$/&\n    link__core(link)->keeper->proven(link);/
