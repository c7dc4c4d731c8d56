# file: pool/pickers.c
# red: T52 T53
# round_robin does not move on
/^static int next_that/,/^}/ s/state->next = i \+ 1 < pick->n \? i \+ 1 : 0;/state->next = i;/
