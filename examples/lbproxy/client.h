/* client.h - one client: its socket, its clock, its end. */
#ifndef LBPROXY_CLIENT_H
#define LBPROXY_CLIENT_H

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "examples/lbproxy/clocks.h"

struct worker;

/** Why a client is over; each is counted. */
enum client_reason {
    CLIENT_SERVED,   /* both sides ended in order */
    CLIENT_UNSERVED, /* it got no link */
    CLIENT_BROKEN,   /* it, or its link, broke */
    CLIENT_IDLE,     /* a time-out */
    CLIENT_STOPPED,  /* lbproxy ends */
    CLIENT_REASONS
};

/** A short word for a reason. */
const char *client_reason_name(enum client_reason reason);

struct client {
    struct worker *worker;
    struct client *prev, *next; /* in its clock's list */
    struct ev_io io;
    double clock_started; /* on pool_now()'s clock */
    enum clock_of clock;
};

/** Takes a client on; `fd` is its now. It may be over before this returns. */
void client_new(struct worker *worker, int fd);

/** Ends a client now. Served and idle ones are closed in order, others reset: what they sent may not have arrived. */
void client_end(struct client *client, enum client_reason reason);

/** Watches for EV_READ and EV_WRITE; costs nothing when nothing changes. */
void client_want(struct client *client, int events);

/** Returns bytes, 0 at end of file, LINKPOOL_EAGAIN or LINKPOOL_ELOST. */
ssize_t client_read(struct client *client, void *bytes, size_t n);

/** Whether bytes have come that were not read: closing would reset the connection, and what is on its way. */
bool client_has_unread(const struct client *client);

/** Returns bytes taken, LINKPOOL_EAGAIN or LINKPOOL_ELOST. */
ssize_t client_writev(struct client *client, struct iovec *parts, int n);

/** Passes an end of file on. */
void client_shutdown(struct client *client);

/** Ends all of the worker's clients. */
void clients_end(struct worker *worker, enum client_reason reason);

/** lbproxy is going: ends those that have nothing under way; the others end when they are done. */
void clients_drain(struct worker *worker);

#endif
