/* backend.c - one of the storm's backends: an HTTP/1.1 server that behaves as its seed has it, and writes down what
 * came and what it does.
 *
 *     storm_backend --listen ADDR --number N --seed S --log FILE [--idle SECONDS]
 *
 * Its log: TIME PROCESS CONNECTION, then one of
 *     head ID METHOD BEHAVIOUR FRAMING STATUS  a request's head is here, and what is to be done to it
 *     whole ID                          and its body, which was right
 *     broken_off ID                     the connection ended within the body
 *     part ID|-                         the connection ended within the head
 *     clear ID                          a second answer has gone out, and no further request had come
 *     crossed ID NEXT                   one had: the proxy had sent it before it could know; so the connection is reset
 *     skipped ID                        no second answer, since a further request had come
 *     idle ID                           closed, --idle after the answer to it (0: it never had a request)
 *     exit ID                           the process ends
 *     WRONG ID WHY                      what came is not what the client has sent */
#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "examples/common/acceptor.h"
#include "examples/common/loop.h"
#include "examples/common/options.h"
#include "examples/common/sockets.h"
#include "tests/proxy/storm/arrival.h"
#include "tests/proxy/storm/plan.h"
#include "tests/proxy/storm/script.h"

struct server {
    const char *listen;
    unsigned number;
    double idle; /* seconds; 0: idle connections stay */
    struct journal journal;
    char name[2];
    struct ev_loop *loop;
    struct acceptor acceptor;
    unsigned connections; /* so far */
};

struct connection {
    struct server *server;
    struct ev_io io;
    ev_timer timer; /* a pause of the script, or a stray to come */
    ev_timer idle;
    struct arrival arrival;
    bool answering, answered; /* the request: its answer goes out, has gone out */
    struct script script;
};

static void say_of(const struct connection *connection, const char *what)
{
    journal_say(
        &connection->server->journal, connection->arrival.connection, "%s %" PRIu64, what, connection->arrival.wish.id);
}

/* ---- a connection's end ---- */

static void end_connection(struct connection *connection, bool by_reset)
{
    struct server *server = connection->server;

    arrival_end(&connection->arrival);
    ev_io_stop(server->loop, &connection->io);
    ev_timer_stop(server->loop, &connection->timer);
    ev_timer_stop(server->loop, &connection->idle);
    if (by_reset)
        socket_reset(connection->io.fd);
    else
        close(connection->io.fd);
    acceptor_resume(&server->acceptor);
    script_free(&connection->script);
    free(connection);
}

/* ---- answers ---- */

static void start_timer(struct connection *connection, ev_timer *timer, double seconds)
{
    ev_timer_stop(connection->server->loop, timer);
    ev_timer_set(timer, seconds, 0);
    ev_timer_start(connection->server->loop, timer);
}

static void start_idle(struct connection *connection)
{
    if (connection->server->idle > 0)
        start_timer(connection, &connection->idle, connection->server->idle);
}

static struct asked what_was_asked(const struct connection *connection, char taken[PLAN_DIGEST])
{
    const struct arrival *arrival = &connection->arrival;

    snprintf(taken, PLAN_DIGEST, arrival->whole ? "-" : "early");
    if (arrival->whole && arrival->wish.has_body)
        digest_text(&arrival->digest, taken);
    return (struct asked){&arrival->wish, &arrival->act, connection->server->name, arrival->field[ARRIVAL_ID],
        arrival->field[ARRIVAL_COOKIE] + 2, taken};
}

/* Bytes that have come and nobody has read: then the proxy had sent them before it could see what we have just sent. */
static bool more_has_come(const struct connection *connection)
{
    int unread = 0;

    return ioctl(connection->io.fd, FIONREAD, &unread) == 0 && unread > 0;
}

/* Names the request that has come, if that can be seen. */
static void say_crossed(const struct connection *connection)
{
    char bytes[128] = "";
    ssize_t n = recv(connection->io.fd, bytes, sizeof bytes - 1, MSG_PEEK);
    const char *at = n > 0 ? strstr(bytes, "?id=") : NULL;
    uint64_t next = at == NULL ? 0 : strtoull(at + 4, NULL, 10);

    journal_say(&connection->server->journal, connection->arrival.connection, "crossed %" PRIu64 " %" PRIu64,
        connection->arrival.wish.id, next);
}

