# file: pool/target.c
# red: T6 T30 T34 T57
# those in a target's line are not told when its last host goes down
s/^    if \(is_down && !was_down && pool__all_down\(target\)\)$/    if (false)/
