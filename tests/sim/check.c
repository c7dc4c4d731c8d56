/* check.c - what must hold after each event: who may be served, counts against recounts, bounds, timers, work. */
#include <math.h>
#include <utlist.h>

#include "tests/sim/sim.h"
#include "tests/sim/wire.h"

/* ---- first come, first served ---- */

static bool is_plain(const struct user *user)
{
    return !(user->lease.flags & POOL_FRESH) && !user->lease.avoid;
}

static bool still_waits(const struct user *user)
{
    return pool__claim(&user->lease)->state == CLAIM_WAITING;
}

/* It has won meanwhile, and its link died before it was told. */
static bool is_newly_back(const struct user *user)
{
    return pool__claim(&user->lease)->decided != user->decided;
}

/* While it seemed to have won others were served, who are told in this turn or the next. */
static bool may_be_passed(const struct sim *s, const struct user *user)
{
    return is_newly_back(user) || user->passed_until >= s->turns;
}

/* Nobody in this line, who would take any channel, was passed over by one who asked after `order`. */
static void nobody_was_passed(struct sim *s, const struct line *line, uint64_t order, bool may_be_back)
{
    const struct user *other;

    DL_FOREACH (line->first, other) {
        if (other->order >= order)
            return;
        HOLDS(s, !is_plain(other) || !still_waits(other) || (may_be_back && may_be_passed(s, other)));
    }
}

/* Round robin takes any host, so that its line and those of its hosts are one. */
static void no_line_was_passed(struct sim *s, const struct user *user, uint64_t order, bool may_be_back)
{
    int key = sim__key_of(s, user->lease.host);
    bool draining = pool_host_state(user->lease.host) == LINK_DRAINING;

    nobody_was_passed(s, &s->keys[key].line, order, may_be_back);
    for (unsigned i = 0; i < MAX_TARGETS && !draining; i++) {
        const struct target *target = &s->targets[i];
        if (target->target && target->picker == &pool_round_robin && target->member[key] &&
            target->changed_turn + 1 < s->turns && s->keys[key].changed_turn + 1 < s->turns)
            nobody_was_passed(s, target->line, order, may_be_back);
    }
}

/* Of those that their hash has sent to the same host, now and a turn ago. */
static void none_of_its_host_was_passed(struct sim *s, const struct user *user)
{
    const struct target *target = user->target;
    const struct user *other;

    if (!target->target || !target->n || target->changed_turn + 1 >= s->turns)
        return;
    DL_FOREACH (user->line->first, other) {
        if (other->order >= user->order)
            return;
        if (other->lease.hash % target->n == user->lease.hash % target->n)
            HOLDS(s, !is_plain(other) || !still_waits(other) || may_be_passed(s, other));
    }
}

void sim__check_told(struct sim *s, struct user *user)
{
    if (user->target && user->target->picker->by_lease)
        none_of_its_host_was_passed(s, user);
    else
        nobody_was_passed(s, user->line, user->order, true);
    no_line_was_passed(s, user, user->order, true);
}

void sim__check_newcomer(struct sim *s, struct user *user)
{
    if (user->target && user->target->picker == &pool_round_robin && is_plain(user))
        nobody_was_passed(s, user->target->line, UINT64_MAX, false);
    no_line_was_passed(s, user, UINT64_MAX, false);
}

/* ---- counts ---- */

static unsigned sockets_in(const struct pool_host_stats *stats)
{
    unsigned n = 0;

    for (int state = LINK_CONNECTING; state <= LINK_DRAINING; state++)
        n += stats->links[state];
    return n;
}

/* Proof is still to come, or its age is bounded, or it is to be recycled and its time has not come. */
static bool has_ready_timer(const struct link *link)
{
    bool is_recycled = link->bits & LINK_RECYCLED && !pool__is_to_be_replaced(link);

    return link->bits & LINK_UNPROVEN || is_recycled || link->owner->terms->max_age > 0;
}

