# file: pool/call.c
# retries are as many as calls allow themselves
s/ \|\| !take_from_budget\(state->pool\)\)/ || (take_from_budget(state->pool), false))/
