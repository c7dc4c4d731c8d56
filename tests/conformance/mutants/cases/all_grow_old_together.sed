# file: link/link.c
# red: XG12
# links born together grow too old together
s/\(1 - 0\.1 \* link->age_draw \/ 65536\)/1/
