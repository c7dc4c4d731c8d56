/* demo_client.c - asks an HTTP server, through whatever stands between, and writes down what became of each request.
 *
 * A fixed number of slots, each with one connection at a time: it asks a number of requests one after the other, each
 * with an id of its own, then another connection takes its place. The log has a line a request (ok ID BACKEND TIME,
 * failed ID BACKEND TIME WHY) and one a connection (connection BACKEND SENT RECEIVED); BACKEND is the header X-Backend
 * of the connection's answers, - before the first; TIME is wall time in seconds. Each second a line goes to stdout. */
#include <errno.h>
#include <ev.h>
#include <getopt.h>
#include <inttypes.h>
#include <llhttp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "examples/common/options.h"
#include "examples/common/sockets.h"

enum {
    MAX_BACKENDS = 16,
    MAX_NAME = 65
};
static const double reconnect_delay = 0.01; /* seconds; after a failure, so that a dead server is not hammered */

struct tally_of_backend {
    char name[MAX_NAME];
    uint64_t requests;
};

struct client {
    const char *to, *log;
    unsigned slots, requests; /* requests: a connection */
    double seconds, timeout;
    struct ev_loop *loop;
    struct socket_address address;
    FILE *file;
    struct slot *all;
    unsigned open; /* slots that are not done */
    bool ending;
    double started;
    ev_timer second, end;
    uint64_t connections, ok, failed;
    struct tally_of_backend backends[MAX_BACKENDS]; /* since the last line */
    uint64_t ok_before, failed_before;
};

struct slot {
    struct client *client;
    struct ev_io io;
    ev_timer timer; /* the request's time-out, or the pause before the next connection */
    bool connected;
    unsigned asked;
    uint64_t number; /* of the connection */
    char id[48];
    char question[160];
    size_t sent, size;
    uint64_t bytes_sent, bytes_received;
    llhttp_t parser;
    char field[32], value[MAX_NAME];
    size_t field_n, value_n;
    char backend[MAX_NAME];
    bool id_echoed, whole;
};

static void start_connection(struct slot *slot);

/* ---- what became of it ---- */

static void count_ok(struct client *client, const char *backend)
{
    struct tally_of_backend *entry = client->backends;

    client->ok++;
    while (entry < client->backends + MAX_BACKENDS - 1 && entry->name[0] != '\0' && strcmp(entry->name, backend) != 0)
        entry++;
    snprintf(entry->name, sizeof entry->name, "%s", backend);
    entry->requests++;
}

static const char *backend_of(const struct slot *slot)
{
    return slot->backend[0] == '\0' ? "-" : slot->backend;
}

static void end_connection(struct slot *slot)
{
    struct client *client = slot->client;

    fprintf(client->file, "connection %s %" PRIu64 " %" PRIu64 "\n", backend_of(slot), slot->bytes_sent,
        slot->bytes_received);
    ev_io_stop(client->loop, &slot->io);
    ev_timer_stop(client->loop, &slot->timer);
    close(slot->io.fd);
}

static void slot_done(struct client *client)
{
    if (--client->open == 0)
        ev_break(client->loop, EVBREAK_ALL);
}

static void on_pause_over(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop, (void)events;
    start_connection(timer->data);
}

static void pause_slot(struct slot *slot)
{
    ev_timer_init(&slot->timer, on_pause_over, reconnect_delay, 0);
    ev_timer_start(slot->client->loop, &slot->timer);
}

static void fail(struct slot *slot, const char *why)
{
    struct client *client = slot->client;

    client->failed++;
    fprintf(client->file, "failed %s %s %.6f %s\n", slot->id, backend_of(slot), ev_now(client->loop), why);
    end_connection(slot);
    pause_slot(slot);
}

/* ---- asking ---- */

static void on_timeout(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop, (void)events;
    fail(timer->data, "timed out");
}

static void watch(struct slot *slot, int events)
{
    if (slot->io.events == events)
        return;
    ev_io_stop(slot->client->loop, &slot->io);
    ev_io_modify(&slot->io, events);
    ev_io_start(slot->client->loop, &slot->io);
}

static void send_question(struct slot *slot)
{
    ssize_t n = send(slot->io.fd, slot->question + slot->sent, slot->size - slot->sent, MSG_NOSIGNAL);

    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        fail(slot, strerror(errno));
        return;
    }
    slot->sent += n > 0 ? (size_t)n : 0;
    slot->bytes_sent += n > 0 ? (uint64_t)n : 0;
    watch(slot, slot->sent < slot->size ? EV_WRITE : EV_READ);
}

