/* clocks.h - the times a client may take, each for what it is about.
 *
 * A client runs one clock at a time. All that run the same one stand in the order in which they started it, so that
 * starting is moving to the end of a list, and one timer a clock finds those that are over. */
#ifndef LBPROXY_CLOCKS_H
#define LBPROXY_CLOCKS_H

#include <ev.h>

struct client;
struct options;
struct worker;

enum clock_of {
    CLOCK_NONE,    /* it waits for us, or for the pool, which has a clock of its own */
    CLOCK_REQUEST, /* the next request, on a connection kept alive */
    CLOCK_HEAD,    /* the rest of a request's head */
    CLOCK_BODY,    /* another byte of a body, either way */
    CLOCK_ANSWER,  /* the answer's head */
    CLOCK_LINGER,  /* the client's end, once all is said */
    CLOCK_TRAFFIC, /* another byte, where bytes are all that is known */
    CLOCKS
};

struct clock {
    double timeout;         /* seconds; 0: for ever */
    struct client *clients; /* the first to be over first */
    ev_timer timer;
};

/** Sets a worker's clocks up, each with its time-out. */
void clocks_init(struct worker *worker, const struct options *options);

/** Stops the timers, of a worker without clients. */
void clocks_stop(struct worker *worker);

/** Puts a client that ran none under a clock; the one it starts with. */
void clock_enter(struct client *client, enum clock_of clock);

/** Starts a clock for a client, from now, instead of the one it ran. */
void clock_start(struct client *client, enum clock_of clock);

/** Takes a client that goes away from its clock. */
void clock_leave(struct client *client);

#endif
