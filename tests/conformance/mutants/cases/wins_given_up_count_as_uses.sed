# file: pool/release.c
# red: T80
# a win that was given up before it was told counts as a use of the link
/^static void pass_on/,/^}/ s/^    link->uses--;$//
