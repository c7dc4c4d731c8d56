/* cell.c - see cell.h. */
#include "tests/matrix/cell.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>

#include "tests/fakes/shared.h"

#define HOST    "10.0.0.1:80"
#define TRIGGER "10.0.0.2:80"
#define MEMBER  "10.0.0.4:80"
#define HOLE    "10.0.0.5:80"
#define OWN     "10.0.0.7:80"
#define TALKER  "10.0.0.8:80"

const char *cell_from_name(enum cell_from from)
{
    static const char *const names[FROMS] = {"done", "done, from pool_free", "closed", "closed, from pool_free",
        "readable", "writable", "message", "error", "part", "pool drained", "target drained", "testing_at", "call part",
        "call done", "call done, from pool_free", "fanout done", "fanout done, from pool_free", "connecting",
        "connected", "disconnected", "reconnect", "stopped"};

    return names[from];
}

const char *cell_lease_name(enum cell_lease lease)
{
    static const char *const names[] = {"over", "waiting", "won", "held", "failed", "lost"};

    return names[lease];
}

bool cell_exists(enum cell_from from, enum cell_lease lease)
{
    switch (from) {
    case FROM_DONE_OF_FREE:
    case FROM_CALL_DONE_OF_FREE: /* what was held is told before those who wait */
        return lease == LEASE_OVER || lease == LEASE_FAILED;
    case FROM_CLOSED_OF_FREE:
        return lease == LEASE_OVER || lease == LEASE_FAILED || lease == LEASE_LOST;
    case FROM_FANOUT_DONE_OF_FREE: /* after all leases */
    case FROM_POOL_DRAINED:        /* no lease is left */
        return lease == LEASE_OVER;
    default:
        return lease <= LEASE_HELD;
    }
}

void cell_expect(const struct cell *cell, const char *what, long actual, long expected)
{
    cr_assert(eq(long, actual, expected), "%s from %s, the lease %s: %s", cell->function, cell_from_name(cell->from),
        cell_lease_name(cell->lease), what);
}

/* ---- the moment ---- */

static void fire(struct cell *cell)
{
    if (cell->fired)
        return;
    cell->fired = true;
    if (cell->lease == LEASE_WON) {
        cell_expect(cell, "the blocker gives back", pool_release(&cell->blocker.lease, POOL_REUSE), 0);
        cell->blocker.released++;
    }
    cell->call(cell);
}

static bool has_fired(void *data)
{
    return ((struct cell *)data)->fired;
}

/* ---- leases ---- */

static void on_done(struct pool_lease *lease)
{
    struct cell_user *user = lease->data;

    user->done++;
    user->held = lease->status == POOL_READY;
    if (user == &user->cell->trigger && (user->cell->from == FROM_DONE || user->cell->from == FROM_DONE_OF_FREE))
        fire(user->cell);
}

static void on_closed(struct pool_lease *lease)
{
    struct cell_user *user = lease->data;

    user->closed++;
    if (user == &user->cell->trigger && (user->cell->from == FROM_CLOSED || user->cell->from == FROM_CLOSED_OF_FREE))
        fire(user->cell);
}

struct pool_lease *cell_prepare(struct cell_user *user)
{
    user->lease.data = user;
    user->lease.done = on_done;
    user->lease.closed = on_closed;
    return &user->lease;
}

int cell_asked(struct cell_user *user, int status)
{
    if (status < 0)
        return status;
    *user = (struct cell_user){.lease = user->lease, .cell = user->cell, .asked = true};
    user->held = user->held_at_once = status == POOL_READY;
    return status;
}

static bool has_channel(void *data)
{
    return ((struct cell_user *)data)->lease.channel != NULL;
}

static void hold(struct cell *cell, struct cell_user *user, struct pool_host *host)
{
    cr_assert(ge(int, cell_asked(user, pool_acquire_host(host, cell_prepare(user))), 0));
    cr_assert(testing_run_until(cell->t, has_channel, user, 1));
}