/* One timer a link, and the one of its state. */
static void check_timer(struct sim *s, const struct link *link, const struct seen_link *seen)
{
    double due = link__node_is_set(&link->timer) ? link->timer.due : INFINITY;
    double now = testing_now(s->t), slack = 1e-9 * now;

    switch (link__state(link)) {
    case LINK_CONNECTING:
    case LINK_HANDSHAKING:
        HOLDS(s, due <= seen->deadline + slack || due <= seen->began + s->keys[seen->key].connect_most + slack);
        break;
    case LINK_READY:
        HOLDS(s, (due < INFINITY) == has_ready_timer(link) || link->retire || link->bits & LINK_HEARS);
        break;
    case LINK_RESETTING:
    case LINK_DRAINING:
        HOLDS(s, due <= now + s->longest + slack);
        break;
    case LINK_BACKOFF:
        HOLDS(s, due < INFINITY || pool__host_of(link)->probe_due);
        break;
    default:
        HOLDS(s, due == INFINITY);
        break;
    }
}

static void check_links(struct sim *s, const struct pool_host *host, const struct pool_host_stats *stats)
{
    unsigned n[LINK_STATES] = {0};

    for (const struct link *link = NULL; (link = pool_host_next_link(host, link));) {
        const struct seen_link *seen = sim__seen(s, link->id);
        HOLDS(s, seen && seen->state == link_state(link));
        n[link_state(link)]++;
        check_timer(s, link, seen);
        signs__check(s, link, seen);
    }
    for (int state = 0; state < LINK_STATES; state++)
        HOLDS(s, n[state] == stats->links[state]);
}

/* Out of service, and nobody in line: nothing is opened, nothing is kept. */
static void check_drained(struct sim *s, const struct pool_host *host, const struct pool_host_stats *stats)
{
    if (stats->state != LINK_DRAINING || host->line.n || s->pool->core.later_asked)
        return;
    HOLDS(s, !stats->links[LINK_CONNECTING] && !stats->links[LINK_HANDSHAKING] && !stats->idle);
}

static void check_host(struct sim *s, const struct pool_host *host, struct pool_stats *sum)
{
    struct pool_host_stats stats;
    struct key *key = &s->keys[sim__key_of(s, host)];

    pool_host_stats(host, &stats, sizeof stats);
    check_links(s, host, &stats);
    check_drained(s, host, &stats);
    sum->links += sockets_in(&stats);
    sum->idle += stats.idle;
    sum->leased += stats.leased;
    sum->connecting += stats.links[LINK_CONNECTING] + stats.links[LINK_HANDSHAKING];
    sum->hosts++;
    HOLDS(s, s->pool->bounds_lowered || sockets_in(&stats) <= pool__options(host)->max_links);
    HOLDS(s, s->pool->bounds_lowered || stats.connect_limit <= pool__options(host)->max_connecting);
    s->rare.n[RARE_LIMIT_HALVED] += stats.connect_limit < key->limit;
    key->limit = stats.connect_limit;
}

/* Counts against recounts, and open sockets. */
static void recount(struct sim *s)
{
    struct pool_stats stats, sum = {0};

    for (const struct pool_host *host = NULL; (host = pool_next_host(s->pool, host));)
        check_host(s, host, &sum);
    pool_stats(s->pool, &stats, sizeof stats);
    HOLDS(s, stats.links == sum.links && stats.idle == sum.idle && stats.leased == sum.leased);
    HOLDS(s, stats.connecting == sum.connecting && stats.hosts == sum.hosts);
}

/* Those whose win was lost are back in their places, though others may have come meanwhile. */
static unsigned who_is_back(const struct sim *s)
{
    unsigned n = 0;

    for (unsigned i = 0; i < s->p.n_users; i++) {
        const struct user *user = &s->users[i];
        n += user->state == USER_WAITING && still_waits(user) && (is_newly_back(user) || user->passed_until);
    }
    return n;
}

static void check_pool(struct sim *s)
{
    struct pool_stats stats;

    pool_stats(s->pool, &stats, sizeof stats);
    HOLDS(s, testing_open_descriptors(s->t) <= stats.links);
    HOLDS(s, stats.waiting <= s->n_waiting + s->n_out); /* decided and untold ones are the difference */
    HOLDS(s, stats.leased <= s->n_waiting + s->n_holding + s->n_out);
    HOLDS(s, s->pool->bounds_lowered || stats.links <= s->options.max_links);
    HOLDS(s, s->pool->bounds_lowered || stats.connecting <= s->options.max_connecting);
    if (!s->pool->bounds_lowered && stats.waiting > s->options.max_waiting)
        HOLDS(s, stats.waiting <= s->options.max_waiting + who_is_back(s) + calls__back(s));
    HOLDS(s, testing_misuses(s->t) == 0);
}

