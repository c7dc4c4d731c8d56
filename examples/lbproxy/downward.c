/* downward.c - an answer on its way to the client: interim ones, the head, the body, its end. */
#include <linkpool/error.h>
#include <string.h>

#include "examples/lbproxy/counts.h"
#include "examples/lbproxy/options.h"
#include "examples/lbproxy/session.h"
#include "examples/lbproxy/worker.h"

enum {
    READS_A_TURN = 4,
    MAX_INTERIM = 16 /* 1xx before an answer */
};

static void free_back(struct session *session)
{
    buffers_give(&session->client.worker->buffers, session->back);
    session->back = NULL;
}

/* A head that is not whole yet. */
static bool await_head(struct session *session, const char *at, size_t n)
{
    if (session->back != NULL)
        session->back->start = (size_t)(at - session->back->bytes);
    else if (!buffers_add(&session->client.worker->buffers, &session->back, at, n))
        return exchange_cut(session, "full");
    return true;
}

bool downward_put(struct session *session, const char *bytes, size_t n)
{
    return buffers_add(&session->client.worker->buffers, &session->down, bytes, n);
}

/* Composes a head behind what stands in `down`, which is nothing, but for an interim answer the client has not taken.
 */
static bool put_head(struct session *session, const struct head *head, size_t head_n, const struct answer_terms *terms)
{
    struct buffers *buffers = &session->client.worker->buffers;
    struct buffer *buffer = buffers_take(buffers, head_n + COMPOSE_ROOM);
    bool fits;

    if (buffer == NULL)
        return false;
    buffer->end = compose_answer(buffer->bytes, buffer->room, head, terms);
    fits = buffer->end > 0;
    if (session->down == NULL && fits) {
        session->down = buffer;
        return true;
    }
    fits = fits && downward_put(session, buffer->bytes, buffer->end);
    buffers_give(buffers, buffer);
    return fits;
}

bool downward_send(struct session *session, struct parts *parts)
{
    struct buffers *buffers = &session->client.worker->buffers;
    size_t held = buffer_held(session->down);
    size_t taken, of_down;
    ssize_t sent;

    if (held > 0)
        parts_put_first(parts, session->down->bytes + session->down->start, held);
    if (parts->first == parts->last)
        return true;
    sent = client_writev(&session->client, parts->iov + parts->first, parts->last - parts->first);
    if (sent < 0 && sent != LINKPOOL_EAGAIN)
        return exchange_cut(session, "client_gone");
    taken = sent > 0 ? (size_t)sent : 0;
    of_down = taken < held ? taken : held;
    if (session->down != NULL)
        session->down->start += of_down;
    parts_skip(parts, taken + held - of_down); /* the rest of `down` stands there already */
    for (int i = parts->first; i < parts->last; i++)
        if (!downward_put(session, parts->iov[i].iov_base, parts->iov[i].iov_len))
            return exchange_cut(session, "full");
    if (session->down != NULL && buffer_held(session->down) == 0) {
        buffers_give(buffers, session->down);
        session->down = NULL;
    }
    if (taken > 0 && session->exchange.answered) {
        session->exchange.spoken = true;
        clock_start(&session->client, CLOCK_BODY);
    }
    return true;
}

/* The head of an answer stands in `down`, and not a byte of it has been told: it never was. */
static void take_back(struct session *session)
{
    buffers_give(&session->client.worker->buffers, session->down);
    session->down = NULL;
    session->exchange.answered = false;
    session->answered_by = NULL;
}

/* The backend has broken the rules. */
static bool broken(struct session *session)
{
    const char *why = session->answer.fault.text;

    if (session->exchange.spoken)
        return exchange_cut(session, "cut");
    if (session->exchange.answered)
        take_back(session);
    return own_answer(session, 502, "backend_broken", why);
}

static bool break_with(struct session *session, const char *why)
{
    session->answer.fault = (struct fault){502, why};
    return broken(session);
}

/* ---- interim answers ---- */

/* 101: what both sides have said beyond it goes through the tunnel. The session's life is the tunnel's now. */
static bool open_tunnel(struct session *session, const char *at, size_t n)
{
    struct tunnel *tunnel = &session->tunnel;

    if (n > 0 && !downward_put(session, at, n))
        return exchange_cut(session, "full");
    free_back(session);
    session->exchange.outcome = "upgraded";
    session->exchange.status = 101;
    counts_request(session->counts, 101, session->exchange.waited,
        pool_now(session->client.worker->pool) - session->exchange.started);
    session->counts->bytes_from -= n; /* the tunnel counts them as they go on */
    session->phase = SESSION_TUNNEL;
    tunnel->counts = session->counts;
    tunnel->flows[UP].held = session->in;
    tunnel->flows[DOWN].held = session->down;
    session->in = session->down = NULL;
    tunnel_open(tunnel);
    return false;
}

static bool pass_interim(struct session *session, const struct head *head, size_t head_n)
{
    struct answer_terms terms = {session->exchange.minor, false, FRAMING_NONE};
    struct parts *parts = &session->client.worker->parts;

    if (++session->exchange.interim > MAX_INTERIM)
        return break_with(session, "too many interim answers");
    message_end(&session->answer);
    message_begin(&session->answer, session->answer.kind);
    if (session->request.whole)
        clock_start(&session->client, CLOCK_ANSWER);
    if (session->exchange.minor == 0)
        return true;
    if (!put_head(session, head, head_n, &terms))
        return exchange_cut(session, "full");
    if (head->status == 101)
        return true; /* it goes with what follows it */
    parts_begin(parts);
    parts_plain(parts);
    return downward_send(session, parts);
}

/* ---- the answer ---- */