static void give_back(struct cell_user *user)
{
    if (user->lease.channel && pool_release(&user->lease, POOL_REUSE) == 0)
        user->released++;
}

/* Each lease has one outcome: told once, or given up before; and one end of what it held. */
static void check_outcome(struct cell_user *user)
{
    unsigned told = user->held_at_once + user->done;

    if (!user->asked) {
        cell_expect(user->cell, "told without having asked", told + user->closed, 0);
        return;
    }
    cell_expect(user->cell, "one outcome", told + user->gave_up + (user->held ? 0 : user->forgotten), 1);
    cell_expect(user->cell, "one end", user->closed + user->released + (user->held ? user->forgotten : 0), user->held);
}

/* ---- calls ---- */

static void note_call(struct cell_calls *calls, enum cell_from from, enum cell_from of_free)
{
    struct cell *cell = calls->cell;

    calls->told++;
    if (calls == &cell->trigger_calls && (cell->from == from || cell->from == of_free))
        fire(cell);
}

static void on_call_part(struct pool_call *call, const void *bytes, size_t n)
{
    struct cell_calls *calls = call->data;

    (void)bytes, (void)n;
    if (calls == &calls->cell->trigger_calls)
        fire(calls->cell);
}

static void on_call(struct pool_call *call)
{
    note_call(call->data, FROM_CALL_DONE, FROM_CALL_DONE_OF_FREE);
}

static void on_group(struct pool_fanout *group)
{
    note_call(group->data, FROM_FANOUT_DONE, FROM_FANOUT_DONE_OF_FREE);
}

void cell_prepare_calls(struct cell *cell, struct cell_calls *calls, bool is_group, const char *address)
{
    struct pool_endpoint endpoint = {.size = sizeof endpoint, .address = TALKER, .protocol = &fake_shared};
    struct pool_host *host = address ? NULL : pool_host_for(cell->pool, &endpoint, NULL);

    *calls = (struct cell_calls){.cell = cell, .is_group = is_group};
    for (unsigned i = 0; i < 2; i++)
        calls->calls[i] = (struct pool_call){.host = host,
            .to = host      ? NULL
                  : address ? address
                            : TALKER,
            .request = "c",
            .request_size = 1,
            .done = is_group ? NULL : on_call,
            .data = calls};
    calls->group = (struct pool_fanout){.calls = calls->calls, .n = 2, .done = on_group, .data = calls};
}

static void trigger_calls(struct cell *cell, const char *address)
{
    struct cell_calls *calls = &cell->trigger_calls;
    bool is_group = cell->from == FROM_FANOUT_DONE || cell->from == FROM_FANOUT_DONE_OF_FREE;

    cell_prepare_calls(cell, calls, is_group, address);
    calls->calls[0].part = cell->from == FROM_CALL_PART ? on_call_part : NULL;
    calls->asked++;
    cr_assert(eq(int, is_group ? pool_fanout(cell->pool, &calls->group) : pool_call(cell->pool, &calls->calls[0]),
        POOL_PENDING));
}

static void check_calls(const struct cell_calls *calls)
{
    if (calls->cell)
        cell_expect(
            calls->cell, "one outcome of its calls", calls->told + calls->gave_up + calls->forgotten, calls->asked);
}

/* ---- the callbacks ---- */

static void on_readable(struct channel *channel)
{
    char byte;

    if (channel_read(channel, &byte, 1) == 1)
        fire(channel_data(channel));
}

static void on_writable(struct channel *channel)
{
    struct cell *cell = channel_data(channel);

    channel_want(channel, 0);
    fire(cell);
}

static void on_message(struct channel *channel, const void *bytes, size_t n)
{
    (void)bytes, (void)n;
    fire(channel_data(channel));
}

static void on_error(struct channel *channel, uint32_t code, const void *words, size_t n)
{
    (void)code, (void)words, (void)n;
    fire(channel_data(channel));
}

