/* calls.c - callers: one request after another, its answer, and what each may be told. */
#include "pool/call.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim.h"
#include "tests/sim/wire.h"

static void begin(struct sim *s, struct caller *caller, struct pool_call *call)
{
    caller->sim = s;
    caller->call = call;
    call->data = caller;
}

void calls__begin(struct sim *s)
{
    for (unsigned i = 0; i < s->p.n_callers; i++)
        begin(s, &s->callers[i], &s->callers[i].own);
    for (unsigned i = 0; i < s->p.n_crowds; i++)
        for (unsigned m = 0; m < MAX_CROWD; m++) {
            begin(s, &s->crowds[i].members[m], &s->crowds[i].calls[m]);
            s->crowds[i].members[m].crowd = &s->crowds[i];
        }
}

static bool lies_in(const void *at, const void *from, size_t n)
{
    return (uintptr_t)at >= (uintptr_t)from && (uintptr_t)at < (uintptr_t)from + n;
}

struct caller *calls__of_lease(const struct sim *s, const struct pool_lease *lease)
{
    bool is_call = lies_in(lease, s->callers, sizeof s->callers) || lies_in(lease, s->crowds, sizeof s->crowds);

    return is_call ? call__of_lease(lease)->data : NULL;
}

/* ---- the answer ---- */

/* An ERROR has words: the key and the request. */
static void check_words(const struct sim *s, const struct caller *caller, const char *words, size_t n)
{
    unsigned long id;
    unsigned key;
    char text[64];

    HOLDS(s, n < sizeof text);
    memcpy(text, words, n);
    text[n] = '\0';
    HOLDS(s, sscanf(text, "sim %u %lu", &key, &id) == 2);
    HOLDS(s, id == caller->id && (caller->key < 0 || key == (unsigned)caller->key));
}

static void check_answer(struct sim *s, const struct caller *caller)
{
    const struct pool_call *call = caller->call;
    struct frame f;

    HOLDS(s, call->answer);
    HOLDS(s, (call->code != 0) == (call->status == LINKPOOL_EPEER));
    if (call->code) {
        check_words(s, caller, call->answer, call->answer_size);
        return;
    }
    HOLDS(s, call->answer_size >= FRAME);
    f = frame_read(call->answer);
    HOLDS(s, frame_is_whole(&f) && f.letter == 'c');
    HOLDS(s, f.serial == caller->id); /* an answer to another request */
    HOLDS(s, caller->key < 0 || f.key == caller->key);
    HOLDS(s, f.arg == call->answer_size);
}

/* ---- the outcome ---- */

/* Those of the library's errors that a call may end with. */
static void check_status(struct sim *s, const struct caller *caller)
{
    const struct pool_call *call = caller->call;

    switch (call->status) {
    case 0:
    case LINKPOOL_EPEER:
    case LINKPOOL_ECANCELLED:
    case LINKPOOL_ETIMEDOUT:
    case LINKPOOL_ECLOSED:
        break;
    case LINKPOOL_EUNAVAILABLE:
        HOLDS(s, !(call->flags & POOL_CALL_WAIT_FOR_READY) || caller->target);
        break;
    case LINKPOOL_ENOMEM:
        HOLDS(s, s->p.memory_fails);
        break;
    case LINKPOOL_ELOST:
        HOLDS(s, call->attempts && call->reason != LINK_NO_REASON);
        break;
    case LINKPOOL_EFULL:
        HOLDS(s, call->bound != POOL_BOUND_NONE);
        break;
    case LINKPOOL_EOPTION: /* a target's host whose links carry one at a time */
        HOLDS(s, caller->target);
        break;
    default: /* a request that is larger than its peer takes, or no frame of a stream's */
        HOLDS(s, call->status == LINKPOOL_EINVAL && (call->request_size > 1024 || caller->target));
        break;
    }
}

/* Retries are a fifth of the calls, or three a second. */
static void check_budget(struct sim *s)
{
    double seconds = 2 + floor(testing_now(s->t)) - floor(s->first_call);

    HOLDS(s, (double)s->n_retried <= 0.2 * (double)s->n_called + 3 * seconds);
}

static void count_rare(struct sim *s, const struct caller *caller, double now)
{
    const struct pool_call *call = caller->call;
    const struct call_state *state = call__state(call);

    s->rare.n[RARE_CALL_AT_DEADLINE] += !call->status && now >= caller->deadline;
    s->rare.n[RARE_CALL_RETRIED] += !call->status && call->attempts > 1;
    if (call->status != LINKPOOL_ELOST || call->fate != POOL_NOT_SENT)
        return;
    s->rare.n[RARE_CALL_LOST_NOT_SENT]++;
    if (state->retries_left && s->pool && !s->draining && !s->pool->draining && s->pool->retry_budget < 1)
        s->rare.n[RARE_RETRY_REFUSED]++;
}

