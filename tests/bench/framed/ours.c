/* ours.c - the same callers, by pool_call() over `framed` on libev. */
#include <ev.h>
#include <linkpool/linkpool.h>
#include <string.h>

#include "tests/bench/framed/ours.h"

struct caller {
    struct pool_call call;
    struct ours *ours;
    unsigned char request[BARE_PAYLOAD];
};

struct ours {
    struct ev_loop *loop;
    struct framed_options framed;
    struct protocol protocol;
    struct pool *pool;
    struct pool_host *host;
    struct caller *callers;
    unsigned n_callers, n_links, to_ask, to_hear;
};

static void ask(struct caller *caller)
{
    caller->ours->to_ask--;
    if (pool_call(caller->ours->pool, &caller->call) != POOL_PENDING)
        bare_die("a call is refused");
}

static void on_done(struct pool_call *call)
{
    struct caller *caller = call->data;

    if (call->status || call->answer_size != BARE_PAYLOAD || memcmp(call->answer, caller->request, BARE_PAYLOAD))
        bare_die("a call that failed, or another's answer");
    caller->ours->to_hear--;
    if (caller->ours->to_ask)
        ask(caller);
}

/* As many channels a link as bring the callers nearly evenly to the links, and one to spare, as most links have. */
static void open_pool(struct ours *ours, const char *address)
{
    struct pool_host_options host;
    struct pool_endpoint endpoint = {.size = sizeof endpoint, .address = address};
    struct pool_options options;

    framed_options_init(&ours->framed);
    ours->protocol = framed_protocol(&ours->framed);
    pool_host_options_init(&host);
    host.protocol = &ours->protocol;
    host.max_channels = (ours->n_callers + ours->n_links - 1) / ours->n_links + 1;
    host.min_links = host.max_links = ours->n_links;
    pool_options_init(&options);
    options.host = &host;
    if (!(ours->pool = pool_new(ours->loop, &options)) || !(ours->host = pool_host_for(ours->pool, &endpoint, &host)))
        bare_die("no pool");
}

struct ours *ours_new(const char *address, unsigned n_links, unsigned n_callers)
{
    struct ours *ours = calloc(1, sizeof *ours);

    if (!ours || !(ours->callers = calloc(n_callers, sizeof *ours->callers)))
        bare_die("out of memory");
    ours->loop = ev_loop_new(0);
    ours->n_links = n_links;
    ours->n_callers = n_callers;
    open_pool(ours, address);
    for (unsigned i = 0; i < n_callers; i++) {
        struct caller *caller = &ours->callers[i];
        caller->ours = ours;
        memcpy(caller->request, &i, sizeof i);
        caller->call = (struct pool_call){.host = ours->host,
            .request = caller->request,
            .request_size = BARE_PAYLOAD,
            .done = on_done,
            .data = caller};
    }
    return ours;
}

void ours_call(struct ours *ours, unsigned n)
{
    ours->to_ask = ours->to_hear = n;
    for (unsigned i = 0; i < ours->n_callers && ours->to_ask; i++)
        ask(&ours->callers[i]);
    while (ours->to_hear)
        ev_run(ours->loop, EVRUN_ONCE);
}

void ours_free(struct ours *ours)
{
    pool_free(ours->pool);
    ev_loop_destroy(ours->loop);
    free(ours->callers);
    free(ours);
}
