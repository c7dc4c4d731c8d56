# file: pool/pickers.c
# red: T6 T7 T31 XI7
# pick_first knows only the first of the list
/^static int first_of_all/,/^}/ s/i < pick->n; i\+\+/i < 1; i++/
