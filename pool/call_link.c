/* call_link.c - a call and the link it has a channel of: sent in order, answered, given back.
 *
 * On each link requests go out in the order in which they got their channels, whatever the protocol refuses meanwhile:
 * those that it has no room for lie in the link's `unsent`, and whoever comes goes behind them. Only the first of them
 * has been refused, and is owed `writable`; so whoever leaves lets the next try. No user's code runs in here, but where
 * a message is told. */
#include <string.h>
#include <utlist.h>

#include "pool/call.h"

static void note_words(struct pool_call *call, const char *words, size_t n)
{
    link__quote(call->words, sizeof call->words, words, n);
    call__state(call)->has_words = true;
}

/* ---- those that wait to be sent ---- */

static void queue(struct link *link, struct call_state *state)
{
    struct call_state *unsent = link__shared(link)->unsent;

    DL_APPEND(unsent, state);
    link__shared(link)->unsent = unsent;
    state->is_queued = true;
}

static void queue_first(struct link *link, struct call_state *state)
{
    struct call_state *unsent = link__shared(link)->unsent;

    DL_PREPEND(unsent, state);
    link__shared(link)->unsent = unsent;
    state->is_queued = true;
}

static void leave(struct link *link, struct call_state *state)
{
    struct call_state *unsent = link__shared(link)->unsent;

    DL_DELETE(unsent, state);
    link__shared(link)->unsent = unsent;
    state->is_queued = false;
}

/* Takes a call out. The link, when those behind it have to try now; else NULL. */
static struct link *leave_queue(struct pool_call *call)
{
    struct call_state *state = call__state(call);

    if (!state->is_queued)
        return NULL;
    struct link *link = pool__claim(&call->lease)->channel->link;
    bool was_first = link__shared(link)->unsent == state;
    leave(link, state);
    return was_first ? link : NULL;
}

/* ---- sending ---- */

static int send_now(struct pool_call *call)
{
    struct channel *channel = call->lease.channel;
    struct call_state *state = call__state(call);
    int error = link__send(channel, call->request, call->request_size);

    if (error)
        return error;
    state->stage = CALL_SENT;
    state->sent_at = pool__now(state->pool);
    state->silences = link__shared(channel->link)->silences;
    state->pool->call_bytes -= call->request_size;
    return 0;
}

/* Others may be near: its outcome is told later, as that of a lease that failed. */
static void refuse_later(struct pool_call *call, int error)
{
    pool_release(&call->lease, POOL_REUSE);
    call__state(call)->stage = CALL_WAITING;
    pool__fail_late(&call->lease, error);
}

static void send_queued(struct link *link)
{
    struct link_core *core = link__core(link);
    struct call_state *state;

    link__enter(core); /* the protocol may end it */
    while (link__is_open(link) && (state = link__shared(link)->unsent)) {
        struct pool_call *call = call__of_state(state);
        int error;
        leave(link, state);
        if (pool__claim(&call->lease)->state == CLAIM_LOST) /* it is told in a moment */
            continue;
        if ((error = send_now(call)) == LINKPOOL_EAGAIN) {
            queue_first(link, state);
            break;
        }
        if (error && error != LINKPOOL_ELOST)
            refuse_later(call, error);
    }
    link__leave(core);
}

/* One that is lost here is told to call__lost(), as any. */
static int transmit(struct pool_call *call)
{
    struct link *link = call->lease.channel->link;
    int error;

    call__state(call)->stage = CALL_SENDING;
    if (!link__is_shared(link))
        error = LINKPOOL_EOPTION;
    else if (link__shared(link)->unsent)
        error = LINKPOOL_EAGAIN;
    else
        error = send_now(call);
    if (error == LINKPOOL_EAGAIN)
        queue(link, call__state(call));
    if (!error || error == LINKPOOL_EAGAIN || error == LINKPOOL_ELOST)
        return 0;
    pool_release(&call->lease, POOL_REUSE);
    return error;
}

/* ---- what comes ---- */

/* Over all tries the worst: what was sent once may have been done. */
static void note_fate(struct pool_call *call, enum pool_fate fate)
{
    if (fate > call->fate)
        call->fate = fate;
}

static void take_answer(struct channel *channel, const void *bytes, size_t n, int status, uint32_t code)
{
    struct pool_call *call = call__of_lease(channel->lease);

    if (call__state(call)->stage == CALL_SENDING)
        return; /* to nothing that was asked: the protocol's fault, and ours to be safe from */
    link__note_answer(channel->link);
    call->answer = bytes;
    call->answer_size = n;
    call->code = code;
    if (status) {
        note_fate(call, POOL_SENT_NO_ANSWER);
        note_words(call, bytes, n);
    }
    pool_release(&call->lease, POOL_REUSE);
    call__tell(call, status);
}

