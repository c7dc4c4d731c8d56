# file: link/channel.c
# red: XL2
# what was read is kept with the link
/^static void found_empty/,/^}/ s/^    link__set_bits/    (void)link__alloc(link__core(link)->env, 16);\n&/
