# file: pool/release.c
# red: VA7 XE8
# a second release gives back what the next holder has
/^int pool_release/,/^}/ s/^    if \(claim->state != CLAIM_HELD\)$/    if (claim->state != CLAIM_HELD \&\&\n        !(claim->state == CLAIM_OVER \&\& claim->channel \&\& claim->channel->state == CHANNEL_HELD))/
