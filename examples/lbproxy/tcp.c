/* tcp.c - tcp mode: a lease a client, and a tunnel through it.
 *
 * While a client waits for its link it may fill a buffer, no more. The link is discarded at the end: nothing here knows
 * whether it is clean. */
#include <linkpool/pool.h>

#include "examples/lbproxy/client.h"
#include "examples/lbproxy/mode.h"
#include "examples/lbproxy/tunnel.h"
#include "examples/lbproxy/worker.h"

struct pair {
    struct client client; /* first: a client in tcp mode is a pair */
    struct pool_lease lease;
    struct tunnel tunnel;
};

/* The link is there: what the client has said meanwhile goes first. */
static void join(struct pair *pair)
{
    pair->tunnel.counts = worker_backend(pair->client.worker, pair->lease.host);
    pair->tunnel.counts->leases++;
    pair->tunnel.counts->held++;
    tunnel_open(&pair->tunnel);
}

/* It got no link. Where descriptors are short, further clients would only take more of them. */
static void turn_away(struct pair *pair)
{
    struct listener *listener = &pair->client.worker->listener;
    bool short_of_descriptors = pair->lease.reason == LINK_NO_DESCRIPTORS;

    client_end(&pair->client, CLIENT_UNSERVED);
    if (short_of_descriptors)
        listener_short(listener);
}

static void on_lease_done(struct pool_lease *lease)
{
    struct pair *pair = lease->data;

    if (lease->status == POOL_READY)
        join(pair);
    else
        turn_away(pair);
}

/* Drained past its time, or the pool is gone. */
static void on_lease_closed(struct pool_lease *lease)
{
    struct pair *pair = lease->data;

    client_end(&pair->client, CLIENT_STOPPED);
}

static void begin(struct client *client)
{
    struct pair *pair = (struct pair *)client;
    int status;

    pair->lease.done = on_lease_done;
    pair->lease.closed = on_lease_closed;
    pair->lease.data = pair;
    pair->tunnel.client = client;
    pair->tunnel.lease = &pair->lease;
    status = pool_acquire_target(client->worker->target, &pair->lease);
    if (status == POOL_READY)
        join(pair);
    else if (status == POOL_PENDING)
        client_want(client, EV_READ);
    else
        turn_away(pair);
}

/* Without a link yet: what comes is kept, as far as the buffer goes. */
static void gather(struct pair *pair)
{
    struct flow *up = &pair->tunnel.flows[UP];
    ssize_t got;

    if (up->held == NULL)
        up->held = buffers_take(&pair->client.worker->buffers, BUFFER_SIZE);
    if (up->held == NULL) {
        client_end(&pair->client, CLIENT_UNSERVED);
        return;
    }
    got = client_read(&pair->client, up->held->bytes + up->held->end, BUFFER_SIZE - up->held->end);
    if (got == LINKPOOL_ELOST) {
        client_end(&pair->client, CLIENT_BROKEN);
        return;
    }
    up->ended = got == 0;
    if (got > 0)
        up->held->end += (size_t)got;
    if (up->ended || up->held->end == BUFFER_SIZE)
        client_want(&pair->client, 0);
    if (up->held->end == 0)
        tunnel_end(&pair->tunnel);
}

static void ready(struct client *client, int events)
{
    struct pair *pair = (struct pair *)client;

    if (pair->lease.channel == NULL)
        gather(pair);
    else
        tunnel_ready(&pair->tunnel, events);
}

static void expired(struct client *client, enum clock_of clock)
{
    (void)clock;
    client_end(client, CLIENT_IDLE);
}

static bool is_busy(const struct client *client)
{
    (void)client;
    return true;
}

static void end(struct client *client)
{
    struct pair *pair = (struct pair *)client;

    if (pair->tunnel.counts != NULL)
        pair->tunnel.counts->held--;
    if (pair->lease.channel != NULL)
        pool_release(&pair->lease, POOL_DISCARD);
    else
        pool_cancel(&pair->lease);
    tunnel_end(&pair->tunnel);
}

const struct mode mode_tcp = {
    .name = "tcp",
    .size = sizeof(struct pair),
    .begin = begin,
    .ready = ready,
    .expired = expired,
    .is_busy = is_busy,
    .end = end,
};
