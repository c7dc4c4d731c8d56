# file: pool/acquire.c
# red: T22 T32 T56 XH6 XH8
# a lease that finds all down is put in line
s/^    if \(is_down\(line\) && /    if (false \&\& /
