/* mode.h - what is done with a client's bytes.
 *
 * The client (client.h) owns the socket and its lifetime; the mode decides what is read, where it goes and when the
 * client is over, by client_want(), client_read(), client_writev() and client_end(). After client_end() it touches
 * nothing of that client. */
#ifndef LBPROXY_MODE_H
#define LBPROXY_MODE_H

#include <stdbool.h>
#include <stddef.h>

#include "examples/lbproxy/clocks.h"

struct client;

struct mode {
    const char *name;
    size_t size; /* of a client in this mode: a struct that begins with struct client, zeroed */
    void (*begin)(struct client *client);                        /* it has come; nothing is watched yet */
    void (*ready)(struct client *client, int events);            /* EV_READ, EV_WRITE: what was wanted and has come */
    void (*expired)(struct client *client, enum clock_of clock); /* its clock is over: start another, or end it */
    bool (*is_busy)(const struct client *client);                /* something is under way that a drain waits for */
    void (*end)(struct client *client); /* it goes, whoever ended it: give back what is held for it */
};

extern const struct mode mode_http;
extern const struct mode mode_tcp;

#endif
