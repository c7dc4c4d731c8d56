# file: pool/line.c
# red: T97 T129 XF2 XF4 XF7 XF10
# a holder does not hear that its channel was taken away
s/^    if \(lease->closed\)$/    if (false)/
