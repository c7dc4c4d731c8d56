/* loop.c - libev, in the few forms in which the example programs use it. */
#include "examples/common/loop.h"

#include <signal.h>

static void on_signal(struct ev_loop *loop, ev_signal *watcher, int events)
{
    (void)watcher, (void)events;
    ev_break(loop, EVBREAK_ALL);
}

void loop_end_on_signals(struct ev_loop *loop, struct loop_end *end)
{
    signal(SIGPIPE, SIG_IGN);
    ev_signal_init(&end->term, on_signal, SIGTERM);
    ev_signal_init(&end->interrupt, on_signal, SIGINT);
    ev_signal_start(loop, &end->term);
    ev_signal_start(loop, &end->interrupt);
}

/* ev_io_modify() keeps libev's own flags: a descriptor that has not changed is not announced to the kernel anew. */
void loop_want(struct ev_loop *loop, ev_io *io, int events)
{
    if ((ev_is_active(io) ? io->events & (EV_READ | EV_WRITE) : 0) == events)
        return;
    ev_io_stop(loop, io);
    ev_io_modify(io, events);
    if (events != 0)
        ev_io_start(loop, io);
}
