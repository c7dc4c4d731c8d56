# file: link/address.c
# red: VA4
# a scope that is no interface is taken for none
s/^        return refuse\(in, at, escape \? escaped : "no interface has this name"\);$/        return *index = 0;/
