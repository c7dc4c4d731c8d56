# file: link/address.c
# red: VF5
# an address of fewer than four numbers is completed with zeros
s/^            return refuse\(in, end, "fewer than four numbers in the IPv4 address"\);$/            break;/
