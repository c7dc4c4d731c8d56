# file: pool/pool.c
# red: XE4
# an attempt that failed is counted among the links for ever
s/^    pool->n_links = pool->n_links \+ is_socket\(to\) - is_socket\(from\);$/    pool->n_links = pool->n_links + is_socket(to) - (is_socket(from) \&\& from != LINK_CONNECTING);\n    pool->n_links -= from == LINK_CONNECTING \&\& to == LINK_HANDSHAKING;/
