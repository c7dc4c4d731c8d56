# file: link/driver_ev.c
# a sleep of the machine is not looked for
s/CLOCK_BOOTTIME, &t/CLOCK_MONOTONIC, \&t/
