/* upward.c - a request on its way to the backend: sent as it comes, kept where it must wait. */
#include <linkpool/error.h>

#include "examples/lbproxy/session.h"
#include "examples/lbproxy/worker.h"

enum {
    READS_A_TURN = 4 /* so that one busy client does not starve the others */
};

/* The bytes from `at` on are for later: they stay where they are, or are copied from the scratch space. */
static bool leave(struct session *session, const char *at, size_t n)
{
    struct buffers *buffers = &session->client.worker->buffers;

    if (session->in != NULL) {
        session->in->start = (size_t)(at - session->in->bytes);
        return true; /* what is done with may still be sent from there: see free_input() */
    }
    return n == 0 || buffers_add(buffers, &session->in, at, n);
}

static void free_input(struct session *session)
{
    if (session->in != NULL && buffer_held(session->in) == 0) {
        buffers_give(&session->client.worker->buffers, session->in);
        session->in = NULL;
    }
}

bool upward_take(struct session *session, const char *at, size_t n, struct parts *parts)
{
    struct message *request = &session->request;
    size_t used = 0;

    do {
        parts_begin(parts);
        if (n > 0 && !request->whole && message_body(request, at, n, &used, parts) == MESSAGE_BAD)
            return own_refuse(session, &request->fault, "refused");
        if (session->exchange.request_chunked)
            parts_chunk(parts, request->whole, request->trailer, request->trailer_n);
        else
            parts_plain(parts);
        at += used;
        n -= used;
        used = 0;
        if (n > 0 && !request->whole && !upward_keep(session, parts))
            return exchange_cut(session, "full");
    } while (n > 0 && !request->whole);
    if (!leave(session, at, n))
        return exchange_cut(session, "full");
    return true;
}

bool upward_keep(struct session *session, struct parts *parts)
{
    for (int i = parts->first; i < parts->last; i++)
        if (!buffers_add(&session->client.worker->buffers, &session->up, parts->iov[i].iov_base, parts->iov[i].iov_len))
            return false;
    free_input(session);
    return true;
}

static void moved(struct session *session)
{
    bool is_sent = session->request.whole && buffer_held(session->up) == 0;

    clock_start(&session->client, is_sent && !session->exchange.answered ? CLOCK_ANSWER : CLOCK_BODY);
}

/* The kernel took `sent` bytes, of `up` first. */
static bool account(struct session *session, struct parts *parts, size_t sent)
{
    size_t held = buffer_held(session->up);
    size_t of_up = sent < held ? sent : held;

    parts_skip(parts, sent);
    session->counts->bytes_to += sent;
    if (session->up != NULL)
        session->up->start += of_up;
    parts_skip(parts, held - of_up); /* those stand in `up` already */
    if (!upward_keep(session, parts))
        return exchange_cut(session, "full");
    if (buffer_held(session->up) == 0 && !session->exchange.repeatable) {
        buffers_give(&session->client.worker->buffers, session->up);
        session->up = NULL;
    }
    return true;
}

/* The backend takes no more, but what it said before may be unread yet: an early answer, most of all. */
static bool stop_sending(struct session *session)
{
    if (session->lease.bytes_sent == 0)
        return exchange_lost(session, "backend_reset");
    session->exchange.deaf = true;
    if (session->up != NULL)
        session->up->start = session->up->end; /* a second try begins at 0 */
    return buffer_held(session->down) > 0 || downward_pump(session);
}

bool upward_send(struct session *session, struct parts *parts)
{
    size_t held = buffer_held(session->up);
    ssize_t sent;

    if (held > 0)
        parts_put_first(parts, session->up->bytes + session->up->start, held);
    if (parts->first == parts->last) {
        free_input(session);
        return true;
    }
    sent = channel_writev(session->lease.channel, parts->iov + parts->first, parts->last - parts->first);
    if (!account(session, parts, sent > 0 ? (size_t)sent : 0))
        return false;
    if (sent < 0 && sent != LINKPOOL_EAGAIN)
        return stop_sending(session);
    if (sent > 0 || session->client.clock != CLOCK_BODY) /* a link that takes nothing has its time too */
        moved(session);
    return true;
}

/* The rest of the body, from `in` or anew from the socket. Returns false when the session is over; *dry: no more. */
static bool pump_once(struct session *session, bool *dry)
{
    struct worker *worker = session->client.worker;
    struct parts *parts = &worker->parts;
    ssize_t got;

    if (buffer_held(session->in) > 0) {
        if (!upward_take(session, session->in->bytes + session->in->start, buffer_held(session->in), parts))
            return false;
    } else {
        got = client_read(&session->client, worker->scratch, BUFFER_SIZE);
        *dry = got < BUFFER_SIZE;
        if (got == LINKPOOL_EAGAIN)
            return true;
        if (got <= 0)
            return exchange_cut(session, "client_gone");
        if (!upward_take(session, worker->scratch, (size_t)got, parts))
            return false;
    }
    return session->lease.channel == NULL || upward_send(session, parts);
}

/* Nothing can be done with it now: it waits, and an end of file tells that the client has gone. */
static bool gather(struct session *session)
{
    struct worker *worker = session->client.worker;
    ssize_t got = client_read(&session->client, worker->scratch, BUFFER_SMALL - buffer_held(session->in));

    if (got == LINKPOOL_EAGAIN)
        return true;
    if (got <= 0)
        return exchange_cut(session, "client_gone");
    session->head_is_partial = false;
    return buffers_add(&worker->buffers, &session->in, worker->scratch, (size_t)got) || exchange_cut(session, "full");
}

/* Nobody reads the request any more, but a client may not read its answer before it has said all. */
static bool drop(struct session *session)
{
    ssize_t got = client_read(&session->client, session->client.worker->scratch, BUFFER_SIZE);

    if (got != LINKPOOL_EAGAIN)
        session->dropped += got > 0 ? (size_t)got : SESSION_MAX_DROPPED; /* no more comes */
    return true;
}

bool upward_pump(struct session *session)
{
    bool dry = false;

    if (!session->request.whole && (session->exchange.answer_whole || session->exchange.deaf))
        return drop(session);
    if (session->request.whole || session->lease.channel == NULL || buffer_held(session->up) > 0)
        return gather(session);
    for (int i = 0; i < READS_A_TURN && !dry; i++) {
        if (!pump_once(session, &dry))
            return false;
        if (session->phase != SESSION_EXCHANGE || session->request.whole || session->lease.channel == NULL ||
            buffer_held(session->up) > 0 || session->exchange.deaf)
            return true;
    }
    return true;
}
