# file: link/driver_ev.c
# deadlines ring before what came in time
s/PRIORITY_ALARM = EV_MAXPRI - 1/PRIORITY_ALARM = EV_MAXPRI/
