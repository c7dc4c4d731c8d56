/* crew.h - the control thread's view: all workers, and the loop on which it hears of them. */
#ifndef LBPROXY_CREW_H
#define LBPROXY_CREW_H

#include <ev.h>
#include <stdbool.h>

struct options;
struct status;
struct worker;

struct crew {
    const struct options *options;
    struct ev_loop *loop;
    struct worker **workers; /* options->threads of them */
    struct status *status;   /* NULL: none */
    ev_async wake;           /* a worker has reported, or is over */
    ev_signal term, interrupt, reopen;
    double started;
    bool draining;
    bool cut; /* ended at once */
};

#endif
