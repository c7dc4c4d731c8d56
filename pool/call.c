/* call.c - a request and its answer: asked for, in time, told once, and tried again where that can do no harm.
 *
 * A call is a holder like any other: it acquires, sends, hears and releases by the public functions. Its lease has no
 * time of its own; the call's timer runs from asking to the answer, and nothing sets it anew. */
#include "linkpool/call.h"

#include <math.h>

#include "link/options.h"
#include "pool/call.h"

/* ---- the budget of retries ---- */

enum {
    RETRIES_A_SECOND = 3, /* always allowed */
    MOST_RETRIES = 100    /* saved up: a burst, and not what was saved in a quiet year */
};
static const double retries_a_call = 0.2;

static void fill_budget(struct pool *pool)
{
    pool->retry_budget += retries_a_call;
    if (pool->retry_budget > MOST_RETRIES)
        pool->retry_budget = MOST_RETRIES;
}

/* Those that are always allowed are paid later, where calls come fast enough to pay: the more of both, not the sum. */
static bool take_from_budget(struct pool *pool)
{
    uint64_t second = (uint64_t)pool__now(pool);

    if (pool->retry_second != second) {
        pool->retry_second = second;
        pool->retries_now = 0;
    }
    if (pool->retry_budget < 1 && pool->retries_now >= RETRIES_A_SECOND)
        return false;
    if (--pool->retry_budget < -RETRIES_A_SECOND)
        pool->retry_budget = -RETRIES_A_SECOND;
    pool->retries_now++;
    return true;
}

/* ---- whom it may ask again ---- */

/* A text is resolved once: it may mean something else when the call is tried again. */
static void keep(struct pool_call *call)
{
    struct call_state *state = call__state(call);
    const struct pool_claim *claim = pool__claim(&call->lease);

    state->is_kept = true;
    state->host = state->avoided = NULL;
    if ((state->target = claim->target)) {
        state->target->n_calls++;
        return;
    }
    state->host = claim->state == CLAIM_HELD ? call->lease.host : claim->line->host;
    state->host->pins++;
}

static void let_host_go(struct pool_host **host)
{
    if (*host)
        pool_host_drop(*host);
    *host = NULL;
}

LINK_RARE static void let_go(struct call_state *state)
{
    struct pool_target *target = state->target;

    state->is_kept = false;
    let_host_go(&state->avoided);
    let_host_go(&state->host);
    if (target && !--target->n_calls && target->removed)
        link__later(&state->pool->core); /* it may go */
}

/* ---- the end ---- */

/* It is nobody's any more: no timer, no bytes that are bounded. */
static void close_call(struct pool_call *call, int status)
{
    struct call_state *state = call__state(call);
    struct pool *pool = state->pool;

    call__clock_stop(state);
    if (state->stage != CALL_SENT)
        pool->call_bytes -= call->request_size;
    state->stage = CALL_OVER;
    if (state->is_telling)
        *state->over = true;
    if (state->is_kept)
        let_go(state);
    call->status = status;
}

void call__tell(struct pool_call *call, int status)
{
    struct pool_fanout *group = call__state(call)->group;

    close_call(call, status);
    if (group)
        fanout__count(group, status);
    if (call->done)
        call->done(call); /* last line: the pool may be gone now, and the call */
}

/* ---- asking ---- */

static void note_failure(struct pool_call *call)
{
    call->reason = call->lease.reason;
    call->system_errno = call->lease.system_errno;
    call->stage = call->lease.stage;
    call->bound = call->lease.bound;
}

static int acquire(struct pool_call *call)
{
    struct pool_lease *lease = &call->lease;

    pool__claim(lease)->in_order = true;
    if (call->target)
        return pool_acquire_target(call->target, lease);
    if (call->host)
        return pool_acquire_host(call->host, lease);
    return pool_acquire(call__state(call)->pool, call->to, lease);
}

static int ask(struct pool_call *call)
{
    int status = acquire(call);

    if (status < 0) {
        note_failure(call);
        return status;
    }
    if (call->retries)
        keep(call);
    return status == POOL_READY ? call__use(call) : 0;
}

static bool may_be_tried_again(const struct pool_call *call)
{
    const struct call_state *state = call__state(call);

    if (!state->retries_left || (call->fate != POOL_NOT_SENT && !(call->flags & POOL_CALL_SAFE_TO_REPEAT)))
        return false;
    return !state->pool->freed && !state->pool->draining && !(state->target && state->target->removed);
}

