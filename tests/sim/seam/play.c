/* play.c - see play.h. */
#include "tests/sim/seam/play.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pool/internal.h"

/* ---- the log ---- */

void note(struct play *p, double value, const char *format, ...)
{
    struct record *record;
    va_list arguments;

    if (p->log.n == p->log.room) {
        p->log.room = p->log.room ? 2 * p->log.room : 256;
        p->log.records = realloc(p->log.records, p->log.room * sizeof *p->log.records);
        assert(p->log.records);
    }
    record = &p->log.records[p->log.n++];
    *record = (struct record){.at = p->stage->now(p->stage) - 1000, .value = value};
    va_start(arguments, format);
    vsnprintf(record->text, sizeof record->text, format, arguments);
    va_end(arguments);
    if (p->log.verbose)
        printf("    %-7s %12.6f  %s  (%.6g)\n", p->stage->name, record->at, record->text, record->value);
}

/** What must hold on either stage. */
static void must(struct play *p, bool holds, const char *what)
{
    if (holds)
        return;
    p->broken++;
    note(p, 0, "BROKEN: %s", what);
}

/* ---- the env ---- */

static void *call_realloc(void *data, void *memory, size_t was, size_t size)
{
    struct play *p = data;
    void *got = p->stage->env->realloc(p->stage->env->data, memory, was, size);

    p->blocks += (!memory && size) - (size_t)(memory && !size);
    p->bytes += size - was;
    return got;
}

