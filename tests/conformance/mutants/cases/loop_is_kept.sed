# file: link/driver_ev.c
# red: XF5
# a driver that was freed keeps its loop running
s/^    ev_ref\(d->loop\);$/    ev_ref(d->loop);\n    ev_ref(d->loop);/
