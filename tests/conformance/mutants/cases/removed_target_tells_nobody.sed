# file: pool/target.c
# red: T40
# who waits for a target that is removed is not told
/^void pool_target_remove/,/^}/ s/^    pool__fail_line\(&target->line, LINKPOOL_ECLOSED, false\);$//
