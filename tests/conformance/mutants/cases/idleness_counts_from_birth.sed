# file: pool/release.c
# red: T109 XG9
# idleness counts from the birth of a link
/^    link->idle_since = pool__now\(pool\);$/d
