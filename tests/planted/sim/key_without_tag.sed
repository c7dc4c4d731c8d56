# file: pool/key.c
# the tag is no part of the key
s/^    put_text\(key, tag\);$/    (void)tag;/
