# file: pool/host.c
# red: XB6
# who names a host with other options has it all the same
s/^    if \(host && options && !pool__settings_are/    if (false \&\& !pool__settings_are/
