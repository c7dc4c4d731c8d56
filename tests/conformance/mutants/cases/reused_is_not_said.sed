# file: pool/acquire.c
# red: T84 VB6 XA19 XH9 XH10 XK13
# a lease never says that its link had served before
s/lease->reused = link->uses > 1;/lease->reused = false;/
