/* backend.c - a small HTTP/1.1 server for demos and tests, told on its command line to be slow, to fail, to close, to
 * reset.
 *
 * Requests of a connection are answered one at a time and in order; bodies are read and discarded; headers are
 * bounded. A request's id (header X-Request-Id, or ?id= in the URL) is written to the log before anything else
 * happens to it, with write(2), so that kill -9 loses none. */
#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <utlist.h>

#include "examples/common/acceptor.h"
#include "examples/common/options.h"
#include "examples/common/request.h"
#include "examples/common/sockets.h"
#include "examples/common/tally.h"

enum {
    MAX_BODY = 1 << 30
};

struct settings {
    const char *listen, *name, *log;
    double delay;
    unsigned fail_every, close_every, drop_every, reset_every, body;
};

struct server {
    struct settings settings;
    struct ev_loop *loop;
    struct acceptor acceptor;
    struct connection *connections;
    struct tally ids;
    uint64_t requests;
    int log; /* -1: none */
};

/* What becomes of a connection once its answer is out. */
enum next {
    NEXT_REQUEST,
    NEXT_CLOSE,
    NEXT_RESET
};

struct connection {
    struct server *server;
    struct connection *prev, *next_one;
    struct ev_io io;
    ev_timer delay;
    struct request request;
    bool busy; /* with an answer: nothing is read meanwhile */
    enum next next;
    char head[512];
    size_t head_sent, head_n, body_left;
    size_t in_start, in_end;
    char in[16384];
};

static char filler[65536]; /* what bodies are made of */

static void log_id(struct server *server, const char *id)
{
    char line[REQUEST_MAX_ID + 2];
    int n = snprintf(line, sizeof line, "%s\n", id[0] == '\0' ? "-" : id);

    if (server->log >= 0 && write(server->log, line, (size_t)n) != n)
        die("--log: %s: %s", server->settings.log, strerror(errno));
}

/* ---- a connection's end ---- */

static void end_connection(struct connection *connection, enum next how)
{
    struct server *server = connection->server;

    ev_io_stop(server->loop, &connection->io);
    ev_timer_stop(server->loop, &connection->delay);
    if (how == NEXT_RESET)
        socket_reset(connection->io.fd);
    else
        close(connection->io.fd);
    DL_DELETE2(server->connections, connection, prev, next_one);
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
    connection->next = connection->request.keep_alive ? NEXT_REQUEST : NEXT_CLOSE;
    compose(connection, is_turn(request, settings->fail_every) ? "500 Internal Server Error" : "200 OK", settings->body,
        times);
    if (is_turn(request, settings->close_every))
        connection->next = NEXT_CLOSE;
    if (is_turn(request, settings->drop_every) || is_turn(request, settings->reset_every)) {
        connection->next = is_turn(request, settings->reset_every) ? NEXT_RESET : NEXT_CLOSE;
        connection->head_n = connection->body_left = 0;
    }
}