static bool answer_over(struct session *session, size_t behind)
{
    struct exchange *exchange = &session->exchange;

    exchange->answer_whole = true;
    exchange_release(session, exchange->answer_keeps && behind == 0 && session->request.whole &&
                                  buffer_held(session->up) == 0 && !exchange->deaf);
    return buffer_held(session->down) > 0 || exchange_end(session);
}

static void frame(struct session *session, struct parts *parts)
{
    struct message *answer = &session->answer;

    if (session->exchange.framing == FRAMING_CHUNKED)
        parts_chunk(parts, answer->whole, answer->trailer, answer->trailer_n);
    else
        parts_plain(parts);
    session->exchange.told += parts->bytes;
}

static bool take_body(struct session *session, const char *at, size_t n)
{
    struct parts *parts = &session->client.worker->parts;
    struct message *answer = &session->answer;
    size_t used;

    do {
        used = 0;
        parts_begin(parts);
        if (n > 0 && !answer->whole && message_body(answer, at, n, &used, parts) == MESSAGE_BAD)
            return broken(session);
        frame(session, parts);
        if (!downward_send(session, parts))
            return false;
        at += used;
        n -= used;
    } while (n > 0 && !answer->whole);
    free_back(session);
    return !answer->whole || answer_over(session, n);
}

static bool has_never_a_body(const struct session *session, const struct head *head)
{
    return session->answer.kind == MESSAGE_ANSWER_TO_HEAD || head->status == 204 || head->status == 304;
}

static bool begin_answer(struct session *session, const struct head *head, size_t head_n, size_t behind)
{
    struct exchange *exchange = &session->exchange;
    struct answer_terms terms = {.client_minor = exchange->minor};

    if (session->answer.whole && behind > 0 && has_never_a_body(session, head))
        return break_with(session, "bytes behind an answer that has no body");
    clock_start(&session->client, CLOCK_BODY);
    session->answered_by = session->counts;
    exchange->answered = true;
    exchange->spoken = buffer_held(session->down) > 0; /* the rest of an interim answer */
    exchange->status = head->status;
    exchange->framing = compose_framing(head, exchange->minor);
    exchange->answer_keeps =
        head->keep_alive && head->framing != FRAMING_UNTIL_CLOSE && !head->identity && !exchange->identity;
    exchange->close = !exchange->keep_alive || !session->request.whole || session->client.worker->draining ||
                      exchange->framing == FRAMING_UNTIL_CLOSE;
    terms.close = exchange->close;
    terms.framing = exchange->framing;
    if (!put_head(session, head, head_n, &terms))
        return exchange_cut(session, "full");
    return true;
}

/* The backend has answered: from now on nothing is sent twice. */
static void forget_request(struct session *session)
{
    if (session->up == NULL || buffer_held(session->up) > 0)
        return;
    buffers_give(&session->client.worker->buffers, session->up);
    session->up = NULL;
}

static bool take_head(struct session *session, const struct head *head, size_t head_n, size_t behind)
{
    return head->status < 200 ? pass_interim(session, head, head_n) : begin_answer(session, head, head_n, behind);
}

static bool take_answer(struct session *session, const char *at, size_t n)
{
    struct worker *worker = session->client.worker;
    struct message *answer = &session->answer;
    size_t head_n;

    while (!session->exchange.answered) {
        enum message_step step = message_scan(answer, at, n, worker->options->max_header, &head_n);

        if (step == MESSAGE_MORE)
            return await_head(session, at, n);
        if (step == MESSAGE_BAD || message_head(answer, at, head_n, &worker->head) == MESSAGE_BAD)
            return broken(session);
        at += head_n;
        n -= head_n;
        if (worker->head.status == 101 && (!session->exchange.upgrade || buffer_held(session->up) > 0))
            return break_with(session, "another protocol, which nobody has asked for");
        if (!take_head(session, &worker->head, head_n, n))
            return false;
        if (session->lease.channel == NULL)
            return true; /* it broke the rules, and was answered in its place */
        if (worker->head.status == 101)
            return open_tunnel(session, at, n);
    }
    return take_body(session, at, n);
}

/* The backend has closed, or broken the connection. */
static bool take_end(struct session *session, bool in_order)
{
    struct parts *parts = &session->client.worker->parts;

    if (!session->exchange.answered)
        return exchange_lost(session, in_order ? "backend_closed" : "backend_reset");
    if (!in_order || message_close(&session->answer) != MESSAGE_WHOLE)
        return exchange_cut(session, "cut");
    parts_begin(parts);
    frame(session, parts);
    return downward_send(session, parts) && answer_over(session, 0);
}

static bool pump_once(struct session *session, bool *dry)
{
    struct worker *worker = session->client.worker;
    char *at = worker->scratch;
    size_t room = BUFFER_SIZE;
    ssize_t got;

    if (session->back != NULL) {
        room = buffers_make_room(&worker->buffers, &session->back);
        at = session->back->bytes + session->back->end;
    }
    got = channel_read(session->lease.channel, at, room);
    *dry = got < (ssize_t)room;
    if (got == LINKPOOL_EAGAIN)
        return true;
    if (got <= 0)
        return take_end(session, got == 0);
    session->counts->bytes_from += (uint64_t)got;
    forget_request(session);
    if (session->back == NULL)
        return take_answer(session, at, (size_t)got);
    session->back->end += (size_t)got;
    return take_answer(session, session->back->bytes + session->back->start, buffer_held(session->back));
}

bool downward_pump(struct session *session)
{
    bool dry = false;

    for (int i = 0; i < READS_A_TURN && !dry; i++) {
        if (!pump_once(session, &dry))
            return false;
        if (session->lease.channel == NULL || buffer_held(session->down) > 0)
            return true;
    }
    return true;
}
