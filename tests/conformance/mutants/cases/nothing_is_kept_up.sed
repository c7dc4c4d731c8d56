# file: pool/opening.c
# red: VG3 XD11 XG2 XG5 XH4
# what is to be kept up is not opened
/^static bool upkeep_wants/,/^}/ s/^    return pool__kept_up.*$/    return false;/
