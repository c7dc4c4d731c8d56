/* random.c - a pool in a hostile world, played from a seed: all that users, peers and the system may do, in any order.
 *
 * After each step the whole of the library's own checker runs. Each lease is followed: told once, within its deadline,
 * and one end of what it held. When the faults stop, all that waits is served or failed; then nothing is left.
 *
 * RANDOM_FROM and RANDOM_COUNT in the environment play other seeds than those of `make test`. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fakes/session.h"
#include "tests/unit/random.h"

const char *const random__addresses[PEERS] = {
    "10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80", "[::1]:80", "unix:/run/x.sock", "unix:@abstract"};

static void look_over(struct game *g)
{
    if (!g->pool)
        return;
    g->pool->checks = 0; /* all of it, each time */
    pool__check(g->pool);
}

/* ---- what programs do with hosts and targets ---- */

static const struct protocol *protocol_for(struct game *g, unsigned i)
{
    return i == 2 ? &g->protocol : i == 3 ? &fake_session : NULL;
}

static struct pool_endpoint endpoint_of(struct game *g, unsigned i)
{
    return (struct pool_endpoint){
        .size = sizeof(struct pool_endpoint), .address = random__addresses[i], .protocol = protocol_for(g, i)};
}

static bool is_avoided(const struct game *g, const struct pool_host *host)
{
    for (unsigned i = 0; i < USERS; i++)
        if (g->users[i].state == USER_WAITING && g->users[i].lease.avoid == host)
            return true;
    return false;
}

static void pin(struct game *g)
{
    unsigned i = below(g, PINS);

    if (!g->pins[i]) {
        struct pool_endpoint endpoint = endpoint_of(g, below(g, PEERS));
        g->pins[i] = pool_host_for(g->pool, &endpoint, NULL);
    } else if (!is_avoided(g, g->pins[i])) {
        pool_host_drop(g->pins[i]);
        g->pins[i] = NULL;
    }
}

static void draw_host_options(struct game *g)
{
    struct pool_host_options *host = &g->host;

    pool_host_options_init(host);
    host->max_links = ONE_OF(g, 1, 1, 2, 3, 64);
    host->min_links = once_in(g, 3) ? below(g, host->max_links + 1) % 4 : 0;
    host->max_connecting = ONE_OF(g, 1, 2, 128);
    host->first_connecting = ONE_OF(g, 1, host->max_connecting);
    host->max_uses = ONE_OF(g, 0, 0, 1, 3);
    host->max_channels = ONE_OF(g, 0, 0, 1, 3);
    host->spread_links = once_in(g, 3);
    host->idle_timeout = TIME_OF(g, 0, 0.2, 2, 55);
    host->max_age = TIME_OF(g, 0, 0, 1);
    host->connect_timeout = TIME_OF(g, 0.5, 3);
    host->reset_timeout = 0.5;
    host->drain_timeout = TIME_OF(g, 0.3, 3);
    host->backoff = &g->backoff;
}

static void tend_host(struct game *g)
{
    struct pool_host *host = g->pins[below(g, PINS)];

    if (!host)
        return;
    switch (below(g, 6)) {
    case 0:
        pool_host_drain(host, TIME_OF(g, 0, 0.5, INFINITY));
        break;
    case 1:
        pool_host_recycle(host, TIME_OF(g, 0, 1, 20));
        break;
    case 2:
        draw_host_options(g);
        pool_host_set_options(host, &g->host);
        break;
    default:
        pool_host_start(host);
        break;
    }
}

static size_t list(struct game *g, struct pool_endpoint *endpoints)
{
    size_t n = 0;

    for (unsigned i = 0; i < PEERS; i++)
        if (once_in(g, 2))
            endpoints[n++] = endpoint_of(g, i);
    return n;
}

static int hashed_pick(const struct pool_pick *pick, const struct pool_lease *lease, uint64_t bits)
{
    size_t first = (size_t)((lease ? lease->hash : bits) % pick->n);

    for (size_t k = 0; k < pick->n; k++)
        if (pick->can(pick->hosts[(first + k) % pick->n]) != POOL_HOST_DOWN)
            return (int)((first + k) % pick->n);
    return POOL_PICK_DOWN;
}

static bool hashed_takes(const struct pool_pick *pick, const struct pool_lease *lease, size_t i)
{
    return hashed_pick(pick, lease, 0) == (int)i;
}

static const struct pool_picker hashed = {
    .size = sizeof hashed, .name = "hashed", .pick = hashed_pick, .takes = hashed_takes};

