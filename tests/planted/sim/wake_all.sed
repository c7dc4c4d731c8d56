# file: pool/opening.c
# each who waits opens, whatever is under way
/^static bool leases_want/,/^\}/ s/line->n > line->served_by/line->n > 0/
