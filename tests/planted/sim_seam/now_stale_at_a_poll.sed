# file: link/driver_ev.c
# a poll does not refresh the clock
/^static void on_poll/,/^}/s/^    d->driver\.now = monotonic\(\);$/    ;/
