/* fanout.c - a server that answers each line by asking all its backends at once (fanout_core.h).
 *
 * A client's lines are answered one after the other: while one is asked or its answer is being sent, no further byte of
 * that client is read. */
#include <errno.h>
#include <ev.h>
#include <getopt.h>
#include <linkpool/pool.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "examples/common/acceptor.h"
#include "examples/common/loop.h"
#include "examples/common/options.h"
#include "examples/common/sockets.h"
#include "examples/fanout_core.h"

struct server {
    const char *listen;
    const char *backends[FANOUT_MAX_BACKENDS];
    unsigned n_backends, max_clients;
    double deadline;
    struct ev_loop *loop;
    struct pool *pool;
    struct fanout *fanout;
    struct acceptor acceptor;
    struct asker *askers;
    unsigned n_askers;
};

/* One client. */
struct asker {
    struct server *server;
    struct asker *prev, *next;
    struct ev_io io;
    ev_timer deadline;
    struct fanout_question *question; /* NULL: none under way */
    char line[FANOUT_MAX_QUESTION + 2];
    size_t got;
    char *answer; /* being sent; NULL: none */
    size_t size, sent;
};

static void end_asker(struct asker *asker)
{
    struct server *server = asker->server;

    fanout_end(asker->question);
    ev_io_stop(server->loop, &asker->io);
    ev_timer_stop(server->loop, &asker->deadline);
    close(asker->io.fd);
    DL_DELETE(server->askers, asker);
    free(asker->answer);
    free(asker);
    server->n_askers--;
    acceptor_resume(&server->acceptor);
}

static void watch(struct asker *asker, int events)
{
    loop_want(asker->server->loop, &asker->io, events);
}

/* ---- answering ---- */

/* Returns true when the whole answer is out; the asker may be gone when it is not. */
static bool send_answer(struct asker *asker)
{
    ssize_t n = send(asker->io.fd, asker->answer + asker->sent, asker->size - asker->sent, MSG_NOSIGNAL);

    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        end_asker(asker);
        return false;
    }
    asker->sent += n > 0 ? (size_t)n : 0;
    if (asker->sent < asker->size) {
        watch(asker, EV_WRITE);
        return false;
    }
    free(asker->answer);
    asker->answer = NULL;
    watch(asker, EV_READ);
    return true;
}

static bool merge(struct asker *asker)
{
    int n = fanout_merge(asker->question, NULL, 0);

    asker->answer = n < 0 ? NULL : malloc((size_t)n + 1);
    if (asker->answer == NULL)
        return false;
    fanout_merge(asker->question, asker->answer, (size_t)n + 1);
    asker->size = (size_t)n;
    asker->sent = 0;
    return true;
}

/* The question is complete. Returns as send_answer(). */
static bool finish(struct asker *asker)
{
    bool merged = merge(asker);

    ev_timer_stop(asker->server->loop, &asker->deadline);
    fanout_end(asker->question);
    asker->question = NULL;
    if (!merged) {
        end_asker(asker);
        return false;
    }
    return send_answer(asker);
}

/* ---- asking ---- */

static void on_complete(struct fanout_question *question, void *data);

/* Asks the first whole line. Returns false when the next must wait, or there is none; the asker may be gone then. */
static bool ask_next(struct asker *asker)
{
    struct server *server = asker->server;
    char *line_end = memchr(asker->line, '\n', asker->got);
    size_t n;

    if (line_end == NULL) {
        if (asker->got == sizeof asker->line)
            end_asker(asker); /* the line is too long */
        return false;
    }
    n = (size_t)(line_end - asker->line);
    asker->question =
        fanout_ask(server->fanout, asker->line, n > 0 && line_end[-1] == '\r' ? n - 1 : n, on_complete, asker);
    asker->got -= n + 1;
    memmove(asker->line, line_end + 1, asker->got);
    if (asker->question == NULL) {
        end_asker(asker);
        return false;
    }
    if (fanout_is_complete(asker->question))
        return finish(asker);
    ev_timer_set(&asker->deadline, server->deadline, 0);
    ev_timer_start(server->loop, &asker->deadline);
    return false;
}

static void go_on(struct asker *asker)
{
    while (ask_next(asker))
        ;
}

static void on_complete(struct fanout_question *question, void *data)
{
    (void)question;
    if (finish(data))
        go_on(data);
}

static void on_deadline(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct asker *asker = timer->data;

    (void)loop, (void)events;
    fanout_deadline(asker->question);
    if (finish(asker))
        go_on(asker);
}

