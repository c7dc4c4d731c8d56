# file: pool/members.c
# red: T49
# an address that is twice in a list is there twice
s/^    if \(host->is_listed\).*$/    if (false)/
