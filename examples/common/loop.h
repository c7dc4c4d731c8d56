/* loop.h - what the example programs' event loops share. */
#ifndef EXAMPLES_LOOP_H
#define EXAMPLES_LOOP_H

#include <ev.h>

struct loop_end {
    ev_signal term, interrupt;
};

/** Lets SIGTERM and SIGINT end ev_run(), and SIGPIPE nothing. `end` stays put as long as the loop. */
void loop_end_on_signals(struct ev_loop *loop, struct loop_end *end);

/** Watches a descriptor for these events, EV_READ and EV_WRITE, and no others; costs nothing when nothing changes. */
void loop_want(struct ev_loop *loop, ev_io *io, int events);

#endif
