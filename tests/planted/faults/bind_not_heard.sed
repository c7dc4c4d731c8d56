# file: link/transport_tcp.c
# a bind() that fails is passed over
s/^    if \(bind_local\(tl, options\)\)/    if (bind_local(tl, options) \&\& false)/
