# file: link/driver_ev.c
# the end of a turn is not asked for
s/^        ev_feed_event\(d->loop, &d->later, EV_CUSTOM\);$/        ;/
