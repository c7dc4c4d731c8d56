/* owners.c - what a program does with hosts, targets and the pool itself, from anywhere it may. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim.h"
#include "tests/sim/wire.h"

struct pool_endpoint sim__endpoint(struct sim *s, int k)
{
    const struct key *key = &s->keys[k];

    return (struct pool_endpoint){.size = sizeof(struct pool_endpoint),
        .address = s->peers[key->address].address,
        .tag = *key->tag ? key->tag : NULL,
        .protocol = sim__protocol(s, key->kind)};
}

static struct pool_host_stats stats_of(const struct pool_host *host)
{
    struct pool_host_stats stats;

    pool_host_stats(host, &stats, sizeof stats);
    return stats;
}

static double drain_time(struct sim *s)
{
    unsigned what = below(s, 3);

    return what == 0 ? 0 : what == 1 ? sim__spread(s, 0.01, 10) : INFINITY;
}

/* ---- pins ---- */

struct pool_host *sim__pin(struct sim *s, int k)
{
    struct key *key = &s->keys[k];
    struct pool_endpoint endpoint = sim__endpoint(s, k);

    if (!key->pin) {
        key->pin = pool_host_for(s->pool, &endpoint, key->variant ? &s->host[key->variant] : NULL);
        sim__note(s, "pin", (uint64_t)k, key->pin != NULL);
    }
    if (!key->pin) /* whoever named it first, named other options */
        key->pin = pool_host_for(s->pool, &endpoint, NULL);
    if (key->pin)
        HOLDS(s, sim__key_of(s, key->pin) == k);
    return key->pin;
}

static bool is_avoided(const struct sim *s, const struct pool_host *host)
{
    for (unsigned i = 0; i < s->p.n_users; i++)
        if (s->users[i].state == USER_WAITING && s->users[i].lease.avoid == host)
            return true;
    return false;
}

static void drop(struct sim *s, struct key *key)
{
    if (!key->pin || is_avoided(s, key->pin))
        return;
    if (key->line.n)
        s->rare.n[RARE_DROPPED_WITH_WAITERS]++;
    struct pool_host *pin = key->pin;
    key->pin = NULL;
    sim__note(s, "drop", (uint64_t)(key - s->keys), 0);
    pool_host_drop(pin);
}

/* ---- hosts ---- */

static void drain_host(struct sim *s, struct key *key)
{
    struct pool_host_stats stats = stats_of(key->pin);
    double time = drain_time(s);

    if (stats.links[LINK_CONNECTING])
        s->rare.n[RARE_DRAIN_WHILE_CONNECTS]++;
    key->terms_at = testing_now(s->t); /* a drain without an end has its links asked again */
    pool_host_drain(key->pin, time);
}

static void start_host(struct sim *s, struct key *key)
{
    if (stats_of(key->pin).state == LINK_OFFLINE)
        s->rare.n[RARE_OFFLINE_LEFT]++;
    key->forgiven = true;
    pool_host_start(key->pin);
}

static void change_host(struct sim *s, struct key *key)
{
    struct pool_host_options was = s->host[0];
    struct heartbeat_policy heart = s->heart[0];

    sim__host_options(s, 0); /* backoff stays the host's own */
    if (stats_of(key->pin).links[LINK_READY] > s->host[0].max_links)
        s->rare.n[RARE_BOUNDS_BELOW_USE]++;
    pool_host_set_options(key->pin, &s->host[0]);
    if (s->host[0].connect_timeout > key->connect_most)
        key->connect_most = s->host[0].connect_timeout;
    s->host[0] = was;
    s->heart[0] = heart;
    key->terms_at = testing_now(s->t);
}

static void tend_host(struct sim *s)
{
    int k = (int)below(s, s->p.n_keys);
    struct key *key = &s->keys[k];
    unsigned what = below(s, 12);

    if (!key->pin || what < 3) {
        if (key->pin && what < 2)
            drop(s, key);
        else
            sim__pin(s, k);
        return;
    }
    key->changed_turn = s->turns;
    sim__note(s, "tend", (uint64_t)k, what);
    switch (what) {
    case 3:
        drain_host(s, key);
        break;
    case 4:
    case 5:
        pool_host_recycle(key->pin, once_in(s, 2) ? 0 : sim__spread(s, 0.5, 100));
        break;
    case 6:
        change_host(s, key);
        break;
    default:
        start_host(s, key);
        break;
    }
}

/* ---- targets ---- */

static int hashed_pick(const struct pool_pick *pick, const struct pool_lease *lease, uint64_t bits)
{
    size_t first = (size_t)((lease ? lease->hash : bits) % pick->n);

    for (size_t i = 0; i < pick->n; i++)
        if (pick->can(pick->hosts[(first + i) % pick->n]) != POOL_HOST_DOWN)
            return (int)((first + i) % pick->n);
    return POOL_PICK_DOWN;
}

