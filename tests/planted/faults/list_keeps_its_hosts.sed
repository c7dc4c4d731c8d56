# file: pool/members.c
# a list that could not be made keeps its hosts
/^void pool__members_give_up/,/^\}/ s/pool_host_drop\(list->hosts\[i\]\);/;/
