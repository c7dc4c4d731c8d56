# file: link/address.c
# red: VF3
# a path that is too long is cut
s/^    if \(length > most\)$/    if (length > most)\n        length = most;\n    if (false)/
