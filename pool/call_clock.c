/* call_clock.c - the deadlines of calls.
 *
 * Most calls are given the same time, so each is due after those before it: these lie in order in one list, and one
 * timer, set for the first or sooner, serves them all. One that is due before the last of them has a timer of its own.
 */
#include <utlist.h>

#include "pool/call.h"

void call__clock_arm(struct pool *pool)
{
    if (pool->clocked)
        link__timer_set(&pool->core, &pool->call_timer, pool->clocked->timer.due);
}

int call__clock_alone(struct pool *pool, struct call_state *state, double due)
{
    if (link__heap_hold(&pool->core.timers, pool->core.env))
        return LINKPOOL_ENOMEM;
    state->has_timer = true;
    state->timer = (struct link_node){.kind = POOL_NODE_CALL};
    link__timer_set(&pool->core, &state->timer, due);
    return 0;
}

void call__clock_stop_alone(struct call_state *state)
{
    link__timer_clear(&state->pool->core, &state->timer);
    link__heap_drop(&state->pool->core.timers);
    state->has_timer = false;
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
    call__clock_arm(pool);
}
