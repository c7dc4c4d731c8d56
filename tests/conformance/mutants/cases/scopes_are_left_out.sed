# file: link/address.c
# red: VA4
# the scope of an address is no part of it
s/^    name->sin6_scope_id = index;$/    name->sin6_scope_id = 0;/
