/* fanout.c - many calls as one: told when enough have answered, when so many cannot any more, or when time is up.
 *
 * A group is decided once, and told at the end of that turn, or by pool_free(): after the calls that decided it. */
#include <utlist.h>

#include "link/options.h"
#include "pool/call.h"

static struct pool_fanout *group_of(const struct fanout_state *state)
{
    return (struct pool_fanout *)((const char *)state - offsetof(struct pool_fanout, lib));
}

static size_t wanted(const struct pool_fanout *group)
{
    return group->wanted ? group->wanted : group->n;
}

static bool has_enough(const struct pool_fanout *group)
{
    return group->answered >= wanted(group);
}

/* What is still under way makes no difference. */
static bool is_clear_early(const struct pool_fanout *group)
{
    if (group->flags & POOL_FANOUT_HEAR_ALL)
        return false;
    return has_enough(group) || group->failed > group->n - wanted(group);
}

static bool is_overdue(const struct fanout_state *state)
{
    return link__node_is_set(&state->timer) && state->timer.due <= pool__now(state->pool);
}

/* ---- the end ---- */

static void give_up_the_rest(struct pool_fanout *group, int status)
{
    struct fanout_state *state = fanout__state(group);

    for (size_t i = 0; state->pending && i < group->n; i++) {
        const struct call_state *call = call__state(&group->calls[i]);
        if (call->stage == CALL_OVER || call->group != group) /* or its own `done` has made it again, alone */
            continue;
        call__give_up(&group->calls[i], status);
        state->pending--;
    }
}

/* No word yet: the call that decides it is told first, and this may be within the user's own pool_call_cancel().
 * `otherwise`: its status, unless enough have answered. */
static void decide(struct pool_fanout *group, int otherwise)
{
    struct fanout_state *state = fanout__state(group);
    struct pool *pool = state->pool;

    give_up_the_rest(group, otherwise == LINKPOOL_ETIMEDOUT ? otherwise : LINKPOOL_ECANCELLED);
    link__timer_clear(&pool->core, &state->timer);
    group->status = has_enough(group) ? 0 : otherwise;
    DL_APPEND(pool->groups, state);
    link__later(&pool->core);
}

/* Its calls' deadlines may be its own: then that is what it is told, whichever rings first. */
static void decide_if_clear(struct pool_fanout *group)
{
    if (!fanout__state(group)->pending || is_clear_early(group))
        decide(group, is_overdue(fanout__state(group)) ? LINKPOOL_ETIMEDOUT : LINKPOOL_ELOST);
}

void fanout__count(struct pool_fanout *group, int status)
{
    fanout__state(group)->pending--;
    if (status)
        group->failed++;
    else
        group->answered++;
    decide_if_clear(group);
}

void fanout__rang(struct link_node *timer)
{
    decide(group_of((struct fanout_state *)((char *)timer - offsetof(struct fanout_state, timer))), LINKPOOL_ETIMEDOUT);
}

/* It is nobody's any more. */
static void close_group(struct pool_fanout *group, int status)
{
    struct fanout_state *state = fanout__state(group);
    struct pool *pool = state->pool;

    if (state->prev)
        DL_DELETE(pool->groups, state);
    state->prev = NULL;
    link__timer_clear(&pool->core, &state->timer);
    link__heap_drop(&pool->core.timers);
    state->is_under_way = false;
    group->status = status;
}

/* Those that are decided meanwhile have their turn after the next poll. */
void fanout__tell(struct pool *pool)
{
    const struct fanout_state *state;
    size_t n = 0;

    DL_COUNT(pool->groups, state, n);
    while (n-- && pool->groups) {
        struct pool_fanout *group = group_of(pool->groups);
        close_group(group, group->status);
        group->done(group); /* the group may be gone now */
    }
}

/* ---- the user's own calls ---- */

static int check(const struct pool_fanout *group)
{
    if (!group->done || !group->calls || !group->n || group->wanted > group->n ||
        group->flags & ~(unsigned)POOL_FANOUT_HEAR_ALL)
        return LINKPOOL_EINVAL;
    return group->timeout == 0 || link__is_timeout(group->timeout) ? 0 : LINKPOOL_EINVAL;
}

static bool is_any_under_way(const struct pool_fanout *group)
{
    for (size_t i = 0; i < group->n; i++)
        if (call__state(&group->calls[i])->stage != CALL_OVER)
            return true;
    return false;
}

static void start_all(struct pool *pool, struct pool_fanout *group)
{
    for (size_t i = 0; i < group->n; i++) {
        struct pool_call *call = &group->calls[i];
        if (is_clear_early(group)) {
            call__skip(call, LINKPOOL_ECANCELLED);
            continue;
        }
        call->status = call__start(pool, call, group);
        if (call->status < 0)
            group->failed++;
        else
            fanout__state(group)->pending++;
    }
}

int pool_fanout(struct pool *pool, struct pool_fanout *group)
{
    struct fanout_state *state = fanout__state(group);

    if (state->is_under_way)
        return LINKPOOL_ESTATE;
    if (check(group))
        return group->status = LINKPOOL_EINVAL;
    if (is_any_under_way(group))
        return LINKPOOL_ESTATE;
    if (pool->freed || pool->draining)
        return group->status = LINKPOOL_ECLOSED;
    if (link__heap_hold(&pool->core.timers, pool->core.env))
        return group->status = LINKPOOL_ENOMEM;
    link__later(&pool->core); /* first: outside a turn it brings the clock up to date */
    *state = (struct fanout_state){.pool = pool, .timer.kind = POOL_NODE_FANOUT, .is_under_way = true};
    group->answered = group->failed = 0;
    group->status = POOL_PENDING;
    link__timer_set(&pool->core, &state->timer,
        pool__now(pool) + (group->timeout > 0 ? group->timeout : pool->options.wait_timeout));
    start_all(pool, group);
    decide_if_clear(group);
    return POOL_PENDING;
}

int pool_fanout_cancel(struct pool_fanout *group)
{
    if (!fanout__state(group)->is_under_way)
        return LINKPOOL_ESTATE;
    give_up_the_rest(group, LINKPOOL_ECANCELLED);
    close_group(group, LINKPOOL_ECANCELLED);
    return 0;
}

/* ---- a fork ---- */

void fanout__forget(struct pool_fanout *group)
{
    if (fanout__state(group)->is_under_way)
        close_group(group, LINKPOOL_ECLOSED);
}

void fanout__forget_all(struct pool *pool)
{
    while (pool->groups)
        fanout__forget(group_of(pool->groups));
}
