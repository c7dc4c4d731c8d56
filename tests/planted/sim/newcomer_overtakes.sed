# file: pool/release.c
# a link given back waits for the end of the turn, and a newcomer is faster
/^static void back_to_idle/,/^\}/ s/^    pool__serve\(host\);$//