/* On another host, where there is one. False: it is not tried, and what was its end stands. */
static bool try_again(struct pool_call *call)
{
    struct call_state *state = call__state(call);
    struct pool_lease *lease = &call->lease;
    int status;

    if (!may_be_tried_again(call) || !take_from_budget(state->pool))
        return false;
    state->retries_left--;
    if (state->stage == CALL_SENT)
        state->pool->call_bytes += call->request_size;
    state->stage = CALL_WAITING;
    let_host_go(&state->avoided);
    if (state->target) {
        state->avoided = lease->host;
        state->avoided->pins++;
    }
    lease->avoid = state->avoided;
    status = state->target ? pool_acquire_target(state->target, lease) : pool_acquire_host(state->host, lease);
    return status == POOL_PENDING || (status == POOL_READY && !call__use(call));
}

/* ---- what its lease is told ---- */

static void on_leased(struct pool_lease *lease)
{
    struct pool_call *call = call__of_lease(lease);
    int status = lease->status;

    if (status < 0)
        note_failure(call);
    else
        status = call__use(call);
    if (status)
        call__tell(call, status);
}

static void on_closed(struct pool_lease *lease)
{
    int status = lease->status;

    call__lost(call__of_lease(lease));
    if (!try_again(call__of_lease(lease)))
        call__tell(call__of_lease(lease), status);
}

/* ---- the user's own calls ---- */

/* Not exactly one. */
static bool is_to_none_or_many(const struct pool_call *call)
{
    return call->host ? call->to || call->target : !call->to == !call->target;
}

static int check(const struct pool *pool, const struct pool_call *call)
{
    unsigned known = POOL_CALL_WAIT_FOR_READY | POOL_CALL_SAFE_TO_REPEAT;

    if (call->flags & ~known || is_to_none_or_many(call))
        return LINKPOOL_EINVAL;
    if ((call->host && pool__of(call->host) != pool) || (call->target && call->target->pool != pool))
        return LINKPOOL_EINVAL;
    if (call->request_size && !call->request)
        return LINKPOOL_EINVAL;
    return call->timeout == 0 || link__is_timeout(call->timeout) ? 0 : LINKPOOL_EINVAL;
}

static void clear_outcome(struct pool_call *call)
{
    call->answer = NULL;
    call->answer_size = 0;
    call->code = 0;
    call->status = POOL_PENDING;
    call->system_errno = 0;
    call->reason = LINK_NO_REASON;
    call->stage = POOL_STAGE_NONE;
    call->bound = POOL_BOUND_NONE;
    call->fate = POOL_NOT_SENT;
    call->attempts = 0;
    call->last_host = NULL;
    if (call__state(call)->has_words)
        *call->words = '\0';
}

static void fill(struct pool *pool, struct pool_call *call, struct pool_fanout *group)
{
    struct call_state *state = call__state(call);

    /* One by one: clearing all of it first is what a call would spend most time on. */
    state->pool = pool;
    state->group = group;
    state->clock_prev = NULL;
    state->retries_left = call->retries;
    state->stage = CALL_WAITING;
    state->has_timer = state->is_kept = state->is_queued = state->is_telling = state->has_words = false;
    call->lease.done = on_leased;
    call->lease.closed = on_closed;
    call->lease.timeout = INFINITY;
    call->lease.flags = call->flags & POOL_CALL_WAIT_FOR_READY;
    call->lease.hash = call->hash;
    call->lease.avoid = NULL;
}

/* Its own are counted already. */
static bool is_too_much(const struct pool_call *call)
{
    const struct pool *pool = call__state(call)->pool;
    size_t others = pool->call_bytes - call->request_size, most = pool->options.max_call_bytes;

    return others > most || call->request_size > most - others;
}

/* What was let in once is bounded no more, though it waits again. */
bool call__waits_with_too_much(const struct pool_lease *lease)
{
    return !call__of_lease(lease)->attempts && is_too_much(call__of_lease(lease));
}

