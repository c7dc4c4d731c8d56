# file: link/driver_ev.c
# the clock is the wall's
s/CLOCK_MONOTONIC/CLOCK_REALTIME/
