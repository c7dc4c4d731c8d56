/* line.c - leases in line for a channel, and those whose outcome is decided until they are told.
 *
 * One line a target and one a host, first come first served by ticket. A lease leaves its line once: by a channel, its
 * deadline, a failure, pool_cancel() or the pool's end. One absolute deadline, which nothing re-arms. Those who wait
 * the line's usual time lie in order of deadline, and one timer serves them all; the others have a timer each. */
#include <utlist.h>

#include "pool/internal.h"

void pool__line_init(struct pool_line *line, struct pool_host *host, struct pool_target *target)
{
    line->host = host;
    line->target = target;
    line->timer.kind = POOL_NODE_LINE;
}

/* ---- deadlines ---- */

static void arm_usual(struct pool *pool, struct pool_line *line)
{
    double due = line->usual ? line->usual->deadline : INFINITY;

    if (!link__node_is_set(&line->timer) || due < line->timer.due)
        link__timer_set(&pool->core, &line->timer, due);
}

/* In order of deadline, which is the order of arrival but for winners that come back and a time that was changed. */
static void add_usual(struct pool_line *line, struct pool_claim *claim)
{
    struct pool_claim *before = line->usual ? line->usual->wait.usual.prev : NULL;

    while (before && before->deadline > claim->deadline)
        before = before == line->usual ? NULL : before->wait.usual.prev;
    if (before)
        DL_APPEND_ELEM2(line->usual, before, claim, wait.usual.prev, wait.usual.next);
    else
        DL_PREPEND2(line->usual, claim, wait.usual.prev, wait.usual.next);
}

static bool needs_timer(const struct pool_claim *claim)
{
    return claim->has_own_time && claim->deadline < INFINITY;
}

static void start_clock(struct pool *pool, struct pool_claim *claim)
{
    if (!claim->has_own_time) {
        add_usual(claim->line, claim);
        arm_usual(pool, claim->line);
    } else if (claim->deadline < INFINITY) {
        claim->wait.timer.kind = POOL_NODE_LEASE;
        link__timer_set(&pool->core, &claim->wait.timer, claim->deadline);
    }
}

static void stop_clock(struct pool *pool, struct pool_claim *claim)
{
    if (claim->has_own_time)
        link__timer_clear(&pool->core, &claim->wait.timer);
    else
        DL_DELETE2(claim->line->usual, claim, wait.usual.prev, wait.usual.next);
}

/* ---- in and out ---- */

static void enter(struct pool *pool, struct pool_claim *claim)
{
    struct pool_line *line = claim->line;
    struct pool_claim *before = line->first ? line->first->prev : NULL;

    while (before && before->ticket > claim->ticket)
        before = before == line->first ? NULL : before->prev;
    if (before)
        DL_APPEND_ELEM(line->first, before, claim);
    else
        DL_PREPEND(line->first, claim);
    line->n++;
    pool->n_waiting++;
    claim->state = CLAIM_WAITING;
    start_clock(pool, claim);
    if (line->target)
        pool__target_see(line->target);
}

int pool__wait(struct pool *pool, struct pool_line *line, struct pool_lease *lease)
{
    struct pool_claim *claim = pool__claim(lease);
    double own = line->target ? line->target->wait_timeout : 0, usual = own > 0 ? own : pool->options.wait_timeout;

    claim->has_own_time = lease->timeout > 0;
    claim->asked = pool__now(pool);
    claim->deadline = claim->asked + (claim->has_own_time ? lease->timeout : usual);
    if (needs_timer(claim) && link__heap_hold(&pool->core.timers, pool->core.env))
        return LINKPOOL_ENOMEM;
    claim->wait.timer = (struct link_node){0};
    claim->line = line;
    claim->channel = NULL;
    enter(pool, claim);
    return POOL_PENDING;
}

/* It lets those behind it pass. */
static bool has_wish(const struct pool_claim *claim)
{
    const struct pool_lease *lease = pool__lease(claim);

    return lease->flags & POOL_FRESH || lease->avoid;
}

void pool__unwait(struct pool_lease *lease)
{
    struct pool_claim *claim = pool__claim(lease);
    struct pool_line *line = claim->line;
    struct pool *pool = claim->pool;
    bool was_first = line->first == claim;

    stop_clock(pool, claim);
    if (needs_timer(claim))
        link__heap_drop(&pool->core.timers);
    DL_DELETE(line->first, claim);
    pool->n_waiting--;
    if (--line->n) {
        if (line->target && (was_first || has_wish(line->first)))
            pool__look_again(line); /* the next, or the next behind those with wishes, may be one for another host */
        return;
    }
    pool__unwant(line);
    if (line->target)
        pool__target_see(line->target);
    else if (line->host->draining)
        pool__want(line); /* what was kept for those who waited may go */
}

