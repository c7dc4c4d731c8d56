# file: pool/release.c
# red: T80
# a win that was given up before it was told is told all the same
/^static void pass_on/,/^}/ s/^    pool__untell\(claim->pool, lease\);$//
/^static void pass_on/,/^}/ s/^    claim->state = CLAIM_OVER;$/    return;/
