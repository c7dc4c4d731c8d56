/* tcp.c - tcp mode: a lease a client, bytes both ways, the end of each way passed on.
 *
 * What is read goes straight on from the worker's scratch space. What the far side does not take is held in a buffer of
 * 64 KiB a way, and while it holds anything its source is not read: so the slower side sets the pace, and a quiet pair
 * holds no buffer. While a client waits for its link it may fill its buffer, no more. The link is discarded at the end:
 * nothing here knows whether it is clean. */
#include <linkpool/pool.h>
#include <stdbool.h>

#include "examples/lbproxy/buffer.h"
#include "examples/lbproxy/client.h"
#include "examples/lbproxy/mode.h"
#include "examples/lbproxy/worker.h"

enum {
    READS_A_TURN = 4 /* so that one busy pair does not starve the others: 256 KiB a way */
};

enum way {
    UP,  /* client to backend */
    DOWN /* and back */
};

struct flow {
    struct buffer *held; /* bytes the far side has not taken yet; NULL: none */
    bool ended;          /* the source has said all */
    bool end_passed;     /* and the far side knows */
};

struct pair {
    struct client client; /* first: a client in tcp mode is a pair */
    struct pool_lease lease;
    struct backend_counts *counts; /* of the backend the lease is on */
    struct flow flows[2];
    unsigned channel_wants;
};

enum moved {
    MOVED_MORE, /* nothing is held, the source may have more */
    MOVED_DRY,  /* nothing is held, the source has no more for now, or has ended */
    MOVED_FULL, /* the far side takes no more for now */
    MOVED_LOST  /* one side broke */
};

static ssize_t read_from(struct pair *pair, enum way way, void *bytes, size_t n)
{
    return way == UP ? client_read(&pair->client, bytes, n) : channel_read(pair->lease.channel, bytes, n);
}

/* Returns bytes taken, 0 when there is no room, LINKPOOL_ELOST. */
static ssize_t write_to(struct pair *pair, enum way way, char *bytes, size_t n)
{
    struct iovec part = {bytes, n};
    ssize_t sent = way == UP ? channel_writev(pair->lease.channel, &part, 1) : client_write(&pair->client, bytes, n);

    if (sent > 0) {
        *(way == UP ? &pair->counts->bytes_to : &pair->counts->bytes_from) += (uint64_t)sent;
        client_touch(&pair->client);
    }
    return sent == LINKPOOL_EAGAIN ? 0 : sent < 0 ? LINKPOOL_ELOST : sent;
}

static enum moved flush(struct pair *pair, enum way way)
{
    struct flow *flow = &pair->flows[way];
    struct buffer *held = flow->held;
    ssize_t sent;

    if (held == NULL)
        return MOVED_MORE;
    sent = write_to(pair, way, held->bytes + held->start, held->end - held->start);
    if (sent < 0)
        return MOVED_LOST;
    held->start += (size_t)sent;
    if (held->start < held->end)
        return MOVED_FULL;
    buffers_give(&pair->client.worker->buffers, held);
    flow->held = NULL;
    return MOVED_MORE;
}

static enum moved hold(struct pair *pair, enum way way, const char *bytes, size_t n)
{
    struct buffer *buffer = buffers_take(&pair->client.worker->buffers);

    if (buffer == NULL)
        return MOVED_LOST;
    buffer_add(buffer, bytes, n);
    pair->flows[way].held = buffer;
    return MOVED_FULL;
}

/* Reads once and writes once. A short read has emptied the source: no second call to hear so. */
static enum moved move(struct pair *pair, enum way way)
{
    char *scratch = pair->client.worker->scratch;
    ssize_t got = read_from(pair, way, scratch, BUFFER_SIZE);
    ssize_t sent;

    if (got == LINKPOOL_EAGAIN)
        return MOVED_DRY;
    if (got < 0)
        return MOVED_LOST;
    if (got == 0) {
        pair->flows[way].ended = true;
        return MOVED_DRY;
    }
    sent = write_to(pair, way, scratch, (size_t)got);
    if (sent < 0)
        return MOVED_LOST;
    if (sent < got)
        return hold(pair, way, scratch + sent, (size_t)(got - sent));
    return got < BUFFER_SIZE ? MOVED_DRY : MOVED_MORE;
}

/* The end of both ways is the pair's end, and closing says so too. */
static enum moved pass_end(struct pair *pair, enum way way)
{
    struct flow *flow = &pair->flows[way];

    if (!flow->ended || flow->held != NULL || flow->end_passed)
        return MOVED_DRY;
    flow->end_passed = true;
    if (pair->flows[!way].end_passed)
        return MOVED_DRY;
    if (way == DOWN)
        client_shutdown(&pair->client);
    else if (channel_shutdown(pair->lease.channel) < 0)
        return MOVED_LOST;
    return MOVED_DRY;
}

static enum moved pump(struct pair *pair, enum way way)
{
    enum moved moved = flush(pair, way);

    for (int i = 0; moved == MOVED_MORE && !pair->flows[way].ended && i < READS_A_TURN; i++)
        moved = move(pair, way);
    return moved == MOVED_LOST ? MOVED_LOST : pass_end(pair, way);
}

static bool reads(const struct flow *flow)
{
    return !flow->ended && flow->held == NULL;
}