/* Sends what is left. Returns 1 when all is out, 0 when it goes on later, -1 when the peer is gone. */
static int send_answer(struct connection *connection)
{
    while (connection->head_sent < connection->head_n || connection->body_left > 0) {
        struct iovec parts[2] = {{connection->head + connection->head_sent, connection->head_n - connection->head_sent},
            {filler, connection->body_left < sizeof filler ? connection->body_left : sizeof filler}};
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
    struct ev_loop *loop = connection->server->loop;

    if (connection->io.events == events && ev_is_active(&connection->io))
        return;
    ev_io_stop(loop, &connection->io);
    ev_io_modify(&connection->io, events);
    if (events != 0)
        ev_io_start(loop, &connection->io);
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
    if (done < 0 || connection->next != NEXT_REQUEST) {
        end_connection(connection, done < 0 ? NEXT_CLOSE : connection->next);
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
    connection->next = NEXT_CLOSE;
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
        end_connection(connection, NEXT_CLOSE);
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

static void on_accepted(struct acceptor *acceptor, int fd)
{
    struct server *server = acceptor->data;
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
    DL_APPEND2(server->connections, connection, prev, next_one);
}

/* ---- the program ---- */

static const char help[] = /* */
    "Usage: backend [OPTION]...\n"
    "A small HTTP/1.1 server for demos and tests.\n"
    "\n"
    "  --listen ADDR    where (127.0.0.1:0: a port the system picks); printed as 'listening on ADDR'\n"
    "  --name TEXT      sent in the header X-Backend (backend)\n"
    "  --log FILE       append each request's id, a line each, before it is answered\n"
    "  --body N         bytes of an answer (13)\n"
    "  --delay S        answer so many seconds late\n"
    "  --fail-every N   each Nth request gets a 500\n"
    "  --close-every N  after each Nth answer the connection is closed without notice\n"
    "  --drop-every N   at each Nth request the connection is closed without an answer\n"
    "  --reset-every N  at each Nth request the connection is reset without an answer\n"
    "  --help, --version\n"
    "\n"
    "A request's id is its header X-Request-Id, or id= in its URL. An answer's X-Times says how often the id came.\n";

static const struct option options[] = {
    {"listen", required_argument, NULL, 'l'},
    {"name", required_argument, NULL, 'n'},
    {"log", required_argument, NULL, 'o'},
    {"body", required_argument, NULL, 'b'},
    {"delay", required_argument, NULL, 'd'},
    {"fail-every", required_argument, NULL, 'f'},
    {"close-every", required_argument, NULL, 'c'},
    {"drop-every", required_argument, NULL, 'p'},
    {"reset-every", required_argument, NULL, 'r'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'v'},
    {0},
};

static const char *take_name(const char *text)
{
    if (strlen(text) > 64 || strpbrk(text, "\r\n") != NULL)
        die_usage("--name: at most 64 bytes on one line");
    return text;
}

static void take_option(struct settings *settings, int option)
{
    /* clang-format off */
    switch (option) {
    case 'l': settings->listen = optarg; break;
    case 'n': settings->name = take_name(optarg); break;
    case 'o': settings->log = optarg; break;
    case 'b': settings->body = option_count("--body", optarg, 0, MAX_BODY); break;
    case 'd': settings->delay = option_seconds("--delay", optarg, 0, 3600); break;
    case 'f': settings->fail_every = option_count("--fail-every", optarg, 1, UINT32_MAX); break;
    case 'c': settings->close_every = option_count("--close-every", optarg, 1, UINT32_MAX); break;
    case 'p': settings->drop_every = option_count("--drop-every", optarg, 1, UINT32_MAX); break;
    case 'r': settings->reset_every = option_count("--reset-every", optarg, 1, UINT32_MAX); break;
    case 'h': print_help(help);
    case 'v': print_version();
    default: exit(2); /* getopt_long() has named it */
    }
    /* clang-format on */
}

static void take_options(struct settings *settings, int argc, char **argv)
{
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
        take_option(settings, option);
    if (optind < argc)
        die_usage("'%s': options alone are expected", argv[optind]);
}

static int open_log(const char *path)
{
    int fd;

    if (path == NULL)
        return -1;
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0)
        die("--log: %s: %s", path, strerror(errno));
    return fd;
}

static void on_signal(struct ev_loop *loop, ev_signal *signal_watcher, int events)
{
    (void)signal_watcher, (void)events;
    ev_break(loop, EVBREAK_ALL);
}

static void listen_and_say(struct server *server)
{
    int fd = socket_listen("--listen", server->settings.listen, false);
    char text[SOCKET_TEXT];

    socket_name(fd, text);
    printf("listening on %s\n", text);
    fflush(stdout);
    server->acceptor.accepted = on_accepted;
    server->acceptor.data = server;
    acceptor_start(&server->acceptor, server->loop, fd);
}

int main(int argc, char **argv)
{
    struct server server = {.settings = {.listen = "127.0.0.1:0", .name = "backend", .body = 13}};
    ev_signal term, interrupt;

    program_name = argv[0] = "backend";
    take_options(&server.settings, argc, argv);
    signal(SIGPIPE, SIG_IGN);
    memset(filler, '.', sizeof filler);
    server.log = open_log(server.settings.log);
    server.loop = ev_default_loop(0);
    ev_signal_init(&term, on_signal, SIGTERM);
    ev_signal_init(&interrupt, on_signal, SIGINT);
    ev_signal_start(server.loop, &term);
    ev_signal_start(server.loop, &interrupt);
    listen_and_say(&server);
    ev_run(server.loop, 0);
    acceptor_stop(&server.acceptor);
    while (server.connections != NULL)
        end_connection(server.connections, NEXT_CLOSE);
    socket_remove_file(server.settings.listen);
    tally_clear(&server.ids);
    ev_loop_destroy(server.loop);
    return 0;
}