static void on_part(struct channel *channel, const void *bytes, size_t n, bool last)
{
    (void)bytes, (void)n, (void)last;
    fire(channel_data(channel));
}

void cell_on_pool_drained(struct pool *pool, void *data)
{
    struct cell *cell = data;

    (void)pool;
    cell->drains_told++;
    if (cell->from == FROM_POOL_DRAINED)
        fire(cell);
}

void cell_on_target_drained(struct pool_target *target, void *data)
{
    struct cell *cell = data;

    (void)target;
    cell->drains_told++;
    if (cell->from == FROM_TARGET_DRAINED)
        fire(cell);
}

static void on_time(void *data)
{
    fire(data);
}

static void on_connecting(struct link *link, unsigned attempt)
{
    struct cell *cell = link_data(link);

    (void)attempt;
    if (cell->from == FROM_CONNECTING)
        fire(cell);
}

static void on_connected(struct link *link, struct channel *channel)
{
    struct cell *cell = link_data(link);

    cell->own_channel = channel;
    if (cell->from == FROM_CONNECTED)
        fire(cell);
}

static void on_disconnected(struct link *link, enum link_reason reason)
{
    struct cell *cell = link_data(link);

    (void)reason;
    cell->own_channel = NULL;
    if (cell->from == FROM_DISCONNECTED)
        fire(cell);
}

static void on_reconnect(struct link *link, unsigned attempt, double delay)
{
    struct cell *cell = link_data(link);

    (void)attempt, (void)delay;
    if (cell->from == FROM_RECONNECT)
        fire(cell);
}

static void on_stopped(struct link *link, enum link_reason reason)
{
    struct cell *cell = link_data(link);

    (void)reason;
    if (cell->from == FROM_STOPPED)
        fire(cell);
}

/* ---- the world ---- */

static struct testing_peer *echo(struct cell *cell, const char *address)
{
    struct testing_peer *peer = testing_peer_add(cell->t, address, TESTING_ACCEPT);

    testing_peer_serve(peer, testing_echo, NULL);
    return peer;
}

static void open_pool(struct cell *cell)
{
    struct pool_options options;

    pool_options_init(&options);
    options.env = testing_env(cell->t);
    cell->pool = pool_new_on(testing_driver(cell->t), &options);
    cr_assert(ne(ptr, cell->pool, NULL));
}

static void open_own(struct cell *cell)
{
    struct link_options options;

    link_options_init(&options);
    options.env = testing_env(cell->t);
    options.backoff = &backoff_edge;
    options.data = cell;
    options.connecting = on_connecting;
    options.connected = on_connected;
    options.disconnected = on_disconnected;
    options.reconnect = on_reconnect;
    options.stopped = on_stopped;
    cell->own_driver = testing_driver(cell->t);
    cell->own = link_new(cell->own_driver, OWN, &options);
    cr_assert(ne(ptr, cell->own, NULL));
}

static struct pool_host *host_of_one_link(struct cell *cell, const char *address)
{
    struct pool_endpoint endpoint = {.size = sizeof endpoint, .address = address};
    struct pool_host_options options;

    pool_host_options_init(&options);
    options.max_links = 1;
    return pool_host_for(cell->pool, &endpoint, &options);
}

static void add_target(struct cell *cell)
{
    struct pool_endpoint endpoint = {.size = sizeof endpoint, .address = MEMBER};
    struct pool_target_options options;

    pool_target_options_init(&options);
    options.endpoints = &endpoint;
    options.n_endpoints = 1;
    cell->target = pool_target_add(cell->pool, "target", &options);
    cr_assert(ne(ptr, cell->target, NULL));
}