/* The answer is out: what follows. Returns false when the connection is gone. */
static bool finish(struct connection *connection)
{
    const struct script *script = &connection->script;

    connection->answering = false;
    connection->answered = true;
    loop_want(connection->server->loop, &connection->io, EV_READ);
    if (script->strays && more_has_come(connection)) { /* the stray will be taken for its answer: let that be all */
        say_crossed(connection);
        end_connection(connection, true);
        return false;
    }
    if (script->strays)
        say_of(connection, "clear");
    switch (script->then) {
    case THEN_EXIT:
        say_of(connection, "exit");
        _exit(0);
    case THEN_CLOSE:
    case THEN_RESET:
        end_connection(connection, script->then == THEN_RESET);
        return false;
    case THEN_HANG:
        return true;
    case THEN_READ:
        break;
    }
    if (script->stray_after > 0)
        start_timer(connection, &connection->timer, script->stray_after);
    if (connection->arrival.whole)
        start_idle(connection);
    return true;
}

/* How much the next write takes. */
static size_t next_part(const struct script *script)
{
    size_t part = (script->sent < script->stop ? script->stop : script->n) - script->sent;

    if (script->piece != 0 && script->sent < SCRIPT_PIECEMEAL && script->piece < part)
        return script->piece;
    return part;
}

static bool pauses_here(struct connection *connection)
{
    struct script *script = &connection->script;

    if (script->sent != script->stop || script->pause <= 0)
        return false;
    loop_want(connection->server->loop, &connection->io, EV_READ);
    start_timer(connection, &connection->timer, script->pause);
    script->pause = 0;
    return true;
}

/* Sends what may go now. Returns false when the connection is gone. */
static bool go_on(struct connection *connection)
{
    struct script *script = &connection->script;

    while (script->sent < script->n) {
        ssize_t n;

        if (pauses_here(connection))
            return true;
        n = send(connection->io.fd, script->bytes + script->sent, next_part(script), MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN) {
            end_connection(connection, false);
            return false;
        }
        script->sent += n < 0 ? 0 : (size_t)n;
        if (n < 0 || (script->piece != 0 && script->sent < script->n)) { /* a piece a turn */
            loop_want(connection->server->loop, &connection->io, EV_READ | EV_WRITE);
            return true;
        }
    }
    return finish(connection);
}

/* Returns false when the connection is gone. */
static bool start_answer(struct connection *connection)
{
    char taken[PLAN_DIGEST];
    struct asked asked = what_was_asked(connection, taken);

    connection->answering = true;
    script_write(&connection->script, &asked);
    return go_on(connection);
}

static void send_stray(struct connection *connection)
{
    char taken[PLAN_DIGEST];
    struct asked asked = what_was_asked(connection, taken);

    if (more_has_come(connection)) {
        say_of(connection, "skipped");
        return;
    }
    script_write_stray(&connection->script, &asked);
    connection->answering = true;
    go_on(connection);
}

static void on_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct connection *connection = timer->data;

    (void)loop, (void)events;
    if (connection->answering)
        go_on(connection);
    else
        send_stray(connection);
}

static void on_idle(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct connection *connection = timer->data;

    (void)loop, (void)events;
    say_of(connection, "idle");
    end_connection(connection, false);
}

/* ---- requests ---- */

static bool answers_early(const struct connection *connection)
{
    enum plan_behaviour behaviour = connection->arrival.act.behaviour;

    return connection->arrival.wish.body > 0 &&
           (behaviour == BEHAVIOUR_EARLY || behaviour == BEHAVIOUR_EARLY_CLOSE || behaviour == BEHAVIOUR_RESET_EARLY);
}

/* What a client that expects it is told before its body. */
static void tell_to_continue(const struct connection *connection)
{
    static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";

    if (send(connection->io.fd, text, sizeof text - 1, MSG_NOSIGNAL) < 0)
        return; /* the peer has gone: reading will tell */
}

