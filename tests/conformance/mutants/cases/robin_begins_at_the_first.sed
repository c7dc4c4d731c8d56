# file: pool/pickers.c
# red: XM3
# round_robin begins at the first of its list
s/state->next = \(size_t\)\(draw % pick->n\);/state->next = 0;/