static void add_target(struct game *g, unsigned i)
{
    static const struct pool_picker *const pickers[] = {&pool_round_robin, &pool_pick_first, &hashed};
    struct pool_endpoint endpoints[PEERS];
    struct pool_target_options options;
    char name[] = {(char)('a' + i), '\0'};

    pool_target_options_init(&options);
    options.picker = pickers[below(g, 3)];
    options.n_endpoints = list(g, endpoints);
    options.endpoints = options.n_endpoints || once_in(g, 2) ? endpoints : NULL;
    options.max_line = ONE_OF(g, 0, 0, 2);
    g->targets[i] = pool_target_add(g->pool, name, &options);
}

static void on_target_drained(struct pool_target *target, void *data)
{
    (void)target;
    random__react(data);
}

static void tend_target(struct game *g)
{
    struct pool_endpoint endpoints[PEERS];
    unsigned i = below(g, TARGETS);
    struct pool_target *target = g->targets[i];

    if (!target) {
        add_target(g, i);
        return;
    }
    switch (below(g, 10)) {
    case 0:
        g->targets[i] = NULL;
        pool_target_remove(target);
        break;
    case 1:
        pool_target_drain(target, TIME_OF(g, 0, 0.5, INFINITY), on_target_drained, g);
        break;
    case 2:
        pool_target_recycle(target, TIME_OF(g, 0, 1));
        break;
    case 3:
    case 4:
        pool_target_start(target);
        break;
    default:
        pool_target_update(target, endpoints, list(g, endpoints));
        break;
    }
}

static void on_pool_drained(struct pool *pool, void *data)
{
    struct game *g = data;

    HOLDS(g, pool == g->pool && !g->drains_told++);
    for (unsigned i = 0; i < USERS; i++)
        HOLDS(g, g->users[i].state == USER_FREE);
    random__react(g);
}

static void draw_pool_options(struct game *g)
{
    struct pool_options *options = &g->options;

    options->max_links = ONE_OF(g, 1, 2, 3, 8, 64);
    options->max_hosts = ONE_OF(g, 3, 100);
    options->max_names = ONE_OF(g, 1, 100);
    options->max_waiting = ONE_OF(g, 5, 1000);
    options->max_connecting = ONE_OF(g, 1, 2, 3, 256);
    options->max_line = ONE_OF(g, 2, 1000);
    options->host_timeout = TIME_OF(g, 0.5, 300);
}

static void free_pool(struct game *g)
{
    struct pool *pool = g->pool;

    if (!pool)
        return;
    g->pool = NULL;
    memset(g->pins, 0, sizeof g->pins);
    memset(g->targets, 0, sizeof g->targets);
    pool_free(pool);
    for (unsigned i = 0; i < USERS && !g->depth; i++)
        HOLDS(g, g->users[i].state == USER_FREE);
}

static void tend_pool(struct game *g)
{
    char text[300];

    switch (below(g, 40)) {
    case 0:
        free_pool(g);
        break;
    case 1:
        g->drains = !pool_drain(g->pool, TIME_OF(g, 0, 1, INFINITY), on_pool_drained, g) || g->drains;
        break;
    case 2:
    case 3:
        draw_pool_options(g);
        pool_set_options(g->pool, &g->options);
        break;
    case 4:
    case 5:
    case 6:
        pool_reset_backoff(g->pool);
        break;
    default:
        pool_explain(&g->users[below(g, USERS)].lease, text, sizeof text);
        if (g->targets[0])
            pool_target_explain(g->targets[0], text, sizeof text);
        break;
    }
}

/* ---- what goes wrong outside ---- */

static void trouble_peer(struct game *g)
{
    struct testing_peer *peer = g->peers[below(g, PEERS)];
    enum link_reason how = (enum link_reason)ONE_OF(g, LINK_CLOSED_BY_PEER, LINK_RESET, LINK_TIMED_OUT);

    switch (below(g, 9)) {
    case 0:
        testing_peer_cut(peer, how);
        break;
    case 1:
        testing_peer_cut_after(peer, ONE_OF(g, 0, 1, 20, 1000), how);
        break;
    case 2:
        testing_peer_delay(peer, TIME_OF(g, 0, 0.1, 1), TIME_OF(g, 0, 0.1, 1));
        break;
    case 3:
        testing_peer_say(peer, "unasked", 7);
        break;
    case 4:
        testing_peer_greet(peer, "hello", below(g, 6));
        break;
    case 5:
        testing_peer_drip(peer, below(g, 3), 0.01);
        break;
    default:
        testing_peer_behave(peer, (enum testing_behaviour)(once_in(g, 2) ? TESTING_ACCEPT : below(g, 8)));
        break;
    }
}

