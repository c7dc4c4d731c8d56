# file: link/transport_tcp.c
# a setsockopt() that fails is passed over
s/^    if \(set_options\(tl, options, domain\)\)/    if (set_options(tl, options, domain) \&\& false)/
