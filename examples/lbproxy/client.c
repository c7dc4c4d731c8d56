/* client.c - a client's socket on the worker's loop. Clients stand in the order in which bytes last moved, so that one
 * timer a worker finds the quiet ones. */
#include "examples/lbproxy/client.h"

#include <errno.h>
#include <linkpool/error.h>
#include <linkpool/pool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "examples/common/loop.h"
#include "examples/common/sockets.h"
#include "examples/lbproxy/mode.h"
#include "examples/lbproxy/options.h"
#include "examples/lbproxy/worker.h"

const char *client_reason_name(enum client_reason reason)
{
    static const char *const names[CLIENT_REASONS] = {"served", "unserved", "broken", "idle", "stopped"};

    return names[reason];
}

static void on_event(struct ev_loop *loop, ev_io *io, int events)
{
    struct client *client = io->data;

    (void)loop;
    client->worker->options->mode->ready(client, events);
}

void client_new(struct worker *worker, int fd)
{
    struct client *client = calloc(1, worker->options->mode->size);

    worker->counts.accepted++;
    if (client == NULL) {
        worker->counts.ended[CLIENT_UNSERVED]++;
        socket_reset(fd);
        return;
    }
    socket_no_delay(fd);
    client->worker = worker;
    client->last = pool_now(worker->pool);
    ev_io_init(&client->io, on_event, fd, 0);
    client->io.data = client;
    DL_APPEND(worker->clients, client);
    worker->n_clients++;
    worker_watch_idle(worker);
    worker->options->mode->begin(client);
}

void client_end(struct client *client, enum client_reason reason)
{
    struct worker *worker = client->worker;

    worker->options->mode->end(client);
    worker->counts.ended[reason]++;
    worker->n_clients--;
    DL_DELETE(worker->clients, client);
    ev_io_stop(worker->loop, &client->io);
    if (reason == CLIENT_SERVED || reason == CLIENT_IDLE)
        close(client->io.fd);
    else
        socket_reset(client->io.fd);
    free(client);
    listener_make_room(&worker->listener);
}

void client_want(struct client *client, int events)
{
    loop_want(client->worker->loop, &client->io, events);
}

static ssize_t failed(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR ? LINKPOOL_EAGAIN : LINKPOOL_ELOST;
}

ssize_t client_read(struct client *client, void *bytes, size_t n)
{
    ssize_t got = recv(client->io.fd, bytes, n, 0);

    return got >= 0 ? got : failed(errno);
}

ssize_t client_write(struct client *client, const void *bytes, size_t n)
{
    ssize_t sent = send(client->io.fd, bytes, n, MSG_NOSIGNAL);

    return sent >= 0 ? sent : failed(errno);
}

void client_shutdown(struct client *client)
{
    shutdown(client->io.fd, SHUT_WR);
}

void client_touch(struct client *client)
{
    struct worker *worker = client->worker;

    client->last = pool_now(worker->pool);
    if (client->next == NULL)
        return; /* the last already */
    DL_DELETE(worker->clients, client);
    DL_APPEND(worker->clients, client);
}

double clients_expire(struct worker *worker)
{
    double timeout = worker->options->idle_timeout;
    double now = pool_now(worker->pool);

    while (worker->clients != NULL && worker->clients->last + timeout <= now)
        client_end(worker->clients, CLIENT_IDLE);
    return worker->clients == NULL ? -1 : worker->clients->last + timeout - now;
}

void clients_end(struct worker *worker, enum client_reason reason)
{
    while (worker->clients != NULL)
        client_end(worker->clients, reason);
}
