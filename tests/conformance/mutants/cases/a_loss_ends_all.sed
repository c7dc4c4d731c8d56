# file: pool/verdict.c
# red: XH11
# the loss of one link ends the idle ones as well
s/^    case LINK_END_LOSS:$/&\n        while (host->lists[PLACE_IDLE])\n            link__end(host->lists[PLACE_IDLE], LINK_DRAINED, 0);/
