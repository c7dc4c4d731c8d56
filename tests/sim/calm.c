/* calm.c - the faults stop: all that is wanted comes up, and whoever waits is served, within a time that is computed.
 */
#include <stdio.h>

#include "tests/sim/sim.h"

/* Links that live for milliseconds would be opened ten thousand times before the longest time is over, and asked as
 * often. */
static void let_live(struct sim *s, struct pool_host *host)
{
    struct pool_host_options options = *pool__options(host);
    struct heartbeat_policy heart = host->owner.terms->heartbeat;

    if (heart.interval > 0 && heart.interval < 10) {
        heart = heartbeat_default;
        s->keys[sim__key_of(s, host)].terms_at = testing_now(s->t);
    }
    options.heartbeat = &heart;
    if (options.max_age > 0 && options.max_age < 10)
        options.max_age = 10;
    if (options.idle_timeout > 0 && options.idle_timeout < 10)
        options.idle_timeout = 10;
    HOLDS(s, !pool_host_set_options(host, &options));
}

static void bring_all_back(struct sim *s)
{
    static struct pool_endpoint endpoints[MAX_KEYS];
    bool members[MAX_KEYS] = {false};
    size_t n = 0;

    sim__forgive(s);
    s->options.max_hosts = 1000;
    pool_set_options(s->pool, &s->options);
    for (unsigned k = 0; k < s->p.n_keys; k++) {
        members[k] = true;
        endpoints[n++] = sim__endpoint(s, (int)k);
    }
    for (unsigned i = 0; i < MAX_TARGETS; i++)
        if (s->targets[i].target && !pool_target_update(s->targets[i].target, endpoints, n))
            sim__listed(s, &s->targets[i], members, n);
    for (struct pool_host *host = NULL; (host = pool_next_host(s->pool, host));) {
        let_live(s, host);
        pool_host_recycle(host, 0);
        pool_host_start(host);
    }
}

static void users_let_go(struct sim *s)
{
    for (unsigned i = 0; i < s->p.n_users; i++)
        if (s->users[i].state == USER_HOLDING)
            sim__release(s, &s->users[i], POOL_DISCARD);
}

/* Its hosts cannot come back, since the pool, or the target, drains. */
static bool is_lost(const struct sim *s, const struct user *user)
{
    const struct pool_target *target = user->target ? user->target->target : NULL;

    return s->draining || (user->target && (!target || pool_target_state(target) == LINK_CLOSED));
}

static void users_give_up(struct sim *s)
{
    for (unsigned i = 0; i < s->p.n_users; i++)
        if (s->users[i].state == USER_WAITING && is_lost(s, &s->users[i]))
            sim__cancel(s, &s->users[i]);
}

static void say_who_waits(struct sim *s)
{
    char text[1000];

    for (unsigned i = 0; i < s->p.n_users; i++)
        if (s->users[i].state == USER_WAITING) {
            pool_explain(&s->users[i].lease, text, sizeof text);
            fprintf(stderr, "sim: still waits: %s\n", text);
            break;
        }
}

static bool is_wanted(const struct pool_host *host)
{
    return pool__kept_up(host) && pool__options(host)->min_links;
}

/* What is kept up has been READY since: where the pool has room for it. */
static void all_wanted_were_ready(struct sim *s)
{
    struct pool_stats stats;

    pool_stats(s->pool, &stats, sizeof stats);
    if (stats.links >= s->options.max_links)
        return;
    for (const struct pool_host *host = NULL; (host = pool_next_host(s->pool, host));)
        if (is_wanted(host))
            HOLDS(s, s->keys[sim__key_of(s, host)].was_ready || pool_host_state(host) == LINK_READY);
}

/* ---- without a push ---- */

/* Where the policy has given up nothing is opened, be there a READY link, which would not do for all. */
static bool may_serve(const struct pool_host *host)
{
    return host && !host->n[LINK_OFFLINE] && pool_host_state(host) != LINK_DRAINING;
}

/* Is there a host that should have served this one by now? */
static bool is_forgotten(const struct sim *s, const struct user *user)
{
    const struct pool_target *target = user->target ? user->target->target : NULL;

    if (user->state != USER_WAITING || is_lost(s, user))
        return false;
    if (!user->target)
        return may_serve(s->keys[user->key].pin);
    if (user->target->picker != &pool_round_robin)
        return may_serve(sim__host_by_hash(user->target, &user->lease));
    for (size_t i = 0; i < target->pick.n; i++)
        if (may_serve(target->hosts[i]))
            return true;
    return false;
}

/* First nothing is done to hosts: what is started or recycled is looked at, and that would wake whoever was forgotten.
 * An attempt that hangs is given up within the longest time of any option, and so on, as below. */
static void settle_alone(struct sim *s)
{
    double until = testing_now(s->t) + s->longest + sim__longest_backoff(s) + 5;
    unsigned turns = 0;
    bool more = true;

    while (s->pool && more && testing_now(s->t) < until && turns++ < MOST_TURNS / 4)
        more = sim__turn(s);
    if (!s->pool || (more && testing_now(s->t) < until))
        return;
    for (unsigned i = 0; i < s->p.n_users; i++)
        if (is_forgotten(s, &s->users[i])) {
            say_who_waits(s);
            HOLDS(s, !is_forgotten(s, &s->users[i]));
        }
}

/* An attempt that hangs is given up within the longest time of any option, and so is a cleaning or a drain; then the
 * longest backoff, or what follows a "no more"; then one handshake, which takes no time now, for each who waits. */
void sim__settle(struct sim *s)
{
    double until;

    s->calm = true;
    sim__calm_world(s);
    users_let_go(s);
    crowds__calm(s);
    calls__calm(s);
    settle_alone(s);
    if (s->pool)
        bring_all_back(s);
    users_give_up(s);
    for (unsigned k = 0; k < s->p.n_keys; k++)
        s->keys[k].was_ready = false;
    until = testing_now(s->t) + 2 * s->longest + sim__longest_backoff(s) + 5;
    for (unsigned n = 0; testing_now(s->t) < until && (s->unsettled = n >= 2 * MOST_TURNS, !s->unsettled); n++)
        if (!sim__turn(s))
            break;
    if (s->unsettled)
        return;
    if (s->n_waiting)
        say_who_waits(s);
    HOLDS(s, !s->n_waiting && !s->n_holding && !s->n_out);
    all_wanted_were_ready(s);
    if (s->draining)
        HOLDS(s, s->drains_told == 1 && !testing_open_descriptors(s->t));
}
