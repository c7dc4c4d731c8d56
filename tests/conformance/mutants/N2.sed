# file: link/link.c
# a failed connect is followed by a second end, its close notice
s/^    else if \(how == TRANSPORT_FAILED\)$/    else if (how == TRANSPORT_FAILED \&\& (link__end(link, LINK_REFUSED, 0), true))/
