/* tunnel.h - bytes both ways between a client and its link, whatever they mean.
 *
 * What is read goes straight on from the worker's scratch space. What the far side does not take is held in a buffer a
 * way, and while it holds anything its source is not read: so the slower side sets the pace, and a quiet tunnel holds
 * no buffer. The end of each way is passed on. */
#ifndef LBPROXY_TUNNEL_H
#define LBPROXY_TUNNEL_H

#include <linkpool/pool.h>
#include <stdbool.h>

#include "examples/lbproxy/buffer.h"
#include "examples/lbproxy/client.h"

struct backend_counts;

enum way {
    UP,  /* client to backend */
    DOWN /* and back */
};

struct flow {
    struct buffer *held; /* bytes the far side has not taken yet; NULL: none */
    bool ended;          /* the source has said all */
    bool end_passed;     /* and the far side knows */
};

/** All zero but client and lease while there is no link. */
struct tunnel {
    struct client *client;
    struct pool_lease *lease;
    struct backend_counts *counts; /* of the backend the lease is on */
    struct flow flows[2];
    unsigned channel_wants;
};

/** Opens it on the lease's channel: moves what is held, and whatever comes. It may end the client: CLIENT_SERVED when
 * both ways have ended, CLIENT_BROKEN when a side broke. */
void tunnel_open(struct tunnel *tunnel);

/** The client is ready for `events` (EV_READ, EV_WRITE). May end the client, as above. */
void tunnel_ready(struct tunnel *tunnel, int events);

/** Gives its buffers back; the lease is the caller's to end. */
void tunnel_end(struct tunnel *tunnel);

#endif