/* Whose link died before it was told. */
static void see_who_is_back(struct sim *s)
{
    if (s->n_ends == s->seen_ends || !s->n_waiting)
        return;
    s->seen_ends = s->n_ends;
    for (unsigned i = 0; i < s->p.n_users; i++) {
        struct user *user = &s->users[i];
        if (user->state != USER_WAITING || !still_waits(user) || !is_newly_back(user))
            continue;
        user->decided = pool__claim(&user->lease)->decided;
        user->passed_until = s->turns + 1;
        s->rare.n[RARE_WINNER_BACK_IN_LINE]++;
    }
}

/* ---- nobody waits for what is there ---- */

static const struct user *first_plain(const struct line *line)
{
    const struct user *user;

    DL_FOREACH (line->first, user)
        if (still_waits(user))
            return is_plain(user) ? user : NULL;
    return NULL;
}

static void nobody_waits_for_an_idle_host(struct sim *s, const struct target *target)
{
    const struct user *user;

    DL_FOREACH (target->line->first, user)
        if (still_waits(user) && is_plain(user)) {
            const struct pool_host *host = sim__host_by_hash(target, &user->lease);
            HOLDS(s, !host || !pool__free_link(host));
        }
}

static void nobody_waits_idly(struct sim *s)
{
    if (s->pool->core.later_asked)
        return; /* what was decided while telling is looked at next */
    for (unsigned k = 0; k < s->p.n_keys; k++)
        if (s->keys[k].pin && first_plain(&s->keys[k].line))
            HOLDS(s, !pool__free_link(s->keys[k].pin));
    for (unsigned i = 0; i < MAX_TARGETS; i++) {
        const struct target *target = &s->targets[i];
        if (!target->target || !first_plain(target->line))
            continue;
        nobody_waits_for_an_idle_host(s, target);
        if (target->picker != &pool_round_robin)
            continue;
        for (size_t m = 0; m < target->target->pick.n; m++)
            HOLDS(s, !pool__free_link(target->target->hosts[m]) || pool__is_down(target->target->hosts[m]));
    }
}

/* ---- work ---- */

static uint64_t system_calls(const struct sim *s)
{
    uint64_t n = 0;

    for (int call = 0; call < TESTING_CALLS; call++)
        n += testing_calls(s->t, (enum testing_call)call);
    return n;
}

/* Each turn does no more than a few things for each that there is; and time goes on. */
static void check_work(struct sim *s)
{
    uint64_t made = system_calls(s) - s->turn_calls;
    uint64_t things = 1 + s->n_links + s->n_waiting + s->n_holding + s->n_hosts + s->n_out;
    uint64_t there = s->were_there + things + s->turn_actions; /* before it, and after */
    double now = testing_now(s->t);

    HOLDS(s, s->turn_moves <= 100 + 12 * there);
    HOLDS(s, made <= 200 + 40 * there + 16 * s->turn_moves);
    s->still = now > s->still_at ? 0 : s->still + 1;
    s->still_most = s->still && s->still_most > there ? s->still_most : there;
    s->still_at = now;
    HOLDS(s, s->still <= 2000 + 20 * s->still_most);
    s->turn_calls = system_calls(s);
    s->turn_moves = s->turn_actions = 0;
    s->were_there = things;
}

static void note_hosts(struct sim *s)
{
    struct pool_stats stats;

    pool_stats(s->pool, &stats, sizeof stats);
    s->n_hosts = stats.hosts;
}

void sim__check_turn(struct sim *s)
{
    check_work(s);
    if (!s->pool)
        return;
    pool__check(s->pool);
    check_pool(s);
    see_who_is_back(s);
    if (s->turns % 16 == 0 || s->n_links < 20)
        recount(s);
    if (s->turns % 4 == 0)
        nobody_waits_idly(s);
    if (s->turns % 4 == 0)
        calls__check(s);
    note_hosts(s);
}