static bool hashed_takes(const struct pool_pick *pick, const struct pool_lease *lease, size_t i)
{
    return hashed_pick(pick, lease, 0) == (int)i;
}

static const struct pool_picker hashed = {
    .size = sizeof hashed, .name = "hashed", .by_lease = true, .pick = hashed_pick, .takes = hashed_takes};
/* The same, but it takes whatever host falls free. */
static const struct pool_picker easy = {.size = sizeof easy, .name = "easy", .pick = hashed_pick};

struct pool_host *sim__host_by_hash(const struct target *target, const struct pool_lease *lease)
{
    int i = -1;

    if (target->target && target->picker->by_lease && target->target->pick.n)
        i = hashed_pick(&target->target->pick, lease, 0);
    return i >= 0 ? target->target->hosts[i] : NULL;
}

void sim__line_new(struct sim *s, struct target *target)
{
    struct line *line = calloc(1, sizeof *line);

    if (!line)
        abort();
    line->next = s->lines;
    s->lines = line;
    target->line = line;
}

/* A list of members: into `members` which keys, into `endpoints` their endpoints. */
static size_t draw_list(struct sim *s, bool *members, struct pool_endpoint *endpoints)
{
    unsigned most = once_in(s, 3) ? 1 : sim__size(s, 1, s->p.n_keys), from = below(s, s->p.n_keys);
    bool framed_alone = s->p.n_callers && once_in(s, 2);
    size_t n = 0;

    memset(members, 0, MAX_KEYS * sizeof *members);
    if (once_in(s, 12))
        most = 0;
    for (unsigned i = 0; i < most && i < s->p.n_keys; i++) {
        unsigned k = (from + i) % s->p.n_keys;
        if (framed_alone && s->keys[k].kind != KIND_FRAMED)
            continue;
        members[k] = true;
        endpoints[n++] = sim__endpoint(s, (int)k);
    }
    return n;
}

void sim__listed(struct sim *s, struct target *target, const bool *members, size_t n)
{
    memcpy(target->member, members, sizeof target->member);
    target->n = (unsigned)n;
    target->known = true;
    target->changed_turn = s->turns;
    for (unsigned k = 0; k < s->p.n_keys; k++)
        if (members[k])
            s->keys[k].changed_turn = s->turns;
}

static void add_target(struct sim *s, unsigned i)
{
    static const struct pool_picker *const pickers[] = {&pool_round_robin, &pool_pick_first, &hashed};
    struct pool_endpoint endpoints[MAX_KEYS];
    struct pool_target_options options;
    bool members[MAX_KEYS];
    char name[] = {(char)('a' + i), '\0'};
    struct target *target = &s->targets[i];

    pool_target_options_init(&options);
    options.picker = pickers[below(s, 3)];
    options.n_endpoints = draw_list(s, members, endpoints);
    options.endpoints = options.n_endpoints || once_in(s, 2) ? endpoints : NULL;
    options.max_line = once_in(s, 3) ? sim__size(s, 1, 64) : 0;
    if (options.picker == &hashed && options.n_endpoints % 2)
        options.picker = &easy;
    memset(target, 0, sizeof *target);
    target->target = pool_target_add(s->pool, name, &options);
    sim__note(s, "target", i, target->target != NULL);
    target->picker = options.picker;
    target->changed_turn = s->turns;
    if (!target->target)
        return;
    sim__line_new(s, target);
    sim__listed(s, target, members, options.n_endpoints);
    target->known = options.endpoints != NULL;
}

static void update_target(struct sim *s, struct target *target)
{
    struct pool_endpoint endpoints[MAX_KEYS];
    bool members[MAX_KEYS];
    size_t n = draw_list(s, members, endpoints);
    struct pool_host *only = target->n == 1 ? pool_target_host(target->target, 0) : NULL;

    if (only && stats_of(only).links[LINK_CONNECTING] + stats_of(only).links[LINK_HANDSHAKING])
        s->rare.n[RARE_UPDATE_WHILE_ONLY_CONNECTS]++;
    if (s->depth)
        s->rare.n[RARE_UPDATE_IN_CALLBACK]++;
    if (pool_target_update(target->target, endpoints, n))
        return;
    sim__listed(s, target, members, n);
}

static void on_target_drained(struct pool_target *target, void *data)
{
    struct sim *s = data;

    (void)target;
    s->in_drained++;
    sim__react(s);
    s->in_drained--;
}

