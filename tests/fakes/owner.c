/* owner.c - a link on its own in virtual time for tests; see owner.h. */
#include "tests/fakes/owner.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

/* ---- what it is told ---- */

static struct fake_owner *of(const struct link *link)
{
    return link_data(link);
}

static void note(struct fake_owner *owner, const char *what, struct fake_told told)
{
    struct fake_told last = told;

    snprintf(last.what, sizeof last.what, "%s", what);
    last.at = testing_now(owner->t);
    if (owner->n_told < FAKE_TOLD)
        owner->told[owner->n_told] = last;
    owner->n_told++;
    if (owner->then)
        owner->then(owner, &last);
}

static void on_connecting(struct link *link, unsigned attempt)
{
    note(of(link), "connecting", (struct fake_told){.attempt = attempt});
}

static void on_readable(struct channel *channel)
{
    struct fake_owner *owner = of(channel_link(channel));
    size_t room = sizeof owner->heard - owner->n_heard;
    ssize_t got = channel_read(channel, owner->heard + owner->n_heard, room);

    if (got > 0)
        owner->n_heard += (size_t)got;
    else if (got == 0)
        owner->ended = true;
    else
        owner->fault = (int)got;
}

static const struct channel_events hearing = {.readable = on_readable};

static void on_connected(struct link *link, struct channel *channel)
{
    struct fake_owner *owner = of(link);

    owner->channel = channel;
    owner->ended = false;
    if (owner->hears)
        cr_assert(eq(int, channel_watch(channel, &hearing, LINKPOOL_READ), 0));
    note(owner, "connected", (struct fake_told){0});
}

static void on_disconnected(struct link *link, enum link_reason reason)
{
    struct fake_owner *owner = of(link);

    owner->channel = NULL;
    note(owner, "disconnected", (struct fake_told){.reason = reason});
}

static void on_reconnect(struct link *link, unsigned attempt, double delay)
{
    note(of(link), "reconnect", (struct fake_told){.attempt = attempt, .delay = delay});
}

static void on_stopped(struct link *link, enum link_reason reason)
{
    note(of(link), "stopped", (struct fake_told){.reason = reason});
}

static void on_transition(void *data, const struct pool_host *host, const struct link_transition *transition)
{
    struct fake_owner *owner = data;

    cr_assert(eq(ptr, (void *)host, NULL));
    if (owner->n_records < FAKE_TOLD)
        owner->records[owner->n_records] = *transition;
    owner->n_records++;
}

const char *fake_owner_story(const struct fake_owner *owner)
{
    static char story[FAKE_TOLD * sizeof owner->told->what];
    char *end = story;

    *end = '\0';
    for (unsigned i = 0; i < owner->n_told && i < FAKE_TOLD; i++)
        end += sprintf(end, "%s%s", i ? " " : "", owner->told[i].what);
    return story;
}

unsigned fake_owner_count(const struct fake_owner *owner, const char *what)
{
    unsigned n = 0;

    while (fake_owner_told(owner, what, n))
        n++;
    return n;
}

const struct fake_told *fake_owner_told(const struct fake_owner *owner, const char *what, unsigned i)
{
    for (unsigned k = 0; k < owner->n_told && k < FAKE_TOLD; k++)
        if (!strcmp(owner->told[k].what, what) && !i--)
            return &owner->told[k];
    return NULL;
}

void fake_expect_record(const struct link_transition *record, enum link_state from, enum link_state to,
    const char *event, unsigned attempt, double delay)
{
    cr_assert(eq(int, record->from, from));
    cr_assert(eq(int, record->to, to));
    cr_assert(eq(str, (char *)record->event, (char *)event));
    cr_assert(eq(uint, record->attempt, attempt));
    cr_assert(epsilon_eq(dbl, record->delay, delay, 1e-9));
}

void fake_owner_forget(struct fake_owner *owner)
{
    owner->n_told = owner->n_records = 0;
}

/* ---- the world ---- */

void fake_owner_begin(struct fake_owner *owner, enum testing_behaviour behaviour)
{
    *owner = (struct fake_owner){.t = testing_new(1), .backoff = backoff_edge};
    owner->driver = testing_driver(owner->t);
    owner->peer = testing_peer_add(owner->t, FAKE_ADDRESS, behaviour);
    cr_assert(ne(ptr, owner->peer, NULL));
    testing_peer_serve(owner->peer, testing_echo, NULL);
    owner->env = *testing_env(owner->t);
    owner->observer =
        (struct pool_observer){.size = sizeof owner->observer, .transition = on_transition, .data = owner};
    link_options_init(&owner->options);
    owner->options.backoff = &owner->backoff;
    owner->options.env = &owner->env;
    owner->options.observer = &owner->observer;
    owner->options.connecting = on_connecting;
    owner->options.connected = on_connected;
    owner->options.disconnected = on_disconnected;
    owner->options.reconnect = on_reconnect;
    owner->options.stopped = on_stopped;
    owner->options.data = owner;
}

