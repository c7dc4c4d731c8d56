/* channels.c - what a channel of a framed link costs, by an allocator that counts: in use, with its request sent. */
#include <linkpool/linkpool.h>

#include "tests/bench/framed/ours.h"

enum {
    CHANNELS = 1000,
    BLOCK = 4096 /* what is gathered for a turn is written from such, and a few are kept: buffers, not channels */
};

static const char hello_ack[] = "\0\0\0\14\2\0\0\0\0\0\0\0\0\0\0\1\0\20\0\0\0\0\3\350";

static void on_leased(struct pool_lease *lease)
{
    if (lease->status != POOL_READY)
        bare_die("no channel");
}

static struct pool *open_pool(struct testing *t)
{
    struct testing_peer *peer = testing_peer_add(t, "10.0.0.1:80", TESTING_ACCEPT);
    struct pool_host_options host;
    struct pool_options options;
    struct pool *pool;

    testing_peer_greet(peer, hello_ack, sizeof hello_ack - 1);
    pool_host_options_init(&host);
    host.protocol = &protocol_framed;
    host.max_links = 1;
    pool_options_init(&options);
    options.host = &host;
    options.env = testing_env(t);
    if (!(pool = pool_new_on(testing_driver(t), &options)))
        bare_die("no pool");
    return pool;
}

/* One request at a time, so that what is gathered for one turn takes one block, which is there. */
double channel_bytes(void)
{
    static struct pool_lease leases[CHANNELS];
    struct testing *t = testing_new(1);
    struct pool *pool = open_pool(t);
    size_t before = 0;

    for (int i = 0; i < CHANNELS; i++) {
        leases[i].done = on_leased;
        if (pool_acquire(pool, "10.0.0.1:80", &leases[i]) < 0)
            bare_die("no channel");
        testing_run_for(t, 0.01);
        if (!i)
            before = testing_bytes(t) + BLOCK;
        if (channel_send(leases[i].channel, "x", 1))
            bare_die("no request");
        testing_run_for(t, 0.01);
    }
    double bytes = (double)(testing_bytes(t) - before) / (CHANNELS - 1);
    pool_free(pool);
    testing_free(t);
    return bytes;
}