static void remove_target(struct sim *s, struct target *target)
{
    struct pool_target *gone = target->target;

    if (target->line->n)
        s->rare.n[RARE_REMOVED_WITH_WAITERS]++;
    target->target = NULL;
    target->changed_turn = s->turns;
    pool_target_remove(gone);
}

static void tend_target(struct sim *s)
{
    unsigned i = below(s, s->p.n_targets), what = below(s, 12);
    struct target *target = &s->targets[i];

    if (!target->target) {
        add_target(s, i);
        return;
    }
    sim__note(s, "tend target", i, what);
    switch (what) {
    case 0:
        remove_target(s, target);
        break;
    case 1:
        pool_target_drain(target->target, drain_time(s), on_target_drained, s);
        break;
    case 2:
        pool_target_recycle(target->target, once_in(s, 2) ? 0 : 10);
        break;
    case 3:
    case 4:
        sim__forgive(s);
        pool_target_start(target->target);
        break;
    default:
        update_target(s, target);
        break;
    }
}

/* ---- the pool ---- */

void sim__free_pool(struct sim *s)
{
    struct pool *pool = s->pool;

    if (!pool)
        return;
    s->rare.n[RARE_FREE_IN_CLOSED_IN_DRAIN] += s->in_closed && s->draining;
    s->rare.n[RARE_FREE_IN_DONE] += s->in_done && !s->in_closed;
    s->rare.n[RARE_FREE_IN_BYTES] += s->in_bytes && !s->in_done && !s->in_closed;
    s->rare.n[RARE_FREE_IN_CROWD] += s->in_crowd > 0;
    s->rare.n[RARE_FREE_IN_DRAINED] += s->in_drained && !s->in_done && !s->in_closed;
    sim__note(s, "free", s->depth, 0);
    s->pool = NULL;
    for (unsigned k = 0; k < s->p.n_keys; k++)
        s->keys[k].pin = NULL;
    for (unsigned i = 0; i < MAX_TARGETS; i++)
        s->targets[i].target = NULL;
    pool_free(pool);
    for (unsigned i = 0; i < s->p.n_users && !s->depth; i++)
        HOLDS(s, s->users[i].state == USER_FREE);
    if (!s->depth)
        calls__free(s);
}

static void on_pool_drained(struct pool *pool, void *data)
{
    struct sim *s = data;

    HOLDS(s, pool == s->pool && !s->drains_told++);
    HOLDS(s, !s->n_waiting && !s->n_holding && !s->n_out);
    s->in_drained++;
    sim__react(s);
    s->in_drained--;
}

static void change_pool(struct sim *s)
{
    sim__pool_options(s);
    if (s->options.max_links < testing_open_descriptors(s->t))
        s->rare.n[RARE_BOUNDS_BELOW_USE]++;
    pool_set_options(s->pool, &s->options);
}

static void reset_backoff(struct sim *s)
{
    for (struct pool_host *host = NULL; (host = pool_next_host(s->pool, host));) {
        struct pool_host_stats stats = stats_of(host);
        if (stats.state == LINK_BACKOFF && stats.links[LINK_CONNECTING] + stats.links[LINK_HANDSHAKING])
            s->rare.n[RARE_FORGIVEN_PROBE]++;
    }
    sim__forgive(s);
    pool_reset_backoff(s->pool);
}

/* By what the program has heard, or by a sleep of the machine, which is noticed with the next turn. */
static void change_network(struct sim *s)
{
    sim__forgive(s);
    if (once_in(s, 2))
        pool_network_changed(s->pool);
    else
        testing_suspend(s->t, sim__spread(s, 0.5, 10000));
}

static void explain(struct sim *s)
{
    char text[300];
    const struct user *user = &s->users[below(s, s->p.n_users)];
    const struct target *target = &s->targets[below(s, MAX_TARGETS)];

    pool_explain(&user->lease, text, sizeof text);
    if (target->target)
        pool_target_explain(target->target, text, sizeof text);
}

static void tend_pool(struct sim *s)
{
    unsigned what = below(s, 40);

    sim__note(s, "tend pool", what, 0);
    if (what == 0 && once_in(s, 4))
        sim__free_pool(s);
    else if (what == 1 && once_in(s, s->p.frees ? 1 : 4))
        s->draining = !pool_drain(s->pool, drain_time(s), on_pool_drained, s) || s->draining;
    else if (what < 5)
        change_pool(s);
    else if (what < 9)
        reset_backoff(s);
    else if (what < 13)
        change_network(s);
    else
        explain(s);
}

void sim__own(struct sim *s)
{
    unsigned what = below(s, 10);

    if (what < 5)
        tend_host(s);
    else if (what < 8 && s->p.n_targets)
        tend_target(s);
    else
        tend_pool(s);
}