void pool__wait_again(struct pool_lease *lease)
{
    struct pool_claim *claim = pool__claim(lease);
    struct pool *pool = claim->pool;

    /* Its place among the timers was given up when it won; without memory for one it waits the line's way. */
    if (needs_timer(claim) && link__heap_hold(&pool->core.timers, pool->core.env))
        claim->has_own_time = false;
    claim->wait.timer = (struct link_node){0};
    claim->channel = NULL;
    enter(pool, claim);
    if (pool->freed || (claim->line->target && claim->line->target->over))
        pool__fail(lease, LINKPOOL_ECLOSED);
    else if (claim->deadline <= pool__now(pool))
        pool__time_out(lease);
    else
        pool__want(claim->line);
}

/* ---- decided ---- */

void pool__to_tell(struct pool *pool, struct pool_lease *lease)
{
    struct pool_claim *claim = pool__claim(lease);

    claim->decided = ++pool->decided;
    DL_APPEND(pool->to_tell, claim);
    link__later(&pool->core);
}

void pool__untell(struct pool *pool, struct pool_lease *lease)
{
    DL_DELETE(pool->to_tell, pool__claim(lease));
}

void pool__fail(struct pool_lease *lease, int status)
{
    struct pool_claim *claim = pool__claim(lease);

    pool__unwait(lease);
    claim->state = CLAIM_FAILED;
    lease->status = status;
    pool__to_tell(claim->pool, lease);
}

void pool__give(struct pool_lease *lease, struct channel *channel)
{
    struct pool_claim *claim = pool__claim(lease);

    pool__unwait(lease);
    claim->state = CLAIM_WON;
    claim->channel = channel;
    channel->promised = true; /* an exclusive link is watched as though nobody held it */
    if (link__is_shared(channel->link))
        link__shared(channel->link)->n_promised++;
    if (claim->target)
        claim->target->n_held++;
    pool__to_tell(claim->pool, lease);
}

void pool__fail_late(struct pool_lease *lease, int status)
{
    struct pool_claim *claim = pool__claim(lease);

    claim->state = CLAIM_FAILED;
    claim->asked = pool__now(claim->pool);
    lease->status = status;
    pool__to_tell(claim->pool, lease);
}

void pool__time_out(struct pool_lease *lease)
{
    struct pool_claim *claim = pool__claim(lease);

    lease->stage = pool__stage(claim->line);
    pool__explain_failure(lease, claim->line);
    claim->pool->timed_out++;
    pool__fail(lease, LINKPOOL_ETIMEDOUT);
}

void pool__fail_line(struct pool_line *line, int status, bool fail_fast_alone)
{
    struct pool_claim *claim, *next;

    DL_FOREACH_SAFE (line->first, claim, next) {
        struct pool_lease *lease = pool__lease(claim);
        if (fail_fast_alone && lease->flags & POOL_WAIT_FOR_READY)
            continue;
        pool__explain_failure(lease, line);
        claim->pool->failed_fast += status == LINKPOOL_EUNAVAILABLE;
        pool__fail(lease, status);
    }
}

void pool__line_rang(struct pool *pool, struct pool_line *line)
{
    while (line->usual && line->usual->deadline <= pool__now(pool))
        pool__time_out(pool__lease(line->usual));
    arm_usual(pool, line);
}

/* ---- telling ---- */

static void count_wait(struct pool *pool, const struct pool_lease *lease)
{
    double waited = pool__now(pool) - pool__claim(lease)->asked;
    unsigned bucket = 0;

    for (double us = waited * 1e6; us >= 1 && bucket < 31; us /= 2)
        bucket++;
    pool->wait_histogram[bucket]++;
    if (pool->observer.waited)
        pool->observer.waited(pool->observer.data, lease, waited);
}

static void tell_taken_away(struct pool_lease *lease)
{
    struct pool_claim *claim = pool__claim(lease);

    claim->state = CLAIM_OVER;
    lease->channel = NULL;
    pool__told(claim->channel);
    if (lease->closed)
        lease->closed(lease); /* last line: the lease, and the pool, may be gone */
}

static void tell_won(struct pool *pool, struct pool_lease *lease)
{
    struct pool_claim *claim = pool__claim(lease);

    pool__won_no_more(claim);
    claim->state = CLAIM_HELD;
    lease->channel = claim->channel;
    lease->host = pool__host_of(claim->channel->link);
    lease->channel->promised = false;
    lease->status = POOL_READY;
    pool->acquired_waited++;
    if (!lease->reused)
        pool->first_uses++;
    count_wait(pool, lease);
    lease->done(lease); /* last line, as above */
}

static void tell_failed(struct pool *pool, struct pool_lease *lease)
{
    pool__claim(lease)->state = CLAIM_OVER;
    count_wait(pool, lease);
    lease->done(lease); /* last line, as above */
}

/* Tells the one decided first, unless it was decided after `limit`: false then, and when there is none. */
bool pool__tell_one(struct pool *pool, uint32_t limit)
{
    struct pool_claim *claim = pool->to_tell;

    if (!claim || (int32_t)(claim->decided - limit) > 0)
        return false;
    DL_DELETE(pool->to_tell, claim);
    if (claim->state == CLAIM_WON)
        tell_won(pool, pool__lease(claim));
    else if (claim->state == CLAIM_FAILED)
        tell_failed(pool, pool__lease(claim));
    else
        tell_taken_away(pool__lease(claim));
    return true;
}
