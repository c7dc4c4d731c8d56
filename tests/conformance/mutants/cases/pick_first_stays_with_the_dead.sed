# file: pool/pickers.c
# red: T44
# pick_first stays with a host whose links are gone
s/ && pool_host_state\(pick->hosts\[i\]\) == LINK_READY;/ \&\& pick->can(pick->hosts[i]) != POOL_HOST_DOWN;/
