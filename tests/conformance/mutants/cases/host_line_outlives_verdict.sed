# file: pool/host.c
# red: T73 T75 XC21 XC25
# those in a host's line are not told when it goes down
s/^    if \(is_down && !was_down && !host->draining\)$/    if (false)/
