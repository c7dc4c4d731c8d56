# file: pool/line.c
# red: T97 T129 XF2 XF10
# a holder hears twice that its channel was taken away
s/^        lease->closed\(lease\);.*$/        (lease->closed(lease), lease->closed(lease));/