static void set_subject(struct cell *cell)
{
    struct cell_user *subject = &cell->subject;

    if (cell->lease == LEASE_WAITING || cell->lease == LEASE_WON || cell->lease == LEASE_FAILED) {
        hold(cell, &cell->blocker, cell->host);
        cr_assert(eq(int, cell_asked(subject, pool_acquire_host(cell->host, cell_prepare(subject))), POOL_PENDING));
        return;
    }
    hold(cell, subject, cell->host);
    if (cell->lease == LEASE_OVER)
        give_back(subject);
}

static void begin(struct cell *cell)
{
    *cell = (struct cell){
        .function = cell->function, .call = cell->call, .from = cell->from, .lease = cell->lease, .t = testing_new(1)};
    cell->subject.cell = cell->trigger.cell = cell->blocker.cell = cell;
    echo(cell, HOST);
    echo(cell, TRIGGER);
    echo(cell, MEMBER);
    echo(cell, "10.0.0.9:80");
    echo(cell, TALKER);
    testing_peer_add(cell->t, HOLE, TESTING_BLACK_HOLE);
    cell->own_peer = echo(cell, OWN);
    open_pool(cell);
    open_own(cell);
}

/* ---- the triggers ---- */

static void trigger_events(struct cell *cell, const struct channel_events *events, unsigned want)
{
    struct channel *channel;

    hold(cell, &cell->trigger, pool_host(cell->pool, TRIGGER));
    channel = cell->trigger.lease.channel;
    channel_set_data(channel, cell);
    cr_assert(eq(int, channel_watch(channel, events, want), 0));
    if (want & LINKPOOL_READ)
        cr_assert(eq(long, channel_writev(channel, &(struct iovec){"x", 1}, 1), 1));
}

static void trigger_message(struct cell *cell)
{
    static const struct channel_events whole = {.message = on_message, .error = on_error}, in_parts = {.part = on_part};
    const struct channel_events *events = cell->from == FROM_PART ? &in_parts : &whole;
    struct pool_endpoint endpoint = {.size = sizeof endpoint, .address = TRIGGER, .protocol = &fake_shared};

    hold(cell, &cell->trigger, pool_host_for(cell->pool, &endpoint, NULL));
    channel_set_data(cell->trigger.lease.channel, cell);
    cr_assert(eq(int, channel_watch(cell->trigger.lease.channel, events, 0), 0));
    cr_assert(eq(int, channel_send(cell->trigger.lease.channel, cell->from == FROM_ERROR ? "!" : "m", 1), 0));
}

static void trigger_done(struct cell *cell, const char *address)
{
    struct cell_user *trigger = &cell->trigger;

    cr_assert(eq(int, cell_asked(trigger, pool_acquire(cell->pool, address, cell_prepare(trigger))), POOL_PENDING));
}

static void free_pool(struct cell *cell)
{
    struct pool *pool = cell->pool;

    cell->freeing = true;
    pool_free(pool);
    cell->pool = NULL;
    cell->freeing = false;
}

static void start_own(struct cell *cell)
{
    link_start(cell->own);
    if (cell->from >= FROM_CONNECTING && cell->from != FROM_DISCONNECTED && cell->from != FROM_STOPPED)
        return;
    testing_run_for(cell->t, 0.01);
    cr_assert(eq(int, link_state(cell->own), LINK_READY));
}

static const struct channel_events readable_events = {.readable = on_readable};
static const struct channel_events writable_events = {.writable = on_writable};

/* What there must be before the subject: in pool_free() the host made first is told first. */
static void before_subject(struct cell *cell)
{
    if (cell->from == FROM_DONE_OF_FREE)
        trigger_done(cell, HOLE);
    if (cell->from == FROM_CALL_DONE_OF_FREE || cell->from == FROM_FANOUT_DONE_OF_FREE)
        trigger_calls(cell, HOLE);
    if (cell->from == FROM_CLOSED_OF_FREE)
        hold(cell, &cell->trigger, pool_host(cell->pool, TRIGGER));
}

