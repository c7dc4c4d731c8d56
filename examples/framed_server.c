/* framed_server.c - a server of framed calls (docs/linkpool-framed.7) for demos, benches and tests.
 *
 *     add    "add", 8 bytes of call id, 8 bytes of number   adds the number to the total; answers the total, 8 bytes
 *     total  "total"                                        answers the total and the count of adds, 8 bytes each
 *     echo   "echo", any bytes                              answers those bytes
 *
 * Numbers are big endian. What is said to a client is gathered and written once a turn; from a client that does not
 * read its answers nothing more is read. SIGTERM: each client is told that the server leaves (GOAWAY), what came
 * before is answered, and the program ends when the last client has gone, or after --drain seconds. */
#include <errno.h>
#include <ev.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "examples/common/acceptor.h"
#include "examples/common/loop.h"
#include "examples/common/options.h"
#include "examples/common/sockets.h"
#include "tests/fakes/framed_server.h"

enum {
    READ = 65536,
    MUCH = 1 << 20,    /* bytes a client has not read from which on it is not read either */
    NO_SUCH_CALL = 256 /* the first code of an ERROR that is the user's own */
};

/** A request that waits for --delay to pass. */
struct late {
    struct late *prev, *next;
    ev_tstamp due;
    uint32_t id;
    size_t n;
    unsigned char payload[];
};

struct client {
    struct client *prev, *next;
    struct framed_session *session;
    ev_io io;
    ev_timer timer;
    struct late *late; /* the oldest first */
    unsigned char *out;
    size_t n_out, gone, size;
};

static struct {
    struct ev_loop *loop;
    struct acceptor acceptor;
    struct client *clients;
    ev_signal term, interrupt;
    ev_timer drain;
    const char *listen;
    double delay, patience;
    uint64_t total, count;
    bool leaving;
    struct framed_calls calls;
} server = {.listen = "127.0.0.1:0", .patience = 5, .calls = {.channels = 100}};

static const char help[] = /* */
    "Usage: framed_server [OPTION]...\n"
    "A server of framed calls for demos and tests: add, total, echo.\n"
    "\n"
    "  --listen ADDR    where (127.0.0.1:0: a port the system picks); printed as 'listening on ADDR'\n"
    "  --channels N     calls a client may have under way (100)\n"
    "  --delay S        answer so many seconds late\n"
    "  --drain S        how long clients may take to go after SIGTERM (5)\n"
    "  --help, --version\n";

/* ---- a client's end ---- */

static void drop_late(struct client *client, struct late *late)
{
    DL_DELETE(client->late, late);
    free(late);
}

static void end_client(struct client *client)
{
    ev_io_stop(server.loop, &client->io);
    ev_timer_stop(server.loop, &client->timer);
    close(client->io.fd);
    while (client->late != NULL)
        drop_late(client, client->late);
    DL_DELETE(server.clients, client);
    framed_session_free(client->session);
    free(client->out);
    free(client);
    if (server.leaving && server.clients == NULL)
        ev_break(server.loop, EVBREAK_ALL);
    else if (!server.leaving)
        acceptor_resume(&server.acceptor);
}

/* ---- answers ---- */

static void on_say(struct framed_session *session, const void *bytes, size_t n)
{
    struct client *client = framed_session_data(session);

    if (client->n_out + n > client->size) {
        client->size = 2 * (client->n_out + n);
        client->out = realloc(client->out, client->size);
        if (client->out == NULL)
            die("out of memory");
    }
    memcpy(client->out + client->n_out, bytes, n);
    client->n_out += n;
}

static uint64_t get64(const unsigned char *at)
{
    uint64_t value = 0;

    for (int i = 0; i < 8; i++)
        value = value << 8 | at[i];
    return value;
}

static void set64(unsigned char *at, uint64_t value)
{
    for (int i = 7; i >= 0; i--, value >>= 8)
        at[i] = (unsigned char)value;
}

static void serve(struct client *client, uint32_t id, const unsigned char *payload, size_t n)
{
    unsigned char answer[16];

    if (n == 19 && memcmp(payload, "add", 3) == 0) {
        server.total += get64(payload + 11);
        server.count++;
        set64(answer, server.total);
        framed_session_answer(client->session, id, answer, 8);
    } else if (n == 5 && memcmp(payload, "total", 5) == 0) {
        set64(answer, server.total);
        set64(answer + 8, server.count);
        framed_session_answer(client->session, id, answer, 16);
    } else if (n >= 4 && memcmp(payload, "echo", 4) == 0) {
        framed_session_answer(client->session, id, payload + 4, n - 4);
    } else {
        framed_session_error(client->session, id, NO_SUCH_CALL, "no such call");
    }
}

static void arm(struct client *client)
{
    ev_timer_stop(server.loop, &client->timer);
    if (client->late == NULL)
        return;
    ev_tstamp left = client->late->due - ev_now(server.loop);
    ev_timer_set(&client->timer, left > 0 ? left : 0, 0);
    ev_timer_start(server.loop, &client->timer);
}

static void on_request(struct framed_session *session, uint32_t id, const void *payload, size_t n)
{
    struct client *client = framed_session_data(session);
    struct late *late;

    if (server.delay == 0) {
        serve(client, id, payload, n);
        return;
    }
    late = malloc(sizeof *late + n);
    if (late == NULL)
        die("out of memory");
    late->due = ev_now(server.loop) + server.delay;
    late->id = id;
    late->n = n;
    if (n > 0)
        memcpy(late->payload, payload, n);
    DL_APPEND(client->late, late);
    if (client->late == late)
        arm(client);
}