/* It has a channel, and its protocol has no room. */
static int refuse_if_unsent(struct pool_call *call)
{
    if (call__state(call)->stage != CALL_SENDING || pool__claim(&call->lease)->state != CLAIM_HELD ||
        !is_too_much(call))
        return 0;
    call__give_back(call);
    call->bound = POOL_BOUND_CALL_BYTES;
    call__state(call)->pool->full++;
    return LINKPOOL_EFULL;
}

static int start_clock(struct pool *pool, struct pool_call *call)
{
    double timeout = call->timeout > 0 ? call->timeout : pool->options.wait_timeout;

    return call__clock_start(pool, call__state(call), pool__now(pool) + timeout);
}

int call__start(struct pool *pool, struct pool_call *call, struct pool_fanout *group)
{
    int status;

    clear_outcome(call);
    if (check(pool, call))
        return LINKPOOL_EINVAL;
    if (pool->freed || pool->draining)
        return LINKPOOL_ECLOSED;
    link__later(&pool->core); /* first: outside a turn it brings the clock up to date */
    fill(pool, call, group);
    if (start_clock(pool, call)) {
        call__state(call)->stage = CALL_OVER;
        return LINKPOOL_ENOMEM;
    }
    pool->call_bytes += call->request_size;
    fill_budget(pool);
    if (!(status = ask(call)) && !(status = refuse_if_unsent(call)))
        return POOL_PENDING;
    close_call(call, status);
    return status;
}

void call__skip(struct pool_call *call, int status)
{
    clear_outcome(call);
    call->status = status;
}

int pool_call(struct pool *pool, struct pool_call *call)
{
    if (call__state(call)->stage != CALL_OVER)
        return LINKPOOL_ESTATE;
    if (call->done)
        return call->status = call__start(pool, call, NULL);
    call__skip(call, LINKPOOL_EINVAL);
    return LINKPOOL_EINVAL;
}

int pool_call_cancel(struct pool_call *call)
{
    struct pool_fanout *group = call__state(call)->group;

    if (call__state(call)->stage == CALL_OVER)
        return LINKPOOL_ESTATE;
    call__give_up(call, LINKPOOL_ECANCELLED);
    if (group)
        fanout__count(group, LINKPOOL_ECANCELLED);
    return 0;
}

/* ---- its time, its group's, and a fork ---- */

static void give_up_waiting(struct pool_call *call)
{
    const struct pool_line *line = pool__claim(&call->lease)->line;

    pool__explain_failure(&call->lease, line);
    call->lease.stage = pool__stage(line);
    note_failure(call);
    pool_cancel(&call->lease);
}

static bool is_decided(const struct pool_call *call)
{
    uint8_t state = pool__claim(&call->lease)->state;

    return state == CLAIM_FAILED || state == CLAIM_LOST;
}

/* Its time is up: what ate it is kept, and a link that did not answer is looked at. */
static void stop(struct pool_call *call)
{
    if (pool__claim(&call->lease)->state == CLAIM_HELD)
        call__stop_waiting(call);
    else
        give_up_waiting(call);
}

void call__give_up(struct pool_call *call, int status)
{
    if (status == LINKPOOL_ETIMEDOUT && !is_decided(call))
        stop(call);
    else if (call__state(call)->stage == CALL_WAITING)
        pool_cancel(&call->lease);
    else
        call__give_back(call);
    close_call(call, status);
}

void call__rang(struct link_node *timer)
{
    struct call_state *state = (struct call_state *)((char *)timer - offsetof(struct call_state, timer));
    struct pool_call *call = call__of_state(state);

    if (is_decided(call)) { /* and told in this turn */
        state->retries_left = 0;
        return;
    }
    stop(call);
    call__tell(call, LINKPOOL_ETIMEDOUT);
}

static bool is_of_call(const struct pool_lease *lease)
{
    return lease->done == on_leased;
}

void call__forget(struct pool_lease *lease)
{
    if (!is_of_call(lease))
        return;
    struct pool_call *call = call__of_lease(lease);
    struct pool_fanout *group = call__state(call)->group;
    if (call__state(call)->stage != CALL_WAITING)
        call__lost(call);
    close_call(call, LINKPOOL_ECLOSED);
    if (group)
        fanout__forget(group);
}

size_t call__unsent_bytes(const struct pool_lease *lease)
{
    if (!is_of_call(lease) || call__state(call__of_lease(lease))->stage == CALL_SENT)
        return 0;
    return call__of_lease(lease)->request_size;
}
