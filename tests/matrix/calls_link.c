/* calls_link.c - the callers of link.h: links on their own, and channels. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <string.h>

#include "tests/matrix/calls.h"

#define FUNCTION(name) {#name, call_##name},
const struct cell_function cell_functions[] = {
#include "tests/matrix/functions.h"
};
#undef FUNCTION
const unsigned cell_n_functions = sizeof cell_functions / sizeof *cell_functions;

/* ---- a link on its own ---- */

static enum link_state own_state(const struct cell *cell)
{
    switch (cell->from) {
    case FROM_CONNECTING:
        return LINK_CONNECTING;
    case FROM_DISCONNECTED:
    case FROM_RECONNECT:
        return LINK_BACKOFF;
    case FROM_STOPPED:
        return LINK_IDLE;
    default:
        return LINK_READY;
    }
}

/* Links of a pool are only looked at. */
static struct link *pooled(const struct cell *cell)
{
    return cell->lease == LEASE_HELD ? channel_link(cell->subject.lease.channel) : NULL;
}

void call_link_new(struct cell *cell)
{
    struct link_options options;
    struct link *link;

    link_options_init(&options);
    options.env = testing_env(cell->t);
    link = link_new(cell->own_driver, "10.0.0.9:80", &options);
    EXPECT(link != NULL, true);
    EXPECT(link_start(link), 0);
    link_free(link);
    EXPECT(link_new(cell->own_driver, "nowhere", &options) == NULL, true);
    EXPECT(errno, EINVAL);
}

void call_link_start(struct cell *cell)
{
    EXPECT(link_start(cell->own), 0);
    EXPECT(link_start(cell->own), 0);
    EXPECT(link_state(cell->own), own_state(cell));
    if (pooled(cell))
        EXPECT(link_start(pooled(cell)), LINKPOOL_ESTATE);
}

void call_link_stop(struct cell *cell)
{
    link_stop(cell->own);
    link_stop(cell->own);
    EXPECT(link_state(cell->own), LINK_IDLE);
    if (pooled(cell)) {
        link_stop(pooled(cell));
        EXPECT(link_state(pooled(cell)), LINK_READY);
    }
}

void call_link_network_changed(struct cell *cell)
{
    EXPECT(link_network_changed(cell->own), 0);
    EXPECT(link_network_changed(cell->own), 0);
    if (pooled(cell)) {
        EXPECT(link_network_changed(pooled(cell)), LINKPOOL_ESTATE);
        EXPECT(link_state(pooled(cell)), LINK_READY);
    }
}

void call_link_free(struct cell *cell)
{
    link_free(NULL);
    link_free(cell->own);
    cell->own = NULL;
    cell->own_channel = NULL;
    if (pooled(cell)) {
        link_free(pooled(cell));
        EXPECT(link_state(pooled(cell)), LINK_READY);
    }
}

void call_link_state(struct cell *cell)
{
    EXPECT(link_state(cell->own), own_state(cell));
}

void call_link_last_reason(struct cell *cell)
{
    const char *text;
    int error;
    enum link_reason reason = link_last_reason(cell->own, &error, &text);

    if (cell->from == FROM_DISCONNECTED)
        EXPECT(reason, LINK_RESET);
    else if (cell->from == FROM_RECONNECT)
        EXPECT(reason, LINK_REFUSED);
    else
        EXPECT(reason, cell->from == FROM_STOPPED ? LINK_STOPPED : LINK_NO_REASON);
    EXPECT(text != NULL, true);
}

void call_link_retry_in(struct cell *cell)
{
    EXPECT(link_retry_in(cell->own) > 0, own_state(cell) == LINK_BACKOFF);
}

void call_link_data(struct cell *cell)
{
    EXPECT(link_data(cell->own) == cell, true);
    if (pooled(cell))
        EXPECT(link_data(pooled(cell)) == NULL, true);
}

void call_link_stats(struct cell *cell)
{
    struct link_stats stats;

    link_stats(cell->own, &stats, sizeof stats);
    EXPECT(stats.state, own_state(cell));
    EXPECT(stats.room, own_state(cell) == LINK_READY);
}

void call_link_options_init_sized(struct cell *cell)
{
    struct link_options options;

    link_options_init_sized(&options, sizeof options);
    EXPECT(options.size, sizeof options);
}

void call_link_options_check(struct cell *cell)
{
    struct link_options options;

    link_options_init(&options);
    EXPECT(link_options_check(&options, NULL, 0), 0);
}

void call_link_address_check(struct cell *cell)
{
    EXPECT(link_address_check("10.0.0.1:80", NULL, 0), 0);
    EXPECT(link_address_check("10.0.0.1:0", NULL, 0), LINKPOOL_EADDRESS);
}

