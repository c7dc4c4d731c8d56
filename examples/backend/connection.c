/* connection.c - one client's connection: requests read one at a time, and what each is told in return. */
#include "examples/backend/connection.h"

#include <errno.h>
#include <ev.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utlist.h>

#include "examples/backend/server.h"
#include "examples/common/loop.h"
#include "examples/common/options.h"
#include "examples/common/request.h"
#include "examples/common/sockets.h"

/* What becomes of a connection once its answer is out. */
enum then {
    THEN_READ,
    THEN_CLOSE,
    THEN_RESET
};

struct connection {
    struct server *server;
    struct connection *prev, *next;
    struct ev_io io;
    ev_timer delay;
    struct request request;
    bool busy; /* with an answer: nothing is read meanwhile */
    enum then then;
    char head[512]; /* of the answer */
    size_t head_sent, head_n, body_left;
    size_t in_start, in_end; /* what of `in` is not parsed yet */
    char in[16384];
};

static void log_id(struct server *server, const char *id)
{
    char line[REQUEST_MAX_ID + 2];
    int n = snprintf(line, sizeof line, "%s\n", id[0] == '\0' ? "-" : id);

    if (server->log >= 0 && write(server->log, line, (size_t)n) != n)
        die("--log: %s: %s", server->settings.log, strerror(errno));
}

/* ---- a connection's end ---- */

static void end_connection(struct connection *connection, enum then how)
{
    struct server *server = connection->server;

    ev_io_stop(server->loop, &connection->io);
    ev_timer_stop(server->loop, &connection->delay);
    if (how == THEN_RESET)
        socket_reset(connection->io.fd);
    else
        close(connection->io.fd);
    DL_DELETE(server->connections, connection);
    free(connection);
    acceptor_resume(&server->acceptor);
}

/* ---- answers ---- */

static void compose(struct connection *connection, const char *status, size_t body, unsigned times)
{
    const struct settings *settings = &connection->server->settings;
    int n = snprintf(connection->head, sizeof connection->head,
        "HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\nX-Backend: %s\r\nX-Request-Id: %s\r\n"
        "X-Times: %u\r\nConnection: %s\r\n\r\n",
        status, body, settings->name, connection->request.id[0] == '\0' ? "-" : connection->request.id, times,
        connection->request.keep_alive ? "keep-alive" : "close");

    connection->head_sent = 0;
    connection->head_n = (size_t)n;
    connection->body_left = connection->request.is_head ? 0 : body;
}

static bool is_turn(uint64_t request, unsigned every)
{
    return every != 0 && request % every == 0;
}

/* What the command line asks for this request: an answer, or the lack of one. */
static void decide_answer(struct connection *connection)
{
    struct server *server = connection->server;
    const struct settings *settings = &server->settings;
    uint64_t request = ++server->requests;
    unsigned times = connection->request.id[0] == '\0' ? 0 : tally_add(&server->ids, connection->request.id);

    log_id(server, connection->request.id);
    connection->then = connection->request.keep_alive ? THEN_READ : THEN_CLOSE;
    compose(connection, is_turn(request, settings->fail_every) ? "500 Internal Server Error" : "200 OK", settings->body,
        times);
    if (is_turn(request, settings->close_every))
        connection->then = THEN_CLOSE;
    if (is_turn(request, settings->drop_every) || is_turn(request, settings->reset_every)) {
        connection->then = is_turn(request, settings->reset_every) ? THEN_RESET : THEN_CLOSE;
        connection->head_n = connection->body_left = 0;
    }
}

/* Sends what is left. Returns 1 when all is out, 0 when it goes on later, -1 when the peer is gone. */
static int send_answer(struct connection *connection)
{
    while (connection->head_sent < connection->head_n || connection->body_left > 0) {
        struct server *server = connection->server;
        struct iovec parts[2] = {{connection->head + connection->head_sent, connection->head_n - connection->head_sent},
            {server->filler,
                connection->body_left < sizeof server->filler ? connection->body_left : sizeof server->filler}};
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
        ssize_t n = sendmsg(connection->io.fd, &message, MSG_NOSIGNAL);
        size_t of_head;

        if (n < 0)
            return errno == EAGAIN || errno == EINTR ? 0 : -1;
        of_head = (size_t)n < parts[0].iov_len ? (size_t)n : parts[0].iov_len;
        connection->head_sent += of_head;
        connection->body_left -= (size_t)n - of_head;
    }
    return 1;
}

static void watch(struct connection *connection, int events)
{
    loop_want(connection->server->loop, &connection->io, events);
}

/* Returns false when the connection is gone. */
static bool answer(struct connection *connection)
{
    int done = send_answer(connection);

    connection->busy = done == 0;
    if (done == 0) {
        watch(connection, EV_WRITE);
        return true;
    }
    if (done < 0 || connection->then != THEN_READ) {
        end_connection(connection, done < 0 ? THEN_CLOSE : connection->then);
        return false;
    }
    watch(connection, EV_READ);
    return true;
}

static bool start_answer(struct connection *connection)
{
    double delay = connection->server->settings.delay;

    decide_answer(connection);
    if (delay <= 0)
        return answer(connection);
    connection->busy = true;
    watch(connection, 0);
    ev_timer_set(&connection->delay, delay, 0);
    ev_timer_start(connection->server->loop, &connection->delay);
    return true;
}

/* ---- input ---- */

/* Parses what is there, up to one whole request. Returns false when the connection is gone. */
static bool parse(struct connection *connection)
{
    struct request *request = &connection->request;
    size_t used;
    enum request_step step =
        request_parse(request, connection->in + connection->in_start, connection->in_end - connection->in_start, &used);

    connection->in_start += used;
    if (step == REQUEST_MORE)
        return true;
    if (step == REQUEST_WHOLE)
        return start_answer(connection);
    connection->then = THEN_CLOSE;
    compose(connection, request->refusal, 0, 0);
    return answer(connection);
}

/* Reads once. Returns false when there is nothing, or the connection is gone. */
static bool fill(struct connection *connection)
{
    ssize_t n = recv(connection->io.fd, connection->in, sizeof connection->in, 0);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0) {
        end_connection(connection, THEN_CLOSE);
        return false;
    }
    connection->in_start = 0;
    connection->in_end = (size_t)n;
    return true;
}

static void serve(struct connection *connection)
{
    while (connection->in_start < connection->in_end)
        if (!parse(connection) || connection->busy)
            return;
}

static void on_ready(struct ev_loop *loop, ev_io *io, int events)
{
    struct connection *connection = io->data;

    (void)loop, (void)events;
    if (connection->busy) {
        if (answer(connection) && !connection->busy)
            serve(connection);
    } else if (fill(connection)) {
        serve(connection);
    }
}

static void on_delay_over(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct connection *connection = timer->data;

    (void)loop, (void)events;
    if (answer(connection) && !connection->busy)
        serve(connection);
}

void connection_new(struct server *server, int fd)
{
    struct connection *connection = calloc(1, sizeof *connection);

    if (connection == NULL) {
        close(fd);
        return;
    }
    socket_no_delay(fd);
    connection->server = server;
    request_init(&connection->request);
    ev_timer_init(&connection->delay, on_delay_over, 0, 0);
    connection->delay.data = connection;
    ev_io_init(&connection->io, on_ready, fd, EV_READ);
    connection->io.data = connection;
    ev_io_start(server->loop, &connection->io);
    DL_APPEND(server->connections, connection);
}

void connections_end(struct server *server)
{
    while (server->connections != NULL)
        end_connection(server->connections, THEN_CLOSE);
}
