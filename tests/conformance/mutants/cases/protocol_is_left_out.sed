# file: pool/key.c
# red: VA2 XB6
# the protocol is no part of the key
s/^    put\(key, &protocol, sizeof protocol\);$/    (void)protocol;/
