# file: link/address.c
# red: VF4
# a text that is too long for IPv6 is cut
s/^    if \(end - 1 >= sizeof host\)$/    if (end - 1 >= sizeof host)\n        end = sizeof host;\n    if (false)/
