/* listener.c - an acceptor held while its worker is full: further clients wait in the kernel's line, not in memory. */
#include "examples/lbproxy/listener.h"

#include "examples/lbproxy/client.h"
#include "examples/lbproxy/worker.h"

static bool is_full(const struct listener *listener)
{
    return listener->worker->n_clients >= listener->max_clients;
}

static void on_accepted(struct acceptor *acceptor, int fd)
{
    struct listener *listener = acceptor->data;

    client_new(listener->worker, fd);
    if (is_full(listener))
        acceptor_hold(acceptor);
}

void listener_start(struct listener *listener, struct worker *worker, int fd, unsigned max_clients)
{
    listener->worker = worker;
    listener->max_clients = max_clients;
    listener->acceptor.accepted = on_accepted;
    listener->acceptor.data = listener;
    acceptor_start(&listener->acceptor, worker->loop, fd);
}

void listener_make_room(struct listener *listener)
{
    if (acceptor_is_paused(&listener->acceptor) && !is_full(listener))
        acceptor_resume(&listener->acceptor);
}

void listener_pause(struct listener *listener)
{
    acceptor_pause(&listener->acceptor);
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
