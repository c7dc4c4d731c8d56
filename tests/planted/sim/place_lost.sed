# file: pool/line.c
# a winner whose link died comes back last
/^void pool__wait_again/,/^\}/ s/^    claim->channel = NULL;/&\n    claim->ticket = ++pool->ticket;/