static void trouble_system(struct game *g)
{
    static const int errors[] = {ENOMEM, ENOBUFS, EMFILE, ENFILE, EINTR, EAGAIN, ECONNRESET, EPIPE, ETIMEDOUT, EACCES};
    int error = errors[below(g, sizeof errors / sizeof *errors)];

    switch (below(g, 8)) {
    case 0:
    case 1:
        testing_fail_allocation(g->t, 1 + below(g, 6), once_in(g, 4));
        break;
    case 2:
        testing_fail_allocation(g->t, 0, false);
        break;
    case 3:
        testing_limit_descriptors(g->t, ONE_OF(g, 0, 1, 3, UINT_MAX, UINT_MAX));
        break;
    case 4:
        testing_fail_call(g->t, (enum testing_call)below(g, TESTING_CALLS), 0, 0, false);
        break;
    default:
        testing_fail_call(g->t, (enum testing_call)below(g, TESTING_CALLS), 1 + below(g, 3), error,
            error != EAGAIN && error != EINTR && once_in(g, 6)); /* "again" for ever is no system's answer */
        break;
    }
}

/* ---- the game ---- */

void random__act(struct game *g)
{
    struct user *user = &g->users[below(g, USERS)];
    unsigned what = below(g, 100);

    if (!g->pool || g->calm)
        return;
    if (what < 30)
        random__acquire(g, user);
    else if (what < 37)
        random__cancel(g, user);
    else if (what < 52)
        random__release(g, user, once_in(g, 4) ? POOL_DISCARD : POOL_REUSE);
    else if (what < 68)
        random__use_channel(g, user);
    else if (what < 74)
        pin(g);
    else if (what < 80)
        tend_host(g);
    else if (what < 85)
        tend_target(g);
    else if (what < 88)
        tend_pool(g);
    else if (what < 95)
        trouble_peer(g);
    else
        trouble_system(g);
}

static void on_time(void *data)
{
    struct game *g = data;

    random__act(g);
    look_over(g);
}

static void step(struct game *g)
{
    if (once_in(g, 4))
        testing_at(g->t, testing_now(g->t) + TIME_OF(g, 0, 0.01, 1), on_time, g);
    else
        random__act(g);
    look_over(g);
    if (once_in(g, 2))
        testing_turn(g->t);
    else
        HOLDS(g, testing_run_for(g->t, TIME_OF(g, 0, 0.001, 0.01, 0.3, 2)));
    look_over(g);
}

static void on_transition(void *data, const struct pool_host *host, const struct link_transition *transition)
{
    struct pool_host_stats stats;

    pool_host_stats(host, &stats, sizeof stats);
    HOLDS((struct game *)data, transition->from != transition->to && transition->from != LINK_CLOSED);
}

static void begin(struct game *g)
{
    draw(g);
    g->t = testing_new(g->seed);
    for (unsigned i = 0; i < USERS; i++)
        g->users[i].game = g;
    for (unsigned i = 0; i < PEERS; i++) {
        g->peers[i] =
            testing_peer_add(g->t, random__addresses[i], (enum testing_behaviour)(once_in(g, 3) ? below(g, 8) : 0));
        testing_peer_serve(g->peers[i], testing_echo, NULL);
    }
    g->ways = (struct fake_shared_ways){.speaks_at_open = once_in(g, 2),
        .speaks_at_close = once_in(g, 2),
        .speaks_at_leave = once_in(g, 2),
        .refuses = once_in(g, 20)};
    g->protocol = fake_shared;
    g->protocol.config = &g->ways;
    g->protocol.max_channels = ONE_OF(g, 0, 2, 10);
    testing_early_alarms(g->t, once_in(g, 2));
    testing_shuffle(g->t, once_in(g, 2));
    testing_short_writes(g->t, once_in(g, 2));
    g->backoff = backoff_default;
    g->backoff.max_attempts = ONE_OF(g, 0, 0, 0, 1, 3);
    g->backoff.reconnect_spread = TIME_OF(g, 0, 0.25);
    g->backoff.stable_after = TIME_OF(g, 0, 1, 10);
    pool_options_init(&g->options);
    draw_pool_options(g);
    draw_host_options(g);
    g->observer = (struct pool_observer){.size = sizeof g->observer, .transition = on_transition, .data = g};
    g->ways.refuses = g->ways.refuses && g->backoff.stable_after == 10; /* else it is dialled in a circle */
    g->options.wait_timeout = TIME_OF(g, 0.5, 5);
    g->options.host = &g->host;
    g->options.env = testing_env(g->t);
    g->options.observer = &g->observer;
    g->pool = pool_new_on(testing_driver(g->t), &g->options);
    HOLDS(g, g->pool);
}