static void compose_question(struct slot *slot)
{
    snprintf(slot->id, sizeof slot->id, "%d-%" PRIu64 "-%u", (int)getpid(), slot->number, ++slot->asked);
    slot->size = (size_t)snprintf(
        slot->question, sizeof slot->question, "GET / HTTP/1.1\r\nHost: demo\r\nX-Request-Id: %s\r\n\r\n", slot->id);
    slot->sent = 0;
    slot->id_echoed = slot->whole = false;
}

static void ask(struct slot *slot)
{
    compose_question(slot);
    ev_timer_stop(slot->client->loop, &slot->timer);
    ev_timer_init(&slot->timer, on_timeout, slot->client->timeout, 0);
    ev_timer_start(slot->client->loop, &slot->timer);
    send_question(slot);
}

/* ---- answers ---- */

static size_t append(char *to, size_t n, size_t room, const char *at, size_t length)
{
    size_t part = length < room - 1 - n ? length : room - 1 - n;

    memcpy(to + n, at, part);
    to[n + part] = '\0';
    return n + part;
}

static int on_field(llhttp_t *parser, const char *at, size_t n)
{
    struct slot *slot = parser->data;

    slot->field_n = append(slot->field, slot->field_n, sizeof slot->field, at, n);
    return HPE_OK;
}

static int on_value(llhttp_t *parser, const char *at, size_t n)
{
    struct slot *slot = parser->data;

    slot->value_n = append(slot->value, slot->value_n, sizeof slot->value, at, n);
    return HPE_OK;
}

static int on_header_over(llhttp_t *parser)
{
    struct slot *slot = parser->data;

    if (slot->value_n > 0 && strcasecmp(slot->field, "x-backend") == 0)
        memcpy(slot->backend, slot->value, sizeof slot->backend);
    if (slot->value_n > 0 && strcasecmp(slot->field, "x-request-id") == 0)
        slot->id_echoed = strcmp(slot->value, slot->id) == 0;
    slot->field_n = slot->value_n = 0;
    return HPE_OK;
}

static int on_whole(llhttp_t *parser)
{
    struct slot *slot = parser->data;

    slot->whole = true;
    return HPE_PAUSED;
}

static const llhttp_settings_t parsing = {
    .on_header_field = on_field,
    .on_header_value = on_value,
    .on_header_value_complete = on_header_over,
    .on_message_complete = on_whole,
};

static void answered(struct slot *slot)
{
    struct client *client = slot->client;

    count_ok(client, backend_of(slot));
    fprintf(client->file, "ok %s %s %.6f\n", slot->id, backend_of(slot), ev_now(client->loop));
    if (slot->asked < client->requests && !client->ending) {
        ask(slot);
        return;
    }
    end_connection(slot);
    start_connection(slot);
}

static void parse(struct slot *slot, const char *bytes, size_t n)
{
    llhttp_errno_t error = llhttp_execute(&slot->parser, bytes, n);

    if (error == HPE_OK)
        return;
    if (error != HPE_PAUSED)
        fail(slot, llhttp_errno_name(error));
    else if (llhttp_get_error_pos(&slot->parser) != bytes + n)
        fail(slot, "bytes after the answer");
    else if (slot->parser.status_code != 200)
        fail(slot, "not a 200");
    else if (!slot->id_echoed)
        fail(slot, "the answer to another request");
    else {
        llhttp_resume(&slot->parser);
        answered(slot);
    }
}

