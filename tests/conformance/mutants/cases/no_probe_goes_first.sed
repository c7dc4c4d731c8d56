# file: pool/opening.c
# red: XH2 XH14
# beside the probe of a failing host others are opened
s/^    if \(host->lists\[PLACE_RESTING\] \|\| host->holding \|\| \(host->failed && pool__opening\(host\)\)\)$/    if (host->lists[PLACE_RESTING] || host->holding)/
