# file: pool/members.c
# red: T63 T67
# a list that comes is not looked at for those who wait
/^static void list_changed/,/^}/ s/^    if \(target->line.n\)$/    if (false)/