static void on_message(struct channel *channel, const void *bytes, size_t n)
{
    take_answer(channel, bytes, n, 0, 0);
}

static void on_error(struct channel *channel, uint32_t code, const void *words, size_t n)
{
    take_answer(channel, words, n, LINKPOOL_EPEER, code);
}

/* @return whether it is still under way. */
static bool tell_part(struct pool_call *call, const void *bytes, size_t n)
{
    struct call_state *state = call__state(call);
    bool over = false;

    state->over = &over;
    state->is_telling = true;
    state->retries_left = 0; /* nobody gets bytes twice */
    call->answer_size += n;
    call->part(call, bytes, n);
    if (!over) /* else the call may be gone, or another one by now */
        state->is_telling = false;
    return !over;
}

static void on_part(struct channel *channel, const void *bytes, size_t n, bool last)
{
    struct pool_call *call = call__of_lease(channel->lease);

    if (call__state(call)->stage == CALL_SENDING)
        return;
    link__note_answer(channel->link);
    if ((n && !tell_part(call, bytes, n)) || !last)
        return;
    pool_release(&call->lease, POOL_REUSE);
    call__tell(call, 0);
}

static void on_writable(struct channel *channel)
{
    send_queued(channel->link);
}

static const struct channel_events events = {.writable = on_writable, .message = on_message, .error = on_error},
                                   events_in_pieces = {.writable = on_writable,
                                       .message = on_message,
                                       .error = on_error,
                                       .part = on_part};

int call__use(struct pool_call *call)
{
    call->attempts++;
    call->last_host = call->lease.host;
    link__listen(call->lease.channel, call->part ? &events_in_pieces : &events);
    return transmit(call);
}

/* ---- the end ---- */

static enum pool_fate fate_now(const struct pool_call *call)
{
    if (pool__claim(&call->lease)->state == CLAIM_LOST)
        return call->lease.fate;
    return link__fate(call->lease.channel, false);
}

void call__give_back(struct pool_call *call)
{
    struct call_state *state = call__state(call);
    struct link_core *core = &state->pool->core;
    struct link *freed;

    note_fate(call, fate_now(call));
    link__enter(core); /* the link is still looked at */
    freed = leave_queue(call);
    /* Discarded: the protocol knows that an answer may still come, and swallows it. */
    pool_release(&call->lease, state->stage == CALL_SENT ? POOL_DISCARD : POOL_REUSE);
    if (freed)
        send_queued(freed);
    link__leave(core);
}

/* A few in a row that did not answer, and the link is given up, however well its host is. What was sent before the last
 * of them ran out of time met the same silence: a burst that a pause of the peer's overtakes is one. And where bytes of
 * any answer have come since it was sent there was none: a peer may be busy with a large one, or slow. */
static void note_silence(struct link *link, uint16_t sent_after)
{
    unsigned most = pool__options(pool__host_of(link))->max_unanswered;

    if (sent_after != link__shared(link)->silences)
        return;
    link__shared(link)->silences++;
    if (most && link__is_open(link) && ++link__shared(link)->unanswered >= most)
        link__end(link, LINK_TIMED_OUT, 0);
}

void call__stop_waiting(struct pool_call *call)
{
    struct link *link = call->lease.channel->link;
    struct link_core *core = link__core(link);
    bool is_silent = call__state(call)->stage == CALL_SENT && !call->answer_size;
    uint16_t sent_after = call__state(call)->silences;

    link__enter(core); /* it may have been the last of a link that was led away */
    call__give_back(call);
    if (is_silent)
        note_silence(link, sent_after);
    link__leave(core);
}

void call__lost(struct pool_call *call)
{
    struct link *link = pool__claim(&call->lease)->channel->link, *freed = leave_queue(call);

    call->reason = call->lease.reason;
    call->system_errno = call->lease.system_errno;
    note_fate(call, call->lease.fate);
    if (link->owner->text && link->owner->last_reason == call->reason)
        note_words(call, link->owner->text, strlen(link->owner->text));
    if (call__state(call)->stage == CALL_SENT && link__is_open(link)) /* its peer ended this one alone */
        link__note_answer(link);
    if (freed)
        send_queued(freed);
}
