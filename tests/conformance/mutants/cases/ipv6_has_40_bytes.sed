# file: link/address.c
# red: VF4
# the longest texts of IPv6 are refused
s/char host\[INET6_ADDRSTRLEN\] = \{0\};/char host[40] = {0};/