/* splitmix64, as everywhere in the tests; the same draws on both stages */
static uint64_t call_random(void *data)
{
    struct play *p = data;
    uint64_t z = p->draws += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* The others are the stage's, which get its data. */
#define STAGE_ENV(data) (((struct play *)(data))->stage->env)

static int call_socket(void *data, int domain, int type, int protocol)
{
    return STAGE_ENV(data)->socket(STAGE_ENV(data)->data, domain, type, protocol);
}

static int call_connect(void *data, int fd, const struct sockaddr *address, socklen_t size)
{
    return STAGE_ENV(data)->connect(STAGE_ENV(data)->data, fd, address, size);
}

static int call_bind(void *data, int fd, const struct sockaddr *address, socklen_t size)
{
    return STAGE_ENV(data)->bind(STAGE_ENV(data)->data, fd, address, size);
}

static int call_setsockopt(void *data, int fd, int level, int name, const void *value, socklen_t size)
{
    return STAGE_ENV(data)->setsockopt(STAGE_ENV(data)->data, fd, level, name, value, size);
}

static int call_getsockopt(void *data, int fd, int level, int name, void *value, socklen_t *size)
{
    return STAGE_ENV(data)->getsockopt(STAGE_ENV(data)->data, fd, level, name, value, size);
}

static ssize_t call_recvmsg(void *data, int fd, struct msghdr *message, int flags)
{
    return STAGE_ENV(data)->recvmsg(STAGE_ENV(data)->data, fd, message, flags);
}

static ssize_t call_sendmsg(void *data, int fd, const struct msghdr *message, int flags)
{
    return STAGE_ENV(data)->sendmsg(STAGE_ENV(data)->data, fd, message, flags);
}

static int call_shutdown(void *data, int fd, int how)
{
    return STAGE_ENV(data)->shutdown(STAGE_ENV(data)->data, fd, how);
}

static int call_close(void *data, int fd)
{
    return STAGE_ENV(data)->close(STAGE_ENV(data)->data, fd);
}

static void make_env(struct play *p)
{
    p->draws = 4;
    p->env = (struct linkpool_env){.data = p,
        .socket = call_socket,
        .connect = call_connect,
        .bind = call_bind,
        .setsockopt = call_setsockopt,
        .getsockopt = call_getsockopt,
        .recvmsg = call_recvmsg,
        .sendmsg = call_sendmsg,
        .shutdown = call_shutdown,
        .close = call_close,
        .realloc = call_realloc,
        .random = call_random};
}

/* ---- what is told ---- */

static void on_transition(void *data, const struct pool_host *of, const struct link_transition *t)
{
    (void)of;
    note(data, t->delay, "link %llu %s -> %s by %s: %s, errno %d, failures %u", (unsigned long long)t->link,
        link_state_name(t->from), link_state_name(t->to), t->event, link_reason_text(t->reason), t->system_errno,
        t->attempt);
}

static void on_target(void *data, const struct pool_target *which, enum link_state from, enum link_state to)
{
    note(data, 0, "target %s %s -> %s", pool_target_name(which), link_state_name(from), link_state_name(to));
}

static void on_waited(void *data, const struct pool_lease *lease, double seconds)
{
    note(data, seconds, "user %u has waited", ((const struct user *)lease)->i);
}

static unsigned place_of(struct play *p, const struct pool_host *of)
{
    unsigned i = 0;

    while (of && i < STAGE_PEERS && strcmp(p->address[i], pool_host_address(of)) != 0)
        i++;
    return of ? i : 99;
}

static void note_lease(const struct user *user, const char *what)
{
    const struct pool_lease *lease = &user->lease;

    note(user->play, 0, "user %u %s: %d, peer %u, %s, errno %d, stage %d, bound %d, fate %d, reused %d", user->i, what,
        lease->status, place_of(user->play, lease->host), link_reason_text(lease->reason), lease->system_errno,
        lease->stage, lease->bound, lease->fate, lease->reused);
}

static void then(struct user *user, enum event event)
{
    if (user->then)
        user->then(user, event);
}

static void on_done(struct pool_lease *lease)
{
    struct user *user = (struct user *)lease;

    must(user->play, user->waits, "told once");
    user->waits = false;
    note_lease(user, "is told");
    if (lease->channel && user->reads)
        listen_to(user->play, user->i);
    then(user, TOLD);
}

static void on_closed(struct pool_lease *lease)
{
    struct user *user = (struct user *)lease;

    must(user->play, !user->waits, "what is closed was told");
    note_lease(user, "is closed");
    then(user, TAKEN);
}

/* ---- asking and giving back ---- */

static struct pool_lease *begin(struct play *p, unsigned i)
{
    struct user *user = &p->users[i];

    user->play = p;
    user->i = i;
    user->lease.done = on_done;
    user->lease.closed = on_closed;
    user->heard = 0;
    return &user->lease;
}

static void asked(struct play *p, unsigned i, int status)
{
    struct user *user = &p->users[i];

    user->waits = status == POOL_PENDING;
    note_lease(user, "asks");
    if (status == POOL_READY && user->reads)
        listen_to(p, i);
}

void ask(struct play *p, unsigned i, unsigned to)
{
    asked(p, i, pool_acquire(p->pool, p->address[to], begin(p, i)));
}

void ask_target(struct play *p, unsigned i, unsigned to)
{
    asked(p, i, pool_acquire_target(p->targets[to], begin(p, i)));
}

void cancel(struct play *p, unsigned i)
{
    int result = pool_cancel(&p->users[i].lease);

    p->users[i].waits = p->users[i].waits && result;
    note(p, 0, "user %u cancels: %d", i, result);
}

void give_back(struct play *p, unsigned i)
{
    int result = pool_release(&p->users[i].lease, POOL_REUSE);

    note(p, 0, "user %u gives back: %d", i, result);
}

void discard(struct play *p, unsigned i)
{
    int result = pool_release(&p->users[i].lease, POOL_DISCARD);

    note(p, 0, "user %u discards: %d", i, result);
}

/* ---- bytes ---- */

static void note_end(struct user *user, long got)
{
    note(user->play, 0, "user %u reads %ld after %zu: %s, errno %d", user->i, got, user->heard,
        link_reason_text(user->lease.reason), user->lease.system_errno);
}

static void on_readable(struct channel *channel)
{
    struct user *user = (struct user *)channel_lease(channel);
    char bytes[8192];
    ssize_t got;

    while ((got = channel_read(channel, bytes, sizeof bytes)) > 0) {
        user->heard += (size_t)got;
        if (!user->counts_only)
            note(user->play, 0, "user %u hears %.*s", user->i, (int)(got < 40 ? got : 40), bytes);
    }
    if (got == LINKPOOL_EAGAIN) {
        then(user, HEARD);
        return;
    }
    note_end(user, got);
    channel_want(channel, 0);
    then(user, ENDED);
}

static void go_on_sending(struct user *user)
{
    static const char bytes[65536];
    ssize_t sent = 0;

    while (user->to_send && sent >= 0) {
        size_t n = user->to_send < sizeof bytes ? user->to_send : sizeof bytes;
        sent = channel_writev(user->lease.channel, &(struct iovec){(void *)bytes, n}, 1);
        user->to_send -= sent > 0 ? (size_t)sent : 0;
        user->was_blocked = user->was_blocked || sent == LINKPOOL_EAGAIN;
    }
    if (sent < 0 && sent != LINKPOOL_EAGAIN)
        note(user->play, 0, "user %u cannot send: %ld", user->i, (long)sent);
    channel_want(user->lease.channel, LINKPOOL_READ | (user->to_send && sent == LINKPOOL_EAGAIN ? LINKPOOL_WRITE : 0u));
}

static void on_writable(struct channel *channel)
{
    struct user *user = (struct user *)channel_lease(channel);

    go_on_sending(user);
    if (user->to_send)
        return;
    note(user->play, 0, "user %u has sent all, blocked %d", user->i, user->was_blocked);
    then(user, SENT_ALL);
}

static void on_message(struct channel *channel, const void *bytes, size_t n)
{
    struct user *user = (struct user *)channel_lease(channel);

    user->heard += n;
    note(user->play, 0, "user %u gets %.*s", user->i, (int)n, (const char *)bytes);
    then(user, HEARD);
}

static const struct channel_events events = {
    .readable = on_readable, .writable = on_writable, .message = on_message};

void listen_to(struct play *p, unsigned i)
{
    channel_watch(p->users[i].lease.channel, &events, LINKPOOL_READ);
}

void want(struct play *p, unsigned i, unsigned wanted)
{
    note(p, 0, "user %u wants %u: %d", i, wanted, channel_want(p->users[i].lease.channel, wanted));
}

void say(struct play *p, unsigned i, const char *text)
{
    struct channel *channel = p->users[i].lease.channel;
    size_t n = strlen(text);
    long result = p->host.protocol && p->host.protocol->flags & PROTOCOL_SHARED
                      ? channel_send(channel, text, n)
                      : channel_writev(channel, &(struct iovec){(void *)text, n}, 1);

    note(p, 0, "user %u says %s: %ld", i, text, result);
}

void send_much(struct play *p, unsigned i, size_t n)
{
    p->users[i].to_send = n;
    channel_watch(p->users[i].lease.channel, &events, LINKPOOL_READ);
    go_on_sending(&p->users[i]);
    note(p, 0, "user %u sends much, blocked %d", i, p->users[i].was_blocked);
}

void exchange(struct play *p, unsigned i)
{
    listen_to(p, i);
    say(p, i, "?");
    run(p, 0.001);
}

/* ---- the world ---- */

void run(struct play *p, double seconds)
{
    if (!p->stage->stuck)
        p->stage->run(p->stage, seconds);
    must(p, !p->stage->stuck, "nothing spins");
}

void leap(struct play *p, double seconds)
{
    p->stage->leap(p->stage, seconds);
}

void at(struct play *p, double seconds, void (*fn)(void *data), void *data)
{
    p->stage->at(p->stage, seconds, fn, data);
}

void peer(struct play *p, unsigned i, enum testing_behaviour behaviour)
{
    p->has_peer[i] = true;
    p->stage->peer(p->stage, i, p->address[i], behaviour);
}

void echo_peer(struct play *p, unsigned i)
{
    peer(p, i, TESTING_ACCEPT);
    p->stage->echo(p->stage, i, true);
}

void behave(struct play *p, unsigned i, enum testing_behaviour behaviour)
{
    p->stage->behave(p->stage, i, behaviour);
}

void delay(struct play *p, unsigned i, double connect, double answer)
{
    p->stage->delay(p->stage, i, connect, answer);
}

void greet(struct play *p, unsigned i, const char *text)
{
    p->stage->greet(p->stage, i, text);
}

void peer_says(struct play *p, unsigned i, const char *text)
{
    p->stage->say(p->stage, i, text);
}

void cut(struct play *p, unsigned i, enum link_reason how)
{
    p->stage->cut(p->stage, i, how);
}

void window(struct play *p, unsigned i, size_t bytes)
{
    p->stage->window(p->stage, i, bytes);
}

/* ---- hosts, targets, the pool ---- */

struct pool_host *host(struct play *p, unsigned i)
{
    struct pool_host *made = pool_host(p->pool, p->address[i]);

    must(p, made, "a host is made");
    return made;
}

static void endpoints(struct play *p, struct pool_endpoint *to, unsigned first, unsigned n)
{
    assert(first + n <= STAGE_PEERS);
    for (unsigned i = 0; i < n; i++)
        to[i] = (struct pool_endpoint){.size = sizeof *to, .address = p->address[first + i]};
}

void target(struct play *p, unsigned i, const struct pool_picker *picker, unsigned first, unsigned n)
{
    static const char *const names[PLAY_TARGETS] = {"one", "two", "three"};
    struct pool_endpoint list[STAGE_PEERS];
    struct pool_target_options options;

    endpoints(p, list, first, n);
    pool_target_options_init(&options);
    options.picker = picker;
    options.endpoints = list;
    options.n_endpoints = n;
    p->targets[i] = pool_target_add(p->pool, names[i], &options);
    must(p, p->targets[i], "a target is made");
}

void update(struct play *p, unsigned i, unsigned first, unsigned n)
{
    struct pool_endpoint list[STAGE_PEERS];

    endpoints(p, list, first, n);
    note(p, 0, "update: %d", pool_target_update(p->targets[i], list, n));
}

static void on_drained(struct pool *pool, void *data)
{
    (void)pool;
    note(data, 0, "drained");
}

void drain(struct play *p, double timeout)
{
    note(p, 0, "drain: %d", pool_drain(p->pool, timeout, on_drained, p));
}

static void note_ends(struct play *p, const struct pool_stats *s)
{
    for (int reason = 0; reason < LINK_REASONS; reason++)
        if (s->ends[reason])
            note(p, 0, "%llu ended: %s", (unsigned long long)s->ends[reason], link_reason_text((enum link_reason)reason));
}

static void note_stats(struct play *p)
{
    struct pool_stats s;
    unsigned long long waits = 0;

    pool_stats(p->pool, &s, sizeof s);
    for (int i = 0; i < 32; i++)
        waits += s.wait_histogram[i];
    note(p, 0, "hosts %u, targets %u, links %u, leased %u, idle %u, connecting %u, waiting %u, names %u", s.hosts,
        s.targets, s.links, s.leased, s.idle, s.connecting, s.waiting, s.names);
    note(p, 0, "at once %llu, after waiting %llu, failed fast %llu, timed out %llu, full %llu, cancelled %llu",
        (unsigned long long)s.acquired_ready, (unsigned long long)s.acquired_waited, (unsigned long long)s.failed_fast,
        (unsigned long long)s.timed_out, (unsigned long long)s.full, (unsigned long long)s.cancelled);
    note(p, 0, "opened %llu, reused %llu, peeked %llu, ignored %llu, stale %llu, waits %llu",
        (unsigned long long)s.opened, (unsigned long long)s.reused, (unsigned long long)s.peeked,
        (unsigned long long)s.ignored_events, (unsigned long long)s.stale_events, waits);
    note_ends(p, &s);
}

void look(struct play *p)
{
    for (struct pool_host *h = NULL; (h = pool_next_host(p->pool, h));) {
        struct pool_host_stats s;
        pool_host_stats(h, &s, sizeof s);
        note(p, s.retry_in, "peer %u is %s: leased %u, idle %u, waiting %u, failures %u, %s", place_of(p, h),
            link_state_name(s.state), s.leased, s.idle, s.waiting, s.failures, link_reason_text(s.last_reason));
    }
}

void free_pool(struct play *p)
{
    struct pool *pool = p->pool;

    if (!pool)
        return;
    note_stats(p);
    p->pool = NULL;
    pool_free(pool);
    note(p, 0, "the pool is freed");
}

/* ---- a link on its own ---- */

static void told(struct play *p, enum event event)
{
    if (p->then)
        p->then(p, event);
}

static void on_connecting(struct link *link, unsigned attempt)
{
    note(link_data(link), 0, "connecting, attempt %u", attempt);
}

static void on_link_readable(struct channel *channel)
{
    struct play *p = link_data(channel_link(channel));
    char bytes[256];
    ssize_t got = channel_read(channel, bytes, sizeof bytes);

    note(p, 0, "link hears %ld: %.*s", (long)got, got > 0 ? (int)got : 0, bytes);
    if (got <= 0 && got != LINKPOOL_EAGAIN)
        channel_want(channel, 0);
}

static const struct channel_events link_events = {.readable = on_link_readable};

static void on_connected(struct link *link, struct channel *channel)
{
    struct play *p = link_data(link);

    p->channel = channel;
    channel_watch(channel, &link_events, LINKPOOL_READ);
    note(p, 0, "connected");
    told(p, LINK_IS_UP);
}

static void on_disconnected(struct link *link, enum link_reason reason)
{
    struct play *p = link_data(link);

    p->channel = NULL;
    note(p, 0, "disconnected: %s", link_reason_text(reason));
    told(p, LINK_IS_DOWN);
}

static void on_reconnect(struct link *link, unsigned attempt, double wait)
{
    note(link_data(link), wait, "waits after failure %u", attempt);
    told(link_data(link), LINK_WAITS);
}

static void on_stopped(struct link *link, enum link_reason reason)
{
    note(link_data(link), 0, "stopped: %s", link_reason_text(reason));
    told(link_data(link), LINK_STOPS);
}

void start_link(struct play *p)
{
    struct link_options o;

    link_options_init(&o);
    o.env = &p->env;
    o.backoff = &p->backoff;
    o.protocol = p->host.protocol;
    o.connect_timeout = p->host.connect_timeout;
    o.observer = &p->observer;
    o.connecting = on_connecting;
    o.connected = on_connected;
    o.disconnected = on_disconnected;
    o.reconnect = on_reconnect;
    o.stopped = on_stopped;
    o.data = p;
    p->link_driver = p->stage->driver(p->stage);
    assert(p->link_driver);
    p->link = link_new(p->link_driver, p->address[0], &o);
    must(p, p->link, "a link is made");
    note(p, 0, "start: %d", link_start(p->link));
}

void link_says(struct play *p, const char *text)
{
    ssize_t sent = channel_writev(p->channel, &(struct iovec){(void *)text, strlen(text)}, 1);

    note(p, 0, "link says %s: %ld", text, (long)sent);
}

/* ---- a play ---- */

static void on_turn(void *data)
{
    struct play *p = data;

    p->log.turns++;
    if (!p->pool)
        return;
#ifdef LINKPOOL_CHECK
    p->pool->checks = 0; /* all of it */
#endif
    pool__check(p->pool);
}

static void address(struct play *p, unsigned i)
{
    if (p->is_unix) /* of this process, since the kernel has one name for all */
        snprintf(p->address[i], sizeof p->address[i], "unix:@seam-%ld-%u", (long)getpid(), i);
    else
        snprintf(p->address[i], sizeof p->address[i], "10.0.0.%u:80", i + 1);
}

static void set_up(struct play *p, const struct scenario *scenario)
{
    for (unsigned i = 0; i < STAGE_PEERS; i++)
        address(p, i);
    make_env(p);
    pool_options_init(&p->options);
    pool_host_options_init(&p->host);
    p->backoff = backoff_default;
    p->observer = (struct pool_observer){.size = sizeof p->observer,
        .transition = on_transition,
        .target = on_target,
        .waited = on_waited,
        .data = p};
    p->host.backoff = &p->backoff;
    p->options.host = &p->host;
    p->options.env = &p->env;
    p->options.observer = &p->observer;
    if (scenario->options)
        scenario->options(p);
    p->stage->data = p;
    p->stage->turned = on_turn;
    if (scenario->alone)
        return;
    p->driver = p->stage->driver(p->stage);
    assert(p->driver);
    p->pool = pool_new_on(p->driver, &p->options);
    must(p, p->pool, "the pool is made");
}

static void close_all(struct play *p)
{
    free_pool(p);
    link_free(p->link);
    driver_free(p->link_driver);
    for (int i = 0; i < PLAY_USERS; i++)
        must(p, !p->users[i].waits, "each lease has an outcome");
    must(p, p->stage->rests(p->stage), "nothing is watched and no timer runs");
    must(p, p->stage->descriptors(p->stage) == 0, "no descriptor is left");
    must(p, p->blocks == 0 && p->bytes == 0, "no memory is left");
    must(p, !p->stage->misuse(p->stage), "the system was used rightly");
    run(p, 1);
    for (unsigned i = 0; i < STAGE_PEERS; i++)
        if (p->has_peer[i])
            note(p, 0, "peer %u: accepted %u, open %u, %zu bytes", i, p->stage->accepted(p->stage, i),
                p->stage->open(p->stage, i), p->stage->bytes(p->stage, i));
}

void play_scenario(
    const struct scenario *scenario, struct stage *stage, bool is_unix, bool verbose, struct log *log, unsigned *broken)
{
    struct play *p = calloc(1, sizeof *p);

    assert(p);
    p->stage = stage;
    p->is_unix = is_unix;
    p->log.verbose = verbose;
    set_up(p, scenario);
    scenario->play(p);
    close_all(p);
    *log = p->log;
    *broken = p->broken;
    free(p);
}
