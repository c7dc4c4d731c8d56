# file: pool/members.c
# hosts of a list that could not be made are still taken for listed
/^int pool__members_make/,/^\}/ s/^    for \(size_t i = 0; i < list->n; i\+\+\)$/    for (size_t i = 0; i < list->n \&\& !error; i++)/
