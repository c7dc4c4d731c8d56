# file: pool/pool.c
# red: T40
# the picker of a removed target is called as the target goes
s/^        pool__target_free\(target\);$/        pool__tell_picker(target);\n&/
