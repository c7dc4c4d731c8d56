/* calls_call.c - the callers of call.h: calls and groups of them. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "tests/matrix/calls.h"

static int begin(struct cell *cell, bool is_group)
{
    struct cell_calls *calls = &cell->calls;
    int expected = cell_is_closed(cell) ? LINKPOOL_ECLOSED : POOL_PENDING, status;

    cell_prepare_calls(cell, calls, is_group, NULL);
    status = is_group ? pool_fanout(cell->pool, &calls->group) : pool_call(cell->pool, &calls->calls[0]);
    EXPECT(status, expected);
    EXPECT(is_group ? calls->group.status : calls->calls[0].status, expected);
    calls->asked += status == POOL_PENDING;
    return status;
}

void call_pool_call(struct cell *cell)
{
    if (begin(cell, false) == POOL_PENDING)
        EXPECT(pool_call(cell->pool, &cell->calls.calls[0]), LINKPOOL_ESTATE);
}

void call_pool_call_cancel(struct cell *cell)
{
    struct pool_call *call = &cell->calls.calls[0];

    EXPECT(pool_call_cancel(call), LINKPOOL_ESTATE);
    if (begin(cell, false) == POOL_PENDING) {
        EXPECT(pool_call_cancel(call), 0);
        cell->calls.gave_up++;
    }
    EXPECT(pool_call_cancel(call), LINKPOOL_ESTATE);
}

void call_pool_call_explain(struct cell *cell)
{
    char text[400];

    EXPECT(pool_call_explain(&cell->calls.calls[0], text, sizeof text) > 0, true);
    if (begin(cell, false) == POOL_PENDING)
        EXPECT(pool_call_explain(&cell->calls.calls[0], text, sizeof text) > 0, true);
    EXPECT(pool_call_explain(&cell->trigger_calls.calls[0], text, sizeof text) > 0, true);
}

void call_pool_fanout(struct cell *cell)
{
    if (begin(cell, true) == POOL_PENDING)
        EXPECT(pool_fanout(cell->pool, &cell->calls.group), LINKPOOL_ESTATE);
}

void call_pool_fanout_cancel(struct cell *cell)
{
    struct pool_fanout *group = &cell->calls.group;

    EXPECT(pool_fanout_cancel(group), LINKPOOL_ESTATE);
    if (begin(cell, true) == POOL_PENDING) {
        EXPECT(pool_fanout_cancel(group), 0);
        cell->calls.gave_up++;
    }
    EXPECT(pool_fanout_cancel(group), LINKPOOL_ESTATE);
}
