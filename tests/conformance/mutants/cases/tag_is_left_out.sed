# file: pool/key.c
# red: VA1 VA2
# the tag is no part of the key
s/^    put_text\(key, tag\);$/    (void)tag;/
