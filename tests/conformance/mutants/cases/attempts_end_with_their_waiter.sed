# file: pool/release.c
# red: T76 VC5
# an attempt ends when its waiter leaves
/^    case CLAIM_WAITING:$/,/break;/ s/^        claim->state = CLAIM_OVER;$/&\n        while (claim->line->host \&\& claim->line->host->lists[PLACE_OPENING])\n            link__end(claim->line->host->lists[PLACE_OPENING], LINK_STOPPED, 0);/
