# file: link/address.c
# red: VE9 VF5
# what follows the port is ignored
s/^        return refuse\(in, at, "a byte that no digit after the port"\);$//
/^static int read_port/,/^}/ s/^    if \(at < in->length\)$/    if (false)/
