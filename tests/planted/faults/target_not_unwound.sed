# file: pool/target.c
# a target whose list could not be made stays in memory
/^failed:/,/^\}/ s/pool__target_free\(target\);/;/
