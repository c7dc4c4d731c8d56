# file: pool/members.c
# hosts of a list that could not be made are still taken for listed
/^int pool__members_make/,/^\}/ s/^    note_listed\(list, false\);$/    if (!error)\n        note_listed(list, false);/