static void on_ready(struct ev_loop *loop, ev_io *io, int events)
{
    struct asker *asker = io->data;
    ssize_t n;

    (void)loop, (void)events;
    if (asker->answer != NULL) {
        if (send_answer(asker))
            go_on(asker);
        return;
    }
    if (asker->question != NULL) {
        watch(asker, 0); /* impatient: not before the answer is out */
        return;
    }
    n = recv(io->fd, asker->line + asker->got, sizeof asker->line - asker->got, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        end_asker(asker);
        return;
    }
    asker->got += (size_t)n;
    go_on(asker);
}

static void on_accepted(struct acceptor *acceptor, int fd)
{
    struct server *server = acceptor->data;
    struct asker *asker = calloc(1, sizeof *asker);

    if (asker == NULL) {
        close(fd);
        return;
    }
    socket_no_delay(fd);
    asker->server = server;
    ev_timer_init(&asker->deadline, on_deadline, 0, 0);
    asker->deadline.data = asker;
    ev_io_init(&asker->io, on_ready, fd, EV_READ);
    asker->io.data = asker;
    ev_io_start(server->loop, &asker->io);
    DL_APPEND(server->askers, asker);
    if (++server->n_askers >= server->max_clients)
        acceptor_hold(acceptor);
}

/* ---- the program ---- */

static const char help[] = /* */
    "Usage: fanout --backend ADDR [--backend ADDR ...] [OPTION]...\n"
    "Answers each line of a client by asking all backends at once: their answers, and which are missing and why.\n"
    "\n"
    "  --backend ADDR   answers a line with a line (redis does, to inline commands); up to 64\n"
    "  --listen ADDR    where clients come (127.0.0.1:0: a port the system picks); printed as 'listening on ADDR'\n"
    "  --deadline S     who has not answered by then is missing (1)\n"
    "  --max-clients N  at once (256)\n"
    "  --help, --version\n";

static const struct option options[] = {
    {"listen", required_argument, NULL, 'l'},
    {"backend", required_argument, NULL, 'b'},
    {"deadline", required_argument, NULL, 'd'},
    {"max-clients", required_argument, NULL, 'C'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'v'},
    {0},
};

static void add_backend(struct server *server, const char *address)
{
    char why[160];

    if (link_address_check(address, why, sizeof why) < 0)
        die_usage("--backend: '%s': %s", address, why);
    if (server->n_backends == FANOUT_MAX_BACKENDS)
        die_usage("--backend: '%s': more than %d backends", address, FANOUT_MAX_BACKENDS);
    server->backends[server->n_backends++] = address;
}

static void take_options(struct server *server, int argc, char **argv)
{
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
        /* clang-format off */
        switch (option) {
        case 'l': server->listen = optarg; break;
        case 'b': add_backend(server, optarg); break;
        case 'd': server->deadline = option_seconds("--deadline", optarg, 0.001, 86400); break;
        case 'C': server->max_clients = option_count("--max-clients", optarg, 1, 100000); break;
        case 'h': print_help(help);
        case 'v': print_version();
        default: exit(2); /* getopt_long() has named it */
        }
    /* clang-format on */
    if (optind < argc)
        die_usage("'%s': options alone are expected", argv[optind]);
    if (server->n_backends == 0)
        die_usage("--backend ADDR is missing");
}

static void start(struct server *server)
{
    int fd = socket_listen("--listen", server->listen, false);

    server->pool = pool_new(server->loop, NULL);
    if (server->pool == NULL)
        die("pool: %s", strerror(errno));
    server->fanout = fanout_new(server->pool, server->backends, server->n_backends);
    if (server->fanout == NULL)
        die("--backend: %s", strerror(errno));
    socket_announce("listening", fd);
    server->acceptor.accepted = on_accepted;
    server->acceptor.data = server;
    acceptor_start(&server->acceptor, server->loop, fd);
}

int main(int argc, char **argv)
{
    static struct server server = {.listen = "127.0.0.1:0", .deadline = 1, .max_clients = 256};
    struct loop_end end;

    program_name = argv[0] = "fanout";
    take_options(&server, argc, argv);
    server.loop = ev_default_loop(0);
    loop_end_on_signals(server.loop, &end);
    start(&server);
    ev_run(server.loop, 0);
    acceptor_stop(&server.acceptor);
    while (server.askers != NULL)
        end_asker(server.askers);
    fanout_free(server.fanout);
    pool_free(server.pool);
    socket_remove_file(server.listen);
    ev_loop_destroy(server.loop);
    return 0;
}
