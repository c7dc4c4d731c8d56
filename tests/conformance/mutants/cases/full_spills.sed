# file: pool/pickers.c
# red: XC12
# pick_first goes on to the next where the first is full
s/state->current == pick->hosts\[i\] && pool_host_state\(pick->hosts\[i\]\) == LINK_READY;/state->current == pick->hosts[i] \&\& pick->can(pick->hosts[i]) == POOL_HOST_CAN_SERVE;/
/^static int first_of_all/,/^}/ s/if \(pick->can\(pick->hosts\[i\]\) != POOL_HOST_DOWN/if (pick->can(pick->hosts[i]) < POOL_HOST_FULL/
