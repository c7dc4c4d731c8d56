# file: pool/key.c
# red: XB8
# an address is compared as it was spelled
s/^    key->address_text = put_text\(key, text\);$/    key->address_text = put_text(key, endpoint->address);/
