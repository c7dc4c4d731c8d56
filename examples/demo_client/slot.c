/* slot.c - asks, waits for the answer, writes down what became of it.
 *
 * A slot watches its connection and runs one timer: the request's time-out, or the pause before the next request, or,
 * after a failure, before the next connection. */
#include "examples/demo_client/slot.h"

#include <errno.h>
#include <ev.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "examples/common/loop.h"
#include "examples/common/options.h"
#include "examples/demo_client/client.h"

static const double reconnect_delay = 0.01; /* seconds; after a failure, so that a dead server is not hammered */

struct slot {
    struct client *client;
    struct ev_io io;
    ev_timer timer;  /* the request's time-out, or a pause */
    uint64_t number; /* of the connection */
    unsigned asked;  /* on it */
    char id[48];     /* of the request under way */
    char question[224];
    size_t sent, size; /* of the question */
    uint64_t bytes_sent, bytes_received;
    struct answer answer;
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
    return slot->answer.backend[0] == '\0' ? "-" : slot->answer.backend;
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

static void set_timer(struct slot *slot, void (*on_over)(struct ev_loop *, ev_timer *, int), double seconds)
{
    ev_timer_stop(slot->client->loop, &slot->timer);
    ev_timer_init(&slot->timer, on_over, seconds, 0);
    ev_timer_start(slot->client->loop, &slot->timer);
}

static void fail(struct slot *slot, const char *why)
{
    struct client *client = slot->client;

    client->failed++;
    fprintf(client->file, "failed %s %s %.6f %s\n", slot->id, backend_of(slot), ev_now(client->loop), why);
    end_connection(slot);
    set_timer(slot, on_pause_over, reconnect_delay);
}

/* ---- asking ---- */

static void on_timeout(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop, (void)events;
    fail(timer->data, "timed out");
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
    loop_want(slot->client->loop, &slot->io, slot->sent < slot->size ? EV_WRITE : EV_READ);
}

static void compose_question(struct slot *slot)
{
    snprintf(slot->id, sizeof slot->id, "%d-%" PRIu64 "-%u", (int)getpid(), slot->number, ++slot->asked);
    slot->size = (size_t)snprintf(slot->question, sizeof slot->question,
        "GET /?id=%s HTTP/1.1\r\nHost: demo\r\nX-Request-Id: %s\r\n\r\n", slot->id, slot->id);
    slot->sent = 0;
}

static void ask(struct slot *slot)
{
    compose_question(slot);
    set_timer(slot, on_timeout, slot->client->timeout);
    send_question(slot);
}

static void on_next(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop, (void)events;
    ask(timer->data);
}

static void ask_next(struct slot *slot)
{
    struct client *client = slot->client;

    if (client->pause <= 0) {
        ask(slot);
        return;
    }
    loop_want(client->loop, &slot->io, 0); /* should it be closed meanwhile, the next request fails */
    set_timer(slot, on_next, client->pause * (0.5 + drand48())); /* in step they would all ask at once */
}

/* ---- answers ---- */

static void answered(struct slot *slot)
{
    struct client *client = slot->client;

    count_ok(client, backend_of(slot));
    fprintf(client->file, "ok %s %s %.6f %" PRIu64 "\n", slot->id, backend_of(slot), ev_now(client->loop),
        slot->answer.body);
    if (slot->asked < client->requests && slot->answer.keep_alive && !client->ending) {
        ask_next(slot);
        return;
    }
    end_connection(slot);
    start_connection(slot);
}

/* A failure that is told: what stands between says why, on a line. */
static void refused(struct slot *slot)
{
    char why[ANSWER_MAX_LINE + 16];

    snprintf(why, sizeof why, "%u %s", slot->answer.status, slot->answer.line);
    fail(slot, why);
}

static void take_answer(struct slot *slot, const char *bytes, size_t n)
{
    enum answer_step step = answer_parse(&slot->answer, bytes, n);

    if (step == ANSWER_MORE)
        return;
    if (step == ANSWER_BAD)
        fail(slot, slot->answer.fault);
    else if (slot->answer.status != 200)
        refused(slot);
    else if (strcmp(slot->answer.id, slot->id) != 0)
        fail(slot, "the answer to another request");
    else
        answered(slot);
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
        take_answer(slot, bytes, (size_t)n);
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
        set_timer(slot, on_pause_over, reconnect_delay);
        return;
    }
    slot->number = ++client->connections;
    slot->asked = 0;
    slot->bytes_sent = slot->bytes_received = 0;
    answer_init(&slot->answer);
    ev_io_init(&slot->io, on_ready, fd, 0);
    slot->io.data = slot;
    ask(slot);
}

/* ---- all of them ---- */

void slots_start(struct client *client)
{
    client->all = calloc(client->slots, sizeof *client->all);
    if (client->all == NULL)
        die("--connections: out of memory");
    client->open = client->slots;
    for (unsigned i = 0; i < client->slots; i++) {
        client->all[i].client = client;
        ev_timer_init(&client->all[i].timer, on_timeout, 0, 0);
        client->all[i].timer.data = &client->all[i];
        start_connection(&client->all[i]);
    }
}

void slots_free(struct client *client)
{
    free(client->all);
}
