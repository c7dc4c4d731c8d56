# file: link/address.c
# red: VF5 XB8
# leading zeros are read as though they were none
s/^    if \(in->text\[first\] == '0' && \*at > first \+ 1\)$/    if (false)/