static void calm_down(struct game *g)
{
    g->calm = true;
    testing_fail_allocation(g->t, 0, false);
    testing_limit_descriptors(g->t, UINT_MAX);
    for (int call = 0; call < TESTING_CALLS; call++)
        testing_fail_call(g->t, (enum testing_call)call, 0, 0, false);
    for (unsigned i = 0; i < PEERS; i++) {
        testing_peer_behave(g->peers[i], TESTING_ACCEPT);
        testing_peer_delay(g->peers[i], 0, 0);
        testing_peer_drip(g->peers[i], 0, 0);
        testing_peer_greet(g->peers[i], NULL, 0);
        testing_peer_cut_after(g->peers[i], SIZE_MAX, LINK_RESET);
    }
    g->ways.refuses = false; /* links that were refused have no room until told otherwise: others take their place */
    for (struct pool_host *host = NULL; (host = pool_next_host(g->pool, host));)
        pool_host_recycle(host, 0);
    for (unsigned i = 0; i < USERS; i++)
        if (g->users[i].state == USER_HOLDING)
            random__release(g, &g->users[i], POOL_REUSE);
}

static bool is_out(const struct pool_host *host)
{
    return host->draining || host->n[LINK_OFFLINE];
}

/* None of its hosts is in service, nor will be: the pool, or the target, drains. */
static bool has_no_host(const struct user *user)
{
    const struct pool_line *line = pool__claim(&user->lease)->line;

    if (line->host)
        return line->host->n[LINK_OFFLINE];
    for (size_t i = 0; i < line->target->pick.n; i++)
        if (!is_out(line->target->hosts[i]))
            return false;
    return true;
}

static void bring_all_back(struct game *g)
{
    struct pool_endpoint endpoints[PEERS];
    size_t n = 0;

    for (unsigned i = 0; i < PEERS; i++)
        endpoints[n++] = endpoint_of(g, i);
    for (unsigned i = 0; i < TARGETS; i++) {
        if (!g->targets[i] || pool_target_update(g->targets[i], endpoints, n) != LINKPOOL_EFULL)
            continue;
        g->options.max_hosts = 100;
        pool_set_options(g->pool, &g->options);
        HOLDS(g, pool_target_update(g->targets[i], endpoints, n) == 0);
    }
    for (struct pool_host *host = NULL; (host = pool_next_host(g->pool, host));)
        pool_host_start(host);
    for (unsigned i = 0; i < USERS; i++) /* nobody else ends their waiting */
        if (g->users[i].state == USER_WAITING && has_no_host(&g->users[i]))
            random__cancel(g, &g->users[i]);
}

static void nobody_waits(struct game *g)
{
    char text[1000];

    for (unsigned i = 0; i < USERS; i++) {
        if (g->users[i].state == USER_FREE)
            continue;
        pool_explain(&g->users[i].lease, text, sizeof text);
        holds(g, false, text, __LINE__);
    }
}

/* Whoever waits has its channel when a connection that hung is given up (3 s), its host's backoff is over (2 s), and
 * those before it were served: each of the others opens a link of its own at worst. */
static void settle(struct game *g)
{
    struct pool_stats stats;

    calm_down(g);
    look_over(g);
    bring_all_back(g);
    look_over(g);
    HOLDS(g, testing_run_for(g->t, 3 + 2 + 1 + USERS * 0.25));
    look_over(g);
    nobody_waits(g);
    pool_stats(g->pool, &stats, sizeof stats);
    HOLDS(g, !stats.waiting && !stats.leased);
    if (g->drains)
        HOLDS(g, !stats.links && g->drains_told == 1);
}

static void play(uint64_t seed, unsigned *told, unsigned *ready)
{
    static struct game game;
    struct game *g = &game;

    *g = (struct game){.seed = seed};
    begin(g);
    for (unsigned i = 0; i < STEPS && g->pool; i++)
        step(g);
    if (g->pool && !once_in(g, 4))
        settle(g);
    g->calm = true;
    free_pool(g);
    testing_run_for(g->t, 10);
    for (unsigned i = 0; i < USERS; i++)
        HOLDS(g, g->users[i].state == USER_FREE);
    cr_assert(eq(str, (char *)testing_last_misuse(g->t), ""), "seed %llu", (unsigned long long)seed);
    HOLDS(g, !testing_stuck(g->t) && !testing_open_descriptors(g->t) && !testing_blocks(g->t));
    testing_free(g->t);
    *told += g->n_done;
    *ready += g->n_ready;
}

static unsigned long number(const char *name, unsigned long otherwise)
{
    const char *text = getenv(name);

    return text ? strtoul(text, NULL, 10) : otherwise;
}

static uint64_t playing;

static void say_seed(int signal_number)
{
    fprintf(stderr, "random: seed %llu\n", (unsigned long long)playing);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

Test(random, whatever_happens_each_lease_has_one_outcome_and_nothing_is_left)
{
    unsigned long from = number("RANDOM_FROM", 1), count = number("RANDOM_COUNT", 300);
    unsigned told = 0, ready = 0;

    signal(SIGABRT, say_seed);
    for (playing = from; playing < from + count; playing++)
        play(playing, &told, &ready);
    cr_assert(lt(uint, count, told)); /* it was a game, not a silence */
    cr_assert(lt(uint, count / 4, ready));
}