void call_link_state_name(struct cell *cell)
{
    EXPECT(strcmp(link_state_name(LINK_READY), "ready"), 0);
}

void call_link_reason_text(struct cell *cell)
{
    EXPECT(strcmp(link_reason_text(LINK_REFUSED), "connection refused"), 0);
}

/* ---- channels ---- */

/* The subject's, also when it is over and untold; else that of the link on its own, where it is connected. */
static struct channel *channel_of(const struct cell *cell)
{
    if (cell->lease == LEASE_HELD || cell->lease == LEASE_LOST)
        return cell->subject.lease.channel;
    return cell->own_channel;
}

static bool is_over(const struct cell *cell)
{
    return cell->lease == LEASE_LOST;
}

static void on_any(struct channel *channel)
{
    char bytes[16];

    if (channel_read(channel, bytes, sizeof bytes) <= 0)
        channel_want(channel, 0);
}

static const struct channel_events events = {.readable = on_any, .writable = on_any};

void call_channel_watch(struct cell *cell)
{
    struct channel *channel = channel_of(cell);

    if (!channel)
        return;
    EXPECT(channel_watch(channel, NULL, 0), LINKPOOL_EINVAL);
    EXPECT(channel_watch(channel, &events, 4), LINKPOOL_EINVAL);
    EXPECT(channel_watch(channel, &events, LINKPOOL_READ | LINKPOOL_WRITE), is_over(cell) ? LINKPOOL_ESTATE : 0);
}

void call_channel_want(struct cell *cell)
{
    struct channel *channel = channel_of(cell);

    if (!channel)
        return;
    EXPECT(channel_want(channel, 4), LINKPOOL_EINVAL);
    EXPECT(channel_watch(channel, &events, 0), is_over(cell) ? LINKPOOL_ESTATE : 0); /* before it nobody would hear */
    EXPECT(channel_want(channel, LINKPOOL_READ), is_over(cell) ? LINKPOOL_ESTATE : 0);
}

void call_channel_read(struct cell *cell)
{
    struct channel *channel = channel_of(cell);
    char bytes[4];

    if (channel)
        EXPECT(channel_read(channel, bytes, sizeof bytes), is_over(cell) ? LINKPOOL_ELOST : LINKPOOL_EAGAIN);
}

void call_channel_writev(struct cell *cell)
{
    struct iovec part = {"four", 4};
    struct channel *channel = channel_of(cell);

    if (channel)
        EXPECT(channel_writev(channel, &part, 1), is_over(cell) ? LINKPOOL_ELOST : 4);
}

void call_channel_send(struct cell *cell)
{
    struct channel *channel = channel_of(cell);

    if (channel)
        EXPECT(channel_send(channel, "m", 1), is_over(cell) ? LINKPOOL_ELOST : LINKPOOL_EOPTION);
    if (cell->from == FROM_MESSAGE || cell->from == FROM_ERROR)
        EXPECT(channel_send(cell->trigger.lease.channel, "n", 1), 0);
}

void call_channel_shutdown(struct cell *cell)
{
    struct channel *channel = channel_of(cell);

    if (channel)
        EXPECT(channel_shutdown(channel), is_over(cell) ? LINKPOOL_ELOST : 0);
}

void call_channel_fd(struct cell *cell)
{
    struct channel *channel = channel_of(cell);

    if (channel)
        EXPECT(channel_fd(channel) >= 0, !is_over(cell));
}

void call_channel_native(struct cell *cell)
{
    struct channel *channel = channel_of(cell);

    if (channel)
        EXPECT(channel_native(channel) == NULL, true);
}

void call_channel_keep_private(struct cell *cell)
{
    struct channel *channel = channel_of(cell);

    if (channel)
        channel_keep_private(channel);
}

void call_channel_link(struct cell *cell)
{
    struct channel *channel = channel_of(cell);

    if (channel)
        EXPECT(channel_link(channel) == cell->own, channel == cell->own_channel);
}

void call_channel_lease(struct cell *cell)
{
    struct channel *channel = channel_of(cell);

    if (channel)
        EXPECT(channel_lease(channel) == (channel == cell->own_channel ? NULL : &cell->subject.lease), true);
}

void call_channel_set_data(struct cell *cell)
{
    struct channel *channel = channel_of(cell);

    if (!channel)
        return;
    channel_set_data(channel, cell);
    EXPECT(channel_data(channel) == cell, true);
}

void call_channel_data(struct cell *cell)
{
    struct channel *channel = channel_of(cell);

    if (channel)
        EXPECT(channel_data(channel) == NULL, true);
}