/* A second answer that is still to come would now be taken for the first. */
static void begin_request(struct connection *connection)
{
    if (connection->answering)
        arrival_is_wrong(&connection->arrival, "a request before the answer to this");
    connection->answered = false;
    if (!connection->answering && ev_is_active(&connection->timer)) {
        ev_timer_stop(connection->server->loop, &connection->timer);
        say_of(connection, "skipped");
    }
}

/* Takes what belongs to one request. Returns false when the connection is gone. */
static bool take(struct connection *connection, const char *bytes, size_t n, size_t *used)
{
    struct arrival *arrival = &connection->arrival;
    bool had_head = arrival->begun && arrival->headed;

    if (!arrival->begun)
        begin_request(connection);
    if (!arrival_take(arrival, bytes, n, used)) {
        end_connection(connection, false);
        return false;
    }
    if (!arrival->headed || connection->answering)
        return true;
    if (!had_head && arrival->field[ARRIVAL_EXPECT][0] != '\0' && !answers_early(connection))
        tell_to_continue(connection);
    if (!connection->answered && (arrival->whole || answers_early(connection)))
        return start_answer(connection);
    if (arrival->whole)
        start_idle(connection); /* answered before */
    return true;
}

static void on_ready(struct ev_loop *loop, ev_io *io, int events)
{
    struct connection *connection = io->data;
    static char bytes[65536];
    size_t used;
    ssize_t n;

    (void)loop;
    if ((events & EV_WRITE) != 0 && connection->answering && !go_on(connection))
        return;
    n = recv(io->fd, bytes, sizeof bytes, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        end_connection(connection, false);
        return;
    }
    ev_timer_stop(connection->server->loop, &connection->idle);
    for (const char *at = bytes; n > 0 && take(connection, at, (size_t)n, &used); at += used)
        n -= (ssize_t)used; /* after an early answer another request may stand right behind */
}

static void on_accepted(struct acceptor *acceptor, int fd)
{
    struct server *server = acceptor->data;
    struct connection *connection = calloc(1, sizeof *connection);

    if (connection == NULL)
        die("out of memory");
    socket_no_delay(fd);
    connection->server = server;
    arrival_begin(&connection->arrival, &server->journal, ++server->connections, server->number);
    ev_init(&connection->timer, on_timer);
    ev_init(&connection->idle, on_idle);
    ev_io_init(&connection->io, on_ready, fd, EV_READ);
    connection->io.data = connection->timer.data = connection->idle.data = connection;
    ev_io_start(server->loop, &connection->io);
    start_idle(connection);
}

/* ---- the program ---- */

static const struct option options[] = {
    {"listen", required_argument, NULL, 'l'},
    {"number", required_argument, NULL, 'n'},
    {"seed", required_argument, NULL, 's'},
    {"log", required_argument, NULL, 'o'},
    {"idle", required_argument, NULL, 'i'},
    {0},
};

static void take_options(struct server *server, int argc, char **argv)
{
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
        /* clang-format off */
        switch (option) {
        case 'l': server->listen = optarg; break;
        case 'n': server->number = option_count("--number", optarg, 0, 25); break;
        case 's': plan_begin(option_count("--seed", optarg, 0, UINT32_MAX)); break;
        case 'o': server->journal.path = optarg; break;
        case 'i': server->idle = option_seconds("--idle", optarg, 0, 3600); break;
        default: exit(2);
        }
    /* clang-format on */
    if (server->listen == NULL || server->journal.path == NULL)
        die_usage("--listen ADDR --number N --seed S --log FILE [--idle SECONDS]");
    server->name[0] = (char)('a' + server->number);
}

int main(int argc, char **argv)
{
    static struct server server;
    struct loop_end end;
    int fd;

    program_name = argv[0] = "storm_backend";
    take_options(&server, argc, argv);
    server.journal.fd = open(server.journal.path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    server.loop = ev_default_loop(0);
    if (server.journal.fd < 0 || server.loop == NULL)
        die("--log: %s: %s", server.journal.path, strerror(errno));
    loop_end_on_signals(server.loop, &end);
    fd = socket_listen("--listen", server.listen, false);
    socket_announce("listening", fd);
    server.acceptor.accepted = on_accepted;
    server.acceptor.data = &server;
    acceptor_start(&server.acceptor, server.loop, fd);
    ev_run(server.loop, 0);
    return 0;
}
