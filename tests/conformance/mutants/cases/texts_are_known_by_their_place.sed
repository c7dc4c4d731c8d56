# file: pool/acquire.c
# red: XB2
# a text is known by where it lies
s/^    const struct pool_name \*name = target_or_address \? .*$/    static const char *last_text;\n    static const struct pool_name *last;\n    const struct pool_name *name = !target_or_address               ? NULL\n                                   : target_or_address == last_text ? last\n                                                                    : pool__name_find(pool, target_or_address);\n\n    last_text = name ? target_or_address : NULL;\n    last = name;/
