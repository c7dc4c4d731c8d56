/* pools.c - a pool as a scenario sees it: its hosts, targets, drains and figures, and its observer. */
#include <assert.h>
#include <string.h>

#include "tests/sim/seam/play.h"

/* ---- the observer ---- */

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

void play__observer(struct play *p)
{
    p->observer = (struct pool_observer){
        .size = sizeof p->observer, .transition = on_transition, .target = on_target, .waited = on_waited, .data = p};
}

/* ---- hosts, targets, the pool ---- */

struct pool_host *host(struct play *p, unsigned i)
{
    struct pool_host *made = pool_host(p->pool, p->address[i]);

    must(p, made, "a host is made");
    return made;
}

unsigned place_of(struct play *p, const struct pool_host *of)
{
    unsigned i = 0;

    while (of && i < STAGE_PEERS && strcmp(p->address[i], pool_host_address(of)) != 0)
        i++;
    return of ? i : 99;
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
            note(p, 0, "%llu ended: %s", (unsigned long long)s->ends[reason],
                link_reason_text((enum link_reason)reason));
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

void expect_idle(struct play *p, unsigned i, unsigned n, enum link_reason last)
{
    struct pool_host *h = NULL;
    struct pool_host_stats s = {.idle = 0};

    while ((h = pool_next_host(p->pool, h)) && place_of(p, h) != i)
        ;
    if (h)
        pool_host_stats(h, &s, sizeof s);
    must(p, s.idle == n && s.last_reason == last, "so many links are idle");
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
