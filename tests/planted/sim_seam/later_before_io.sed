# file: link/driver_ev.c
# the end of a turn comes with its descriptors
s/PRIORITY_LATER = EV_MINPRI/PRIORITY_LATER = EV_MAXPRI/
