# file: link/link.c
# TCP connect alone resets the count
s/^    link__set_bits\(link, 0, LINK_STARTED\);$/&\n    link__core(link)->keeper->proven(link);/
