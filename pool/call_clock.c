/* call_clock.c - the deadlines of calls.
 *
 * Most calls are given the same time, so each is due after those before it: these lie in order in one list, and one
 * timer, set for the first or sooner, serves them all. One that is due before the last of them has a timer of its own.
 */
#include <utlist.h>

#include "pool/call.h"

static void arm(struct pool *pool)
{
    if (pool->clocked && (!link__node_is_set(&pool->call_timer) || pool->clocked->timer.due < pool->call_timer.due))
        link__timer_set(&pool->core, &pool->call_timer, pool->clocked->timer.due);
}

/* Whoever is due now rings first: see call__clock_rang(). */
static bool is_next(const struct pool *pool, double due)
{
    return due > pool__now(pool) && (!pool->clocked || due >= pool->clocked->clock_prev->timer.due);
}

int call__clock_start(struct pool *pool, struct call_state *state, double due)
{
    if (due == (double)INFINITY)
        return 0;
    if (is_next(pool, due)) {
        state->timer.due = due;
        DL_APPEND2(pool->clocked, state, clock_prev, clock_next);
        arm(pool);
        return 0;
    }
    if (link__heap_hold(&pool->core.timers, pool->core.env))
        return LINKPOOL_ENOMEM;
    state->has_timer = true;
    state->timer = (struct link_node){.kind = POOL_NODE_CALL};
    link__timer_set(&pool->core, &state->timer, due);
    return 0;
}

void call__clock_stop(struct call_state *state)
{
    struct pool *pool = state->pool;

    if (state->clock_prev) {
        DL_DELETE2(pool->clocked, state, clock_prev, clock_next);
        state->clock_prev = NULL;
    } else if (state->has_timer) {
        link__timer_clear(&pool->core, &state->timer);
        link__heap_drop(&pool->core.timers);
        state->has_timer = false;
    }
}

/* Calls made meanwhile are due later: it ends. */
void call__clock_rang(struct pool *pool)
{
    struct call_state *first;

    while ((first = pool->clocked) && first->timer.due <= pool__now(pool)) {
        DL_DELETE2(pool->clocked, first, clock_prev, clock_next);
        first->clock_prev = NULL;
        call__rang(&first->timer);
    }
    arm(pool);
}