static struct fake_owner *drawing; /* whose draws are set: the env has the world's data. Tests run in a process each. */

static uint64_t draw(void *data)
{
    (void)data;
    return drawing->draw;
}

void fake_owner_draw(struct fake_owner *owner, double at)
{
    owner->draw = (uint64_t)(at * 0x1p53) << 11;
    owner->env.random = draw;
    drawing = owner;
}

void fake_owner_gaps(struct fake_owner *owner, double base, double factor, double cap)
{
    owner->backoff = backoff_edge;
    owner->backoff.jitter = BACKOFF_NONE;
    owner->backoff.base = base;
    owner->backoff.factor = factor;
    owner->backoff.cap = cap;
}

void fake_owner_open(struct fake_owner *owner)
{
    owner->link = link_new(owner->driver, FAKE_ADDRESS, &owner->options);
    cr_assert(ne(ptr, owner->link, NULL));
}

void fake_owner_start(struct fake_owner *owner)
{
    fake_owner_open(owner);
    cr_assert(eq(int, link_start(owner->link), 0));
}

void fake_owner_end(struct fake_owner *owner)
{
    link_free(owner->link);
    driver_free(owner->driver);
    cr_assert(eq(str, (char *)testing_last_misuse(owner->t), ""));
    cr_assert(eq(uint, testing_misuses(owner->t), 0));
    cr_assert(eq(uint, testing_open_descriptors(owner->t), 0));
    cr_assert(eq(sz, testing_blocks(owner->t), 0));
    cr_assert(not(testing_stuck(owner->t)));
    testing_free(owner->t);
}

/* ---- time ---- */

void fake_owner_run(struct fake_owner *owner, double seconds)
{
    cr_assert(testing_run_for(owner->t, seconds));
}

void fake_owner_settle(struct fake_owner *owner)
{
    fake_owner_run(owner, 1e-6);
}

struct wish {
    const struct link *link;
    enum link_state state;
};

static bool is_there(void *data)
{
    const struct wish *wish = data;

    return link_state(wish->link) == wish->state;
}

void fake_owner_until(struct fake_owner *owner, enum link_state state, double at_most)
{
    struct wish wish = {owner->link, state};

    cr_assert(testing_run_until(owner->t, is_there, &wish, at_most), "%s, not %s, after %g s",
        link_state_name(link_state(owner->link)), link_state_name(state), at_most);
}

struct link_stats fake_link_stats(const struct link *link)
{
    struct link_stats stats;

    link_stats(link, &stats, sizeof stats);
    return stats;
}

double fake_gap(const struct testing_peer *peer, unsigned i)
{
    return testing_peer_attempt_at(peer, i + 1) - testing_peer_attempt_at(peer, i);
}

void fake_owner_send(struct fake_owner *owner, const char *bytes)
{
    struct iovec part = {(void *)(uintptr_t)bytes, strlen(bytes)};

    cr_assert(eq(long, (long)channel_writev(owner->channel, &part, 1), (long)part.iov_len));
}

/* ---- a protocol with a handshake ---- */

static int hello(struct protocol_link *pl)
{
    ssize_t sent = protocol_write(pl, &(struct iovec){(void *)(uintptr_t) "HELLO", 5}, 1);

    return sent == LINKPOOL_ELOST ? LINKPOOL_ELOST : 0;
}

static int hear_ack(struct protocol_link *pl, unsigned events)
{
    char ack[3];
    ssize_t got = protocol_read(pl, ack, sizeof ack);

    (void)events;
    if (got == LINKPOOL_ELOST)
        return LINKPOOL_ELOST;
    if (got < 0)
        return 0;
    if (got != 3 || memcmp(ack, "ACK", 3) != 0)
        return protocol_fail(pl, LINK_HANDSHAKE_FAILED, "no ACK");
    return protocol_ready(pl);
}

const struct protocol fake_hello = {
    .size = sizeof(struct protocol), .name = "hello", .start = hello, .input = hear_ack};

ssize_t fake_ack(void *data, const void *in, size_t n, void *out, size_t room)
{
    (void)data, (void)in, (void)n, (void)room;
    memcpy(out, "ACK", 3);
    return 3;
}