void calls__over(struct sim *s, struct caller *caller)
{
    const struct pool_call *call = caller->call;
    double now = testing_now(s->t), slack = 1e-9 * now;

    HOLDS(s, caller->out && call__state(call)->stage == CALL_OVER);
    HOLDS(s, call->status <= 0);
    check_status(s, caller);
    HOLDS(s, call->attempts <= call->retries + 1);
    if (call->status == LINKPOOL_ETIMEDOUT)
        HOLDS(s, now >= caller->deadline - slack || (caller->crowd && now >= caller->crowd->deadline - slack));
    count_rare(s, caller, now);
    caller->out = false;
    s->n_out--;
    s->n_retried += call->attempts > 1 ? call->attempts - 1 : 0;
    check_budget(s);
    ledger__over(s, caller);
    free(caller->request);
    caller->request = NULL;
}

static void on_done(struct pool_call *call)
{
    struct caller *caller = call->data;
    struct sim *s = caller->sim;
    double now = testing_now(s->t);

    HOLDS(s, caller->out);
    HOLDS(s, now <= caller->deadline + 1e-6 || s->jumped_at >= caller->asked || call->status == LINKPOOL_ECLOSED);
    sim__note_time(s, "called", (uint64_t)(int64_t)call->status, now);
    if (!call->status || call->status == LINKPOOL_EPEER)
        check_answer(s, caller);
    calls__over(s, caller);
    s->in_call++;
    sim__react(s);
    s->in_call--;
}

/* ---- asking ---- */

/* Where there are hosts that take calls, one of them; now and then any. */
static bool wish_whom(struct sim *s, struct caller *caller)
{
    unsigned i = below(s, MAX_TARGETS), k = below(s, s->p.n_keys);
    struct pool_call *call = caller->call;

    call->to = NULL;
    call->host = NULL;
    call->target = NULL;
    caller->target = NULL;
    caller->key = -1;
    if (s->targets[i].target && once_in(s, 2)) {
        caller->target = &s->targets[i];
        call->target = s->targets[i].target;
        return true;
    }
    for (unsigned n = 0; n < s->p.n_keys && s->keys[k].kind != KIND_FRAMED; n++)
        k = (k + 1) % s->p.n_keys;
    if (s->keys[k].kind != KIND_FRAMED || !(call->host = sim__pin(s, (int)k)))
        return false;
    caller->key = (int)k;
    s->keys[k].known = true;
    return true;
}

/* Bytes that say whose they are, then zeros; more than a stream takes. Where a socket takes few at a time, not many. */
static void write_request(struct sim *s, struct caller *caller)
{
    unsigned most = s->p.send_buffer && s->p.send_buffer < 150 ? 20 * s->p.send_buffer : 3000;
    size_t n = FRAME + 1 + (once_in(s, s->p.send_buffer ? 2 : 6) ? sim__size(s, 1, most) : below(s, 48));

    caller->request = calloc(1, n);
    if (!caller->request)
        abort();
    caller->call->request = caller->request;
    caller->call->request_size = n;
}

bool calls__wish(struct sim *s, struct caller *caller)
{
    struct pool_call *call = caller->call;
    unsigned time = below(s, 8), lenient = below(s, 3);

    if (!wish_whom(s, caller))
        return false;
    call->done = caller->crowd && once_in(s, 4) ? NULL : on_done;
    call->timeout = time < 4   ? 0
                    : time < 5 ? (double)INFINITY
                               : sim__spread(s, 0.001,
                                     time == 5   ? 600
                                     : time == 6 ? 0.05
                                                 : 4);
    call->flags = lenient == 0 ? POOL_CALL_WAIT_FOR_READY : 0;
    call->flags |= once_in(s, 3) ? POOL_CALL_SAFE_TO_REPEAT : 0;
    call->retries = once_in(s, 3) ? 0 : below(s, 4);
    call->hash = draw(s);
    write_request(s, caller);
    return true;
}

void calls__taken(struct sim *s, struct caller *caller)
{
    struct pool_call *call = caller->call;
    struct frame f;

    call->attempts = 0; /* a group that is refused looks at none of its calls */
    call->fate = POOL_NOT_SENT;
    caller->id = ledger__new(s, caller);
    f = frame_of('C', caller->key >= 0 ? (unsigned)caller->key : NO_KEY, caller->id, (uint32_t)call->request_size);
    memcpy(caller->request, &f, FRAME);
    caller->out = true;
    s->n_out++;
    s->first_call = s->n_called++ ? s->first_call : testing_now(s->t);
}

double calls__deadline(struct sim *s, double timeout)
{
    timeout = timeout > 0 ? timeout : s->pool->options.wait_timeout;
    s->longest = timeout < INFINITY && timeout > s->longest ? timeout : s->longest;
    return pool_now(s->pool) + timeout;
}

void calls__timed(struct sim *s, struct caller *caller)
{
    caller->asked = pool_now(s->pool);
    caller->decided = pool__claim(&caller->call->lease)->decided;
    caller->deadline = calls__deadline(s, caller->call->timeout);
}

