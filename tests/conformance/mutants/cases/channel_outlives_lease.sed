# file: pool/line.c
# red: XF10
# a lease that is over still shows its channel
/^static void tell_taken_away/,/^}/ s/^    lease->channel = NULL;$//
