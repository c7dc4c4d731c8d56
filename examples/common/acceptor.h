/* acceptor.h - takes clients from a listening socket on a libev loop.
 *
 * It never spins: out of descriptors it looks away for 100 ms, or until acceptor_resume() says that one is free. */
#ifndef EXAMPLES_ACCEPTOR_H
#define EXAMPLES_ACCEPTOR_H

#include <ev.h>
#include <stdbool.h>

struct acceptor {
    void (*accepted)(struct acceptor *acceptor, int fd); /* the callee's descriptor now: non-blocking, close-on-exec */
    bool (*may)(struct acceptor *acceptor);              /* asked before each: false holds it; NULL: always */
    void *data;                                          /* the user's; never read */
    struct ev_loop *loop;
    struct ev_io io;
    ev_timer pause;
    bool held;   /* by acceptor_hold() */
    bool scarce; /* descriptors ran out; the user clears it, who knows when there are enough again */
};

/** Starts to take clients from `fd`, which is the acceptor's now. Set `accepted`, `may` and `data` before. */
void acceptor_start(struct acceptor *acceptor, struct ev_loop *loop, int fd);

/** Takes no more clients until acceptor_resume(); they wait in the kernel's line. May be called from `accepted`. */
void acceptor_hold(struct acceptor *acceptor);

/** Looks away for 100 ms, or until acceptor_resume(): descriptors ran out elsewhere. */
void acceptor_pause(struct acceptor *acceptor);

/** Takes clients again: there is room, or a descriptor was freed. */
void acceptor_resume(struct acceptor *acceptor);

/** Whether it looks away: held, or out of descriptors. */
bool acceptor_is_paused(const struct acceptor *acceptor);

/** Stops and closes the socket. A second call changes nothing. */
void acceptor_stop(struct acceptor *acceptor);

#endif
