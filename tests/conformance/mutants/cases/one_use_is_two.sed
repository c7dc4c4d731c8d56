# file: pool/acquire.c pool/release.c
# red: T89
# a link has one use more than max_uses
s/link->uses >= options->max_uses/link->uses > options->max_uses/