/* Watches for what the pair needs next. */
static void settle(struct pair *pair)
{
    const struct flow *up = &pair->flows[UP];
    const struct flow *down = &pair->flows[DOWN];
    unsigned wants = (reads(down) ? LINKPOOL_READ : 0u) | (up->held != NULL ? LINKPOOL_WRITE : 0u);

    client_want(&pair->client, (reads(up) ? EV_READ : 0) | (down->held != NULL ? EV_WRITE : 0));
    if (wants != pair->channel_wants)
        channel_want(pair->lease.channel, pair->channel_wants = wants);
}

static enum moved pump_all(struct pair *pair, unsigned ways)
{
    enum moved moved = MOVED_DRY;

    for (enum way way = UP; way <= DOWN && moved != MOVED_LOST; way++)
        if (ways & 1u << way)
            moved = pump(pair, way);
    return moved;
}

/* Moves what can be moved; the pair may be gone after it. */
static void go_on(struct pair *pair, unsigned ways)
{
    if (pump_all(pair, ways) == MOVED_LOST)
        client_end(&pair->client, CLIENT_BROKEN);
    else if (pair->flows[UP].end_passed && pair->flows[DOWN].end_passed)
        client_end(&pair->client, CLIENT_SERVED);
    else
        settle(pair);
}

/* ---- the backend's side ---- */

static void on_channel_readable(struct channel *channel)
{
    go_on(channel_data(channel), 1u << DOWN);
}

static void on_channel_writable(struct channel *channel)
{
    go_on(channel_data(channel), 1u << UP);
}

static const struct channel_events channel_events = {.readable = on_channel_readable, .writable = on_channel_writable};

/* The link is there: what the client has said meanwhile goes first. */
static void join(struct pair *pair)
{
    struct flow *up = &pair->flows[UP];

    pair->counts = worker_backend(pair->client.worker, pair->lease.host);
    pair->counts->leases++;
    pair->counts->held++;
    pair->channel_wants = LINKPOOL_READ;
    channel_set_data(pair->lease.channel, pair);
    channel_watch(pair->lease.channel, &channel_events, LINKPOOL_READ);
    if (up->held != NULL || up->ended)
        go_on(pair, 1u << UP);
    else
        settle(pair);
}

/* It got no link. Where descriptors are short, further clients would only take more of them. */
static void turn_away(struct pair *pair)
{
    struct listener *listener = &pair->client.worker->listener;
    bool short_of_descriptors = pair->lease.reason == LINK_NO_DESCRIPTORS;

    client_end(&pair->client, CLIENT_UNSERVED);
    if (short_of_descriptors)
        listener_short(listener);
}

static void on_lease_done(struct pool_lease *lease)
{
    struct pair *pair = lease->data;

    if (lease->status == POOL_READY)
        join(pair);
    else
        turn_away(pair);
}

/* Drained past its time, or the pool is gone. */
static void on_lease_closed(struct pool_lease *lease)
{
    struct pair *pair = lease->data;

    client_end(&pair->client, CLIENT_STOPPED);
}

/* ---- the client's side ---- */

static void begin(struct client *client)
{
    struct pair *pair = (struct pair *)client;
    int status;

    pair->lease.done = on_lease_done;
    pair->lease.closed = on_lease_closed;
    pair->lease.data = pair;
    status = pool_acquire_target(client->worker->target, &pair->lease);
    if (status == POOL_READY)
        join(pair);
    else if (status == POOL_PENDING)
        client_want(client, EV_READ);
    else
        turn_away(pair);
}

/* Without a link yet: what comes is kept, as far as the buffer goes. */
static void gather(struct pair *pair)
{
    struct flow *up = &pair->flows[UP];
    ssize_t got;

    if (up->held == NULL)
        up->held = buffers_take(&pair->client.worker->buffers);
    if (up->held == NULL) {
        client_end(&pair->client, CLIENT_UNSERVED);
        return;
    }
    got = client_read(&pair->client, up->held->bytes + up->held->end, BUFFER_SIZE - up->held->end);
    if (got == LINKPOOL_ELOST) {
        client_end(&pair->client, CLIENT_BROKEN);
        return;
    }
    up->ended = got == 0;
    if (got > 0)
        up->held->end += (size_t)got;
    if (up->ended || up->held->end == BUFFER_SIZE)
        client_want(&pair->client, 0);
    if (up->held->end == 0) {
        buffers_give(&pair->client.worker->buffers, up->held);
        up->held = NULL;
    }
}

static void ready(struct client *client, int events)
{
    struct pair *pair = (struct pair *)client;

    if (pair->lease.channel == NULL)
        gather(pair);
    else
        go_on(pair, (events & EV_READ ? 1u << UP : 0) | (events & EV_WRITE ? 1u << DOWN : 0));
}

static void end(struct client *client)
{
    struct pair *pair = (struct pair *)client;

    if (pair->counts != NULL)
        pair->counts->held--;
    if (pair->lease.channel != NULL)
        pool_release(&pair->lease, POOL_DISCARD);
    else
        pool_cancel(&pair->lease);
    buffers_give(&client->worker->buffers, pair->flows[UP].held);
    buffers_give(&client->worker->buffers, pair->flows[DOWN].held);
}

const struct mode mode_tcp = {
    .name = "tcp",
    .size = sizeof(struct pair),
    .begin = begin,
    .ready = ready,
    .end = end,
};