static void on_cancel(struct framed_session *session, uint32_t id)
{
    struct client *client = framed_session_data(session);
    struct late *late;

    DL_FOREACH (client->late, late)
        if (late->id == id) {
            drop_late(client, late);
            arm(client);
            return;
        }
}

/* ---- bytes ---- */

/* Returns false when the client is gone. */
static bool send_out(struct client *client)
{
    while (client->gone < client->n_out) {
        ssize_t n = send(client->io.fd, client->out + client->gone, client->n_out - client->gone, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR) {
            end_client(client);
            return false;
        }
        if (n < 0)
            break;
        client->gone += (size_t)n;
    }
    if (client->gone == client->n_out)
        client->gone = client->n_out = 0;
    loop_want(server.loop, &client->io,
        (client->n_out - client->gone < MUCH ? EV_READ : 0) | (client->n_out > 0 ? EV_WRITE : 0));
    return true;
}

static void on_io(struct ev_loop *loop, ev_io *io, int events)
{
    struct client *client = io->data;
    static unsigned char bytes[READ];
    ssize_t n;

    (void)loop;
    if (events & EV_READ) {
        n = recv(io->fd, bytes, sizeof bytes, 0);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
            end_client(client);
            return;
        }
        if (n > 0 && framed_session_take(client->session, bytes, (size_t)n) != 0) {
            if (send_out(client)) /* GOAWAY says why */
                end_client(client);
            return;
        }
    }
    send_out(client);
}

static void on_late(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct client *client = timer->data;

    (void)events;
    while (client->late != NULL && client->late->due <= ev_now(loop)) {
        serve(client, client->late->id, client->late->payload, client->late->n);
        drop_late(client, client->late);
    }
    arm(client);
    send_out(client);
}

static void on_accepted(struct acceptor *acceptor, int fd)
{
    struct client *client = calloc(1, sizeof *client);

    (void)acceptor;
    if (client == NULL || (client->session = framed_session_new(&server.calls, client)) == NULL)
        die("out of memory");
    socket_no_delay(fd);
    ev_io_init(&client->io, on_io, fd, EV_READ);
    ev_timer_init(&client->timer, on_late, 0, 0);
    client->io.data = client->timer.data = client;
    DL_APPEND(server.clients, client);
    ev_io_start(server.loop, &client->io);
}

/* ---- leaving ---- */

static void on_drained(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)timer, (void)events;
    ev_break(loop, EVBREAK_ALL);
}

/* The first signal tells the clients; the second ends the program. */
static void on_signal(struct ev_loop *loop, ev_signal *watcher, int events)
{
    struct client *client, *next;

    (void)watcher, (void)events;
    if (server.leaving || server.clients == NULL) {
        ev_break(loop, EVBREAK_ALL);
        return;
    }
    server.leaving = true;
    acceptor_stop(&server.acceptor);
    ev_timer_init(&server.drain, on_drained, server.patience, 0);
    ev_timer_start(loop, &server.drain);
    DL_FOREACH_SAFE (server.clients, client, next) {
        framed_session_goaway(client->session, framed_session_last_id(client->session), 0, "leaving");
        send_out(client);
    }
}

/* ---- the program ---- */

static void take_options(int argc, char **argv)
{
    static const struct option options[] = {
        {"listen", required_argument, NULL, 'l'},
        {"channels", required_argument, NULL, 'c'},
        {"delay", required_argument, NULL, 'd'},
        {"drain", required_argument, NULL, 'p'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'v'},
        {0},
    };
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
        /* clang-format off */
        switch (option) {
        case 'l': server.listen = optarg; break;
        case 'c': server.calls.channels = option_count("--channels", optarg, 0, UINT32_MAX); break;
        case 'd': server.delay = option_seconds("--delay", optarg, 0, 3600); break;
        case 'p': server.patience = option_seconds("--drain", optarg, 0, 3600); break;
        case 'h': print_help(help);
        case 'v': print_version();
        default: exit(2); /* getopt_long() has named it */
        }
    /* clang-format on */
    if (optind < argc)
        die_usage("'%s': options alone are expected", argv[optind]);
}

static void watch_signal(ev_signal *watcher, int number)
{
    ev_signal_init(watcher, on_signal, number);
    ev_signal_start(server.loop, watcher);
}

int main(int argc, char **argv)
{
    program_name = argv[0] = "framed_server";
    take_options(argc, argv);
    server.loop = ev_default_loop(0);
    if (server.loop == NULL)
        die("no event loop");
    signal(SIGPIPE, SIG_IGN);
    watch_signal(&server.term, SIGTERM);
    watch_signal(&server.interrupt, SIGINT);
    server.calls.say = on_say;
    server.calls.request = on_request;
    server.calls.cancel = on_cancel;
    int fd = socket_listen("--listen", server.listen, false);
    socket_announce("listening", fd);
    server.acceptor.accepted = on_accepted;
    acceptor_start(&server.acceptor, server.loop, fd);
    ev_run(server.loop, 0);
    server.leaving = true;
    acceptor_stop(&server.acceptor);
    while (server.clients != NULL)
        end_client(server.clients);
    socket_remove_file(server.listen);
    ev_loop_destroy(server.loop);
    return 0;
}
