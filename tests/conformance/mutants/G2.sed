# file: pool/pickers.c
s/state->next = i \+ 1 < pick->n \? i \+ 1 : 0;/state->next = i;/
