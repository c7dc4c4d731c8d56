/* client.c - a client's socket on the worker's loop. */
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
    ev_io_init(&client->io, on_event, fd, 0);
    client->io.data = client;
    clock_enter(client, CLOCK_NONE);
    worker->n_clients++;
    worker->options->mode->begin(client);
}

void client_end(struct client *client, enum client_reason reason)
{
    struct worker *worker = client->worker;

    worker->options->mode->end(client);
    worker->counts.ended[reason]++;
    worker->n_clients--;
    clock_leave(client);
    ev_io_stop(worker->loop, &client->io);
    if (reason == CLIENT_SERVED || reason == CLIENT_IDLE)
        close(client->io.fd);
    else
        socket_reset(client->io.fd);
    free(client);
    listener_make_room(&worker->listener);
    worker_client_gone(worker);
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

bool client_has_unread(const struct client *client)
{
    char byte;

    return recv(client->io.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

ssize_t client_writev(struct client *client, struct iovec *parts, int n)
{
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = (size_t)n};
    ssize_t sent;

    if (n == 1)
        sent = send(client->io.fd, parts->iov_base, parts->iov_len, MSG_NOSIGNAL);
    else
        sent = sendmsg(client->io.fd, &message, MSG_NOSIGNAL);
    return sent >= 0 ? sent : failed(errno);
}

void client_shutdown(struct client *client)
{
    shutdown(client->io.fd, SHUT_WR);
}

void clients_end(struct worker *worker, enum client_reason reason)
{
    for (enum clock_of which = CLOCK_NONE; which < CLOCKS; which++)
        while (worker->clocks[which].clients != NULL)
            client_end(worker->clocks[which].clients, reason);
}

void clients_drain(struct worker *worker)
{
    struct client *client, *next;

    for (enum clock_of which = CLOCK_NONE; which < CLOCKS; which++)
        DL_FOREACH_SAFE (worker->clocks[which].clients, client, next)
            if (!worker->options->mode->is_busy(client))
                client_end(client, CLIENT_SERVED);
}
