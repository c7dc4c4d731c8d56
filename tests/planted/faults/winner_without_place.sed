# file: pool/line.c
# a winner that comes back counts on a place that it has not
/^void pool__wait_again/,/^\}/ s/claim->has_own_time = false;/;/
