/* listener.h - where a worker's clients come in: at most max_clients at once, and none while descriptors are short. */
#ifndef LBPROXY_LISTENER_H
#define LBPROXY_LISTENER_H

#include "examples/common/acceptor.h"

struct worker;

struct listener {
    struct acceptor acceptor;
    struct worker *worker;
    unsigned max_clients;
};

/** Starts to accept for a worker from `fd`, which is the listener's now. */
void listener_start(struct listener *listener, struct worker *worker, int fd, unsigned max_clients);

/** A client has gone: there may be room, or a descriptor, for another. */
void listener_make_room(struct listener *listener);

/** A link could not be had for want of descriptors: none of them for clients for a moment. */
void listener_short(struct listener *listener);

/** A link was had. */
void listener_enough(struct listener *listener);

/** Accepts no more and closes the socket. */
void listener_stop(struct listener *listener);

/** In a word: "open", "full", "paused" (out of descriptors) or "closed". */
const char *listener_state(const struct listener *listener);

#endif
