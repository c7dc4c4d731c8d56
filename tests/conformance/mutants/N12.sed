# file: link/alone.c
# start shortens a wait
s/\(state != LINK_IDLE && state != LINK_OFFLINE\)/(state != LINK_IDLE \&\& state != LINK_OFFLINE \&\& state != LINK_BACKOFF)/