static void ask(struct sim *s, struct caller *caller)
{
    int answer;

    if (!calls__wish(s, caller))
        return;
    calls__taken(s, caller);
    answer = pool_call(s->pool, caller->call);
    sim__note(s, "call", caller->id, (uint64_t)(int64_t)answer);
    HOLDS(s, answer == caller->call->status);
    HOLDS(s, answer == POOL_PENDING || answer < 0);
    HOLDS(s, answer != LINKPOOL_ETIMEDOUT && answer != LINKPOOL_ECANCELLED && answer != LINKPOOL_ELOST);
    calls__timed(s, caller);
    s->rare.n[RARE_CALL_BYTES] += caller->call->bound == POOL_BOUND_CALL_BYTES;
    if (answer != POOL_PENDING)
        calls__over(s, caller);
    else
        signs__lent_to_call(s, caller);
}

/* ---- giving up ---- */

static void cancel(struct sim *s, struct caller *caller)
{
    uint8_t stage = call__state(caller->call)->stage;
    int answer;

    s->rare.n[RARE_CALL_CANCELLED_UNSENT] += stage == CALL_SENDING;
    answer = pool_call_cancel(caller->call);
    sim__note(s, "cancel call", caller->id, stage);
    HOLDS(s, answer == 0 && caller->call->status == LINKPOOL_ECANCELLED);
    HOLDS(s, caller->call->fate == POOL_NOT_SENT || caller->call->attempts);
    calls__over(s, caller);
}

/* One that has a channel, and whose protocol has no room; NULL: none. */
static struct caller *one_with_no_room(struct sim *s)
{
    unsigned first = below(s, s->p.n_callers);

    for (unsigned i = 0; i < s->p.n_callers; i++) {
        struct caller *caller = &s->callers[(first + i) % s->p.n_callers];
        if (caller->out && call__state(caller->call)->stage == CALL_SENDING)
            return caller;
    }
    return NULL;
}

void calls__act(struct sim *s)
{
    struct caller *caller = &s->callers[below(s, s->p.n_callers)], *stuck;
    unsigned burst = once_in(s, 16) ? sim__size(s, 1, 40) : 1;

    if (once_in(s, 2) && (stuck = one_with_no_room(s))) {
        cancel(s, stuck);
        return;
    }
    if (caller->out && once_in(s, 3)) {
        cancel(s, caller);
        return;
    }
    for (unsigned i = 0; i < burst && s->pool; i++, caller = &s->callers[below(s, s->p.n_callers)])
        if (!caller->out)
            ask(s, caller);
}

/* ---- always ---- */

static size_t unsent(const struct caller *caller)
{
    uint8_t stage = call__state(caller->call)->stage;

    return stage == CALL_WAITING || stage == CALL_SENDING ? caller->call->request_size : 0;
}

/* Nobody waits for a channel of a host that has one, nor to send where nothing waits to be written. */
static void check_waiting(const struct sim *s, const struct caller *caller)
{
    const struct pool_host *host = caller->out && caller->key >= 0 ? s->keys[caller->key].pin : NULL;
    uint8_t state = pool__claim(&caller->call->lease)->state;

    if (!host || s->pool->core.later_asked)
        return;
    if (state == CLAIM_WAITING)
        HOLDS(s, !pool__free_link(host));
    if (state == CLAIM_HELD && call__state(caller->call)->stage == CALL_SENDING)
        HOLDS(s, framed__is_full(channel_link(caller->call->lease.channel)));
}

void calls__check(struct sim *s)
{
    size_t bytes = 0;

    if (!s->p.n_callers || !s->pool)
        return;
    for (unsigned i = 0; i < s->p.n_callers && s->n_out; i++) {
        bytes += unsent(&s->callers[i]);
        check_waiting(s, &s->callers[i]);
    }
    for (unsigned i = 0; i < s->p.n_crowds && s->n_out; i++)
        for (unsigned m = 0; m < MAX_CROWD; m++)
            bytes += unsent(&s->crowds[i].members[m]);
    HOLDS(s, bytes == s->pool->call_bytes);
}

static bool is_back(const struct caller *caller)
{
    const struct pool_claim *claim = pool__claim(&caller->call->lease);

    return caller->out && claim->state == CLAIM_WAITING && claim->decided != caller->decided;
}

unsigned calls__back(const struct sim *s)
{
    unsigned n = 0;

    for (unsigned i = 0; i < s->p.n_callers; i++)
        n += is_back(&s->callers[i]);
    for (unsigned i = 0; i < s->p.n_crowds; i++)
        for (unsigned m = 0; m < MAX_CROWD; m++)
            n += is_back(&s->crowds[i].members[m]);
    return n;
}

void calls__calm(struct sim *s)
{
    for (unsigned i = 0; i < s->p.n_callers; i++)
        if (s->callers[i].out && s->callers[i].call->timeout == INFINITY)
            cancel(s, &s->callers[i]);
}

void calls__free(struct sim *s)
{
    for (unsigned i = 0; i < s->p.n_callers; i++)
        HOLDS(s, !s->callers[i].out);
    for (unsigned i = 0; i < s->p.n_crowds; i++)
        HOLDS(s, !s->crowds[i].out);
    HOLDS(s, !s->n_out);
}