static void on_ready(struct ev_loop *loop, ev_io *io, int events)
{
    struct slot *slot = io->data;
    char bytes[65536];
    ssize_t n;

    (void)loop;
    if (events & EV_WRITE) {
        send_question(slot);
        return;
    }
    n = recv(io->fd, bytes, sizeof bytes, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    slot->bytes_received += n > 0 ? (uint64_t)n : 0;
    if (n <= 0)
        fail(slot, n == 0 ? "closed without an answer" : strerror(errno));
    else
        parse(slot, bytes, (size_t)n);
}

static void start_connection(struct slot *slot)
{
    struct client *client = slot->client;
    int fd;

    if (client->ending) {
        slot_done(client);
        return;
    }
    fd = socket_connect(&client->address);
    if (fd < 0) {
        pause_slot(slot);
        return;
    }
    slot->number = ++client->connections;
    slot->asked = 0;
    slot->bytes_sent = slot->bytes_received = 0;
    slot->backend[0] = '\0';
    slot->field_n = slot->value_n = 0;
    llhttp_init(&slot->parser, HTTP_RESPONSE, &parsing);
    slot->parser.data = slot;
    ev_io_init(&slot->io, on_ready, fd, 0);
    slot->io.data = slot;
    ask(slot);
}

/* ---- the clock ---- */

static void on_second(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct client *client = timer->data;

    (void)events;
    printf("%.0f %" PRIu64 " %" PRIu64, ev_now(loop) - client->started, client->ok - client->ok_before,
        client->failed - client->failed_before);
    for (int i = 0; i < MAX_BACKENDS && client->backends[i].name[0] != '\0'; i++) {
        printf(" %s %" PRIu64, client->backends[i].name, client->backends[i].requests);
        client->backends[i].requests = 0;
    }
    printf("\n");
    fflush(stdout);
    client->ok_before = client->ok;
    client->failed_before = client->failed;
}

/* Requests under way are finished, then each slot is done; what hangs is a failure by its time-out. */
static void on_end(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct client *client = timer->data;

    (void)loop, (void)events;
    client->ending = true;
}

static void on_signal(struct ev_loop *loop, ev_signal *watcher, int events)
{
    (void)watcher, (void)events;
    ev_break(loop, EVBREAK_ALL);
}

/* ---- the program ---- */

static const char help[] = /* */
    "Usage: demo_client --to ADDR [OPTION]...\n"
    "Asks an HTTP server and writes down what became of each request.\n"
    "\n"
    "  --to ADDR        the server\n"
    "  --seconds S      for so long (10)\n"
    "  --connections N  at once (32)\n"
    "  --requests N     a connection, then it is closed (50)\n"
    "  --timeout S      a request without an answer by then has failed (5)\n"
    "  --log FILE       a line a request and a connection (none)\n"
    "  --help, --version\n"
    "\n"
    "Each second a line: seconds, requests answered, failed, then each backend's name and its requests.\n";

static const struct option options[] = {
    {"to", required_argument, NULL, 't'},
    {"seconds", required_argument, NULL, 's'},
    {"connections", required_argument, NULL, 'c'},
    {"requests", required_argument, NULL, 'r'},
    {"timeout", required_argument, NULL, 'm'},
    {"log", required_argument, NULL, 'l'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'v'},
    {0},
};

static void take_options(struct client *client, int argc, char **argv)
{
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
        /* clang-format off */
        switch (option) {
        case 't': client->to = optarg; break;
        case 's': client->seconds = option_seconds("--seconds", optarg, 0.1, 86400); break;
        case 'c': client->slots = option_count("--connections", optarg, 1, 100000); break;
        case 'r': client->requests = option_count("--requests", optarg, 1, 1000000000); break;
        case 'm': client->timeout = option_seconds("--timeout", optarg, 0.01, 86400); break;
        case 'l': client->log = optarg; break;
        case 'h': print_help(help);
        case 'v': print_version();
        default: exit(2); /* getopt_long() has named it */
        }
    /* clang-format on */
    if (optind < argc)
        die_usage("'%s': options alone are expected", argv[optind]);
    if (client->to == NULL)
        die_usage("--to ADDR is missing");
}

static void prepare(struct client *client)
{
    const char *why;

    if (socket_parse(client->to, &client->address, &why) < 0)
        die_usage("--to: '%s': %s", client->to, why);
    client->file = fopen(client->log == NULL ? "/dev/null" : client->log, "we");
    if (client->file == NULL)
        die("--log: %s: %s", client->log, strerror(errno));
    client->all = calloc(client->slots, sizeof *client->all);
    if (client->all == NULL)
        die("--connections: out of memory");
    client->loop = ev_default_loop(0);
    client->started = ev_now(client->loop);
    ev_timer_init(&client->second, on_second, 1, 1);
    ev_timer_init(&client->end, on_end, client->seconds, 0);
    client->second.data = client->end.data = client;
    ev_timer_start(client->loop, &client->second);
    ev_timer_start(client->loop, &client->end);
}

static void start_slots(struct client *client)
{
    client->open = client->slots;
    for (unsigned i = 0; i < client->slots; i++) {
        client->all[i].client = client;
        ev_timer_init(&client->all[i].timer, on_timeout, 0, 0);
        client->all[i].timer.data = &client->all[i];
        start_connection(&client->all[i]);
    }
}

int main(int argc, char **argv)
{
    static struct client client = {.seconds = 10, .slots = 32, .requests = 50, .timeout = 5};
    ev_signal term;

    program_name = argv[0] = "demo_client";
    take_options(&client, argc, argv);
    signal(SIGPIPE, SIG_IGN);
    prepare(&client);
    ev_signal_init(&term, on_signal, SIGTERM);
    ev_signal_start(client.loop, &term);
    start_slots(&client);
    ev_run(client.loop, 0);
    if (fclose(client.file) != 0)
        die("--log: %s: %s", client.log, strerror(errno));
    free(client.all);
    ev_loop_destroy(client.loop);
    return 0;
}
