/* listener.c - an acceptor held while its worker is full: further clients wait in the kernel's line, not in memory.
 *
 * A client takes two descriptors, its own and its link's. Once they have run out a client is taken in only while none
 * waits for a link: else those at the door would take the descriptors that those inside wait for. */
#include "examples/lbproxy/listener.h"

#include <linkpool/pool.h>

#include "examples/lbproxy/client.h"
#include "examples/lbproxy/worker.h"

static bool is_full(const struct listener *listener)
{
    return listener->worker->n_clients >= listener->max_clients;
}

static bool does_any_wait(const struct listener *listener)
{
    struct pool_stats stats;

    pool_stats(listener->worker->pool, &stats, sizeof stats);
    return stats.waiting > 0;
}

static bool may_accept(struct acceptor *acceptor)
{
    const struct listener *listener = acceptor->data;

    return !is_full(listener) && !(acceptor->scarce && does_any_wait(listener));
}

static void on_accepted(struct acceptor *acceptor, int fd)
{
    struct listener *listener = acceptor->data;

    client_new(listener->worker, fd);
}

void listener_start(struct listener *listener, struct worker *worker, int fd, unsigned max_clients)
{
    listener->worker = worker;
    listener->max_clients = max_clients;
    listener->acceptor.accepted = on_accepted;
    listener->acceptor.may = may_accept;
    listener->acceptor.data = listener;
    acceptor_start(&listener->acceptor, worker->loop, fd);
}

void listener_make_room(struct listener *listener)
{
    if (acceptor_is_paused(&listener->acceptor) && may_accept(&listener->acceptor))
        acceptor_resume(&listener->acceptor);
}

void listener_short(struct listener *listener)
{
    acceptor_pause(&listener->acceptor);
}

void listener_enough(struct listener *listener)
{
    listener->acceptor.scarce = false;
    listener_make_room(listener);
}

void listener_stop(struct listener *listener)
{
    acceptor_stop(&listener->acceptor);
}

const char *listener_state(const struct listener *listener)
{
    if (listener->acceptor.io.fd < 0)
        return "closed";
    if (is_full(listener))
        return "full";
    return acceptor_is_paused(&listener->acceptor) ? "paused" : "open";
}
