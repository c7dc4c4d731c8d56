# file: link/address.c
# red: VF3
# a path may have 106 bytes
s/size_t most = sizeof name->sun_path - 1;/size_t most = sizeof name->sun_path - 2;/