static void pull_pool(struct cell *cell)
{
    switch (cell->from) {
    case FROM_DONE:
        trigger_done(cell, TRIGGER);
        break;
    case FROM_CALL_PART:
    case FROM_CALL_DONE:
    case FROM_FANOUT_DONE:
        trigger_calls(cell, NULL);
        break;
    case FROM_DONE_OF_FREE:
    case FROM_CLOSED_OF_FREE:
    case FROM_CALL_DONE_OF_FREE:
    case FROM_FANOUT_DONE_OF_FREE:
        free_pool(cell);
        break;
    case FROM_CLOSED:
        hold(cell, &cell->trigger, pool_host(cell->pool, TRIGGER));
        pool_host_drain(cell->trigger.lease.host, 0);
        break;
    case FROM_READABLE:
        trigger_events(cell, &readable_events, LINKPOOL_READ);
        break;
    case FROM_WRITABLE:
        trigger_events(cell, &writable_events, LINKPOOL_WRITE);
        break;
    case FROM_MESSAGE:
    case FROM_ERROR:
    case FROM_PART:
        trigger_message(cell);
        break;
    case FROM_POOL_DRAINED:
        cell->drains_asked++;
        cell->pool_drains = true;
        pool_drain(cell->pool, INFINITY, cell_on_pool_drained, cell);
        break;
    default:
        break;
    }
}

static void pull(struct cell *cell)
{
    switch (cell->from) {
    case FROM_TARGET_DRAINED:
        cell->drains_asked++;
        cell->target_drains = true;
        pool_target_drain(cell->target, INFINITY, cell_on_target_drained, cell);
        break;
    case FROM_TIMER:
        testing_at(cell->t, testing_now(cell->t) + 0.01, on_time, cell);
        break;
    case FROM_CONNECTING:
        testing_peer_delay(cell->own_peer, 0.1, 0);
        break;
    case FROM_DISCONNECTED:
        testing_peer_cut(cell->own_peer, LINK_RESET);
        break;
    case FROM_RECONNECT:
        testing_peer_behave(cell->own_peer, TESTING_REFUSE);
        break;
    case FROM_STOPPED:
        link_stop(cell->own);
        break;
    default:
        pull_pool(cell);
        break;
    }
}

/* ---- the end ---- */

static void end(struct cell *cell)
{
    testing_run_for(cell->t, 0.1);
    if (cell->pool) {
        give_back(&cell->blocker);
        give_back(&cell->trigger);
        testing_run_for(cell->t, 6); /* longer than anybody waits */
        give_back(&cell->subject);
        testing_run_for(cell->t, 1);
        cell_expect(cell, "each drain is told once", cell->drains_told, cell->drains_asked);
        free_pool(cell);
    }
    link_free(cell->own);
    testing_run_for(cell->t, 1);
    check_outcome(&cell->subject);
    check_outcome(&cell->trigger);
    check_outcome(&cell->blocker);
    check_calls(&cell->calls);
    check_calls(&cell->trigger_calls);
    cr_assert(eq(str, (char *)testing_last_misuse(cell->t), ""));
    cell_expect(cell, "descriptors left", testing_open_descriptors(cell->t), 0);
    cell_expect(cell, "blocks left", (long)testing_blocks(cell->t), 0);
    cell_expect(cell, "stuck", testing_stuck(cell->t), false);
    testing_free(cell->t);
}

void cell_play(struct cell *cell)
{
    begin(cell);
    before_subject(cell);
    cell->host = host_of_one_link(cell, HOST);
    add_target(cell);
    set_subject(cell);
    if (cell->from < FROM_CONNECTING || cell->from == FROM_DISCONNECTED || cell->from == FROM_STOPPED)
        start_own(cell);
    pull(cell);
    if (cell->from == FROM_CONNECTING || cell->from == FROM_CONNECTED || cell->from == FROM_RECONNECT)
        start_own(cell);
    testing_run_until(cell->t, has_fired, cell, 2);
    cell_expect(cell, "the callback ran", cell->fired, true);
    end(cell);
}
