# file: pool/target.c
# red: XM4
# who was meant for a host that goes down fails with it
s/^    if \(is_down && !was_down && pool__all_down\(target\)\)$/    if (is_down \&\& !was_down)/
