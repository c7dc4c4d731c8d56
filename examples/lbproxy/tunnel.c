/* tunnel.c - each way by turns: flush what is held, then read and write on while both sides go along. */
#include "examples/lbproxy/tunnel.h"

#include "examples/lbproxy/worker.h"

enum {
    READS_A_TURN = 4 /* so that one busy tunnel does not starve the others: 256 KiB a way */
};

enum moved {
    MOVED_MORE, /* nothing is held, the source may have more */
    MOVED_DRY,  /* nothing is held, the source has no more for now, or has ended */
    MOVED_FULL, /* the far side takes no more for now */
    MOVED_LOST  /* one side broke */
};

static ssize_t read_from(struct tunnel *tunnel, enum way way, void *bytes, size_t n)
{
    return way == UP ? client_read(tunnel->client, bytes, n) : channel_read(tunnel->lease->channel, bytes, n);
}

/* Returns bytes taken, 0 when there is no room, LINKPOOL_ELOST. */
static ssize_t write_to(struct tunnel *tunnel, enum way way, char *bytes, size_t n)
{
    struct iovec part = {bytes, n};
    ssize_t sent =
        way == UP ? channel_writev(tunnel->lease->channel, &part, 1) : client_writev(tunnel->client, &part, 1);

    if (sent > 0) {
        *(way == UP ? &tunnel->counts->bytes_to : &tunnel->counts->bytes_from) += (uint64_t)sent;
        clock_start(tunnel->client, CLOCK_TRAFFIC);
    }
    return sent == LINKPOOL_EAGAIN ? 0 : sent < 0 ? LINKPOOL_ELOST : sent;
}

static enum moved flush(struct tunnel *tunnel, enum way way)
{
    struct flow *flow = &tunnel->flows[way];
    struct buffer *held = flow->held;
    ssize_t sent;

    if (held == NULL)
        return MOVED_MORE;
    sent = write_to(tunnel, way, held->bytes + held->start, held->end - held->start);
    if (sent < 0)
        return MOVED_LOST;
    held->start += (size_t)sent;
    if (held->start < held->end)
        return MOVED_FULL;
    buffers_give(&tunnel->client->worker->buffers, held);
    flow->held = NULL;
    return MOVED_MORE;
}

static enum moved hold(struct tunnel *tunnel, enum way way, const char *bytes, size_t n)
{
    if (!buffers_add(&tunnel->client->worker->buffers, &tunnel->flows[way].held, bytes, n))
        return MOVED_LOST;
    return MOVED_FULL;
}

/* Reads once and writes once. A short read has emptied the source: no second call to hear so. */
static enum moved move(struct tunnel *tunnel, enum way way)
{
    char *scratch = tunnel->client->worker->scratch;
    ssize_t got = read_from(tunnel, way, scratch, BUFFER_SIZE);
    ssize_t sent;

    if (got == LINKPOOL_EAGAIN)
        return MOVED_DRY;
    if (got < 0)
        return MOVED_LOST;
    if (got == 0) {
        tunnel->flows[way].ended = true;
        return MOVED_DRY;
    }
    sent = write_to(tunnel, way, scratch, (size_t)got);
    if (sent < 0)
        return MOVED_LOST;
    if (sent < got)
        return hold(tunnel, way, scratch + sent, (size_t)(got - sent));
    return got < BUFFER_SIZE ? MOVED_DRY : MOVED_MORE;
}

/* The end of both ways is the tunnel's end, and closing says so too. */
static enum moved pass_end(struct tunnel *tunnel, enum way way)
{
    struct flow *flow = &tunnel->flows[way];

    if (!flow->ended || flow->held != NULL || flow->end_passed)
        return MOVED_DRY;
    flow->end_passed = true;
    if (tunnel->flows[!way].end_passed)
        return MOVED_DRY;
    if (way == DOWN)
        client_shutdown(tunnel->client);
    else if (channel_shutdown(tunnel->lease->channel) < 0)
        return MOVED_LOST;
    return MOVED_DRY;
}

static enum moved pump(struct tunnel *tunnel, enum way way)
{
    enum moved moved = flush(tunnel, way);

    for (int i = 0; moved == MOVED_MORE && !tunnel->flows[way].ended && i < READS_A_TURN; i++)
        moved = move(tunnel, way);
    return moved == MOVED_LOST ? MOVED_LOST : pass_end(tunnel, way);
}

static bool reads(const struct flow *flow)
{
    return !flow->ended && flow->held == NULL;
}

/* Watches for what the tunnel needs next. */
static void settle(struct tunnel *tunnel)
{
    const struct flow *up = &tunnel->flows[UP];
    const struct flow *down = &tunnel->flows[DOWN];
    unsigned wants = (reads(down) ? LINKPOOL_READ : 0u) | (up->held != NULL ? LINKPOOL_WRITE : 0u);

    client_want(tunnel->client, (reads(up) ? EV_READ : 0) | (down->held != NULL ? EV_WRITE : 0));
    if (wants != tunnel->channel_wants)
        channel_want(tunnel->lease->channel, tunnel->channel_wants = wants);
}

static enum moved pump_all(struct tunnel *tunnel, unsigned ways)
{
    enum moved moved = MOVED_DRY;

    for (enum way way = UP; way <= DOWN && moved != MOVED_LOST; way++)
        if (ways & 1u << way)
            moved = pump(tunnel, way);
    return moved;
}

/* Moves what can be moved; the tunnel may be gone after it. */
static void go_on(struct tunnel *tunnel, unsigned ways)
{
    if (pump_all(tunnel, ways) == MOVED_LOST)
        client_end(tunnel->client, CLIENT_BROKEN);
    else if (tunnel->flows[UP].end_passed && tunnel->flows[DOWN].end_passed)
        client_end(tunnel->client, CLIENT_SERVED);
    else
        settle(tunnel);
}

static void on_channel_readable(struct channel *channel)
{
    go_on(channel_data(channel), 1u << DOWN);
}

static void on_channel_writable(struct channel *channel)
{
    go_on(channel_data(channel), 1u << UP);
}

static const struct channel_events channel_events = {.readable = on_channel_readable, .writable = on_channel_writable};

void tunnel_open(struct tunnel *tunnel)
{
    unsigned ways = 0;

    for (enum way way = UP; way <= DOWN; way++)
        if (tunnel->flows[way].held != NULL || tunnel->flows[way].ended)
            ways |= 1u << way;
    tunnel->channel_wants = LINKPOOL_READ;
    channel_set_data(tunnel->lease->channel, tunnel);
    channel_watch(tunnel->lease->channel, &channel_events, LINKPOOL_READ);
    clock_start(tunnel->client, CLOCK_TRAFFIC);
    go_on(tunnel, ways);
}

void tunnel_ready(struct tunnel *tunnel, int events)
{
    go_on(tunnel, (events & EV_READ ? 1u << UP : 0) | (events & EV_WRITE ? 1u << DOWN : 0));
}

void tunnel_end(struct tunnel *tunnel)
{
    for (enum way way = UP; way <= DOWN; way++) {
        buffers_give(&tunnel->client->worker->buffers, tunnel->flows[way].held);
        tunnel->flows[way].held = NULL;
    }
}
