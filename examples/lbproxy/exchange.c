/* exchange.c - the lease of a request, from the wish to the return, and what is known of it all at the end. */
#include <linkpool/error.h>
#include <stdlib.h>
#include <string.h>

#include "examples/lbproxy/access_log.h"
#include "examples/lbproxy/counts.h"
#include "examples/lbproxy/session.h"
#include "examples/lbproxy/worker.h"

enum {
    MAX_TRIES = 2
};

/* ---- the link ---- */

static void on_channel_readable(struct channel *channel)
{
    struct session *session = channel_data(channel);

    if (downward_pump(session))
        session_go_on(session);
}

static void on_channel_writable(struct channel *channel)
{
    struct session *session = channel_data(channel);
    struct parts *parts = &session->client.worker->parts;

    parts_begin(parts);
    parts_plain(parts);
    if (upward_send(session, parts))
        session_go_on(session);
}

static const struct channel_events channel_events = {.readable = on_channel_readable, .writable = on_channel_writable};

/* Bytes that nobody has asked for, or an end, may have come since the loop last polled, and would be taken for the
 * answer: a turn under full load lasts milliseconds. Returns what it was, for the log; NULL: the link is quiet. */
static const char *find_noise(struct session *session)
{
    char byte = 0;
    ssize_t got = channel_read(session->lease.channel, &byte, 1);

    if (got == LINKPOOL_EAGAIN)
        return NULL;
    return got > 0 ? "backend_broken" : got == 0 ? "backend_closed" : "backend_reset";
}

/* The link is there. */
static bool join(struct session *session, struct parts *parts)
{
    struct exchange *exchange = &session->exchange;
    const char *noise;

    exchange->backend = pool_host_address(session->lease.host);
    exchange->reused = session->lease.reused;
    session->counts = worker_backend(session->client.worker, session->lease.host);
    session->counts->leases++;
    session->counts->held++;
    session->channel_wants = LINKPOOL_READ;
    exchange->deaf = false;
    message_begin(&session->answer, exchange->method == HTTP_HEAD ? MESSAGE_ANSWER_TO_HEAD : MESSAGE_ANSWER);
    channel_set_data(session->lease.channel, session);
    channel_watch(session->lease.channel, &channel_events, LINKPOOL_READ);
    noise = find_noise(session);
    if (noise != NULL)
        return upward_keep(session, parts) ? exchange_lost(session, noise) : exchange_cut(session, "full");
    return upward_send(session, parts);
}

static void on_lease_done(struct pool_lease *lease)
{
    struct session *session = lease->data;
    struct parts *parts = &session->client.worker->parts;
    bool is_there;

    session->exchange.waited += pool_now(session->client.worker->pool) - session->exchange.asked;
    if (lease->status == POOL_READY) {
        parts_begin(parts);
        parts_plain(parts);
        is_there = join(session, parts);
    } else {
        is_there = own_unserved(session);
    }
    if (is_there)
        session_go_on(session);
}

/* The pool has gone. */
static void on_lease_closed(struct pool_lease *lease)
{
    struct session *session = lease->data;

    session->counts->held--;
    session->counts = NULL;
    client_end(&session->client, CLIENT_STOPPED);
}

bool exchange_ask(struct session *session, struct parts *parts)
{
    struct exchange *exchange = &session->exchange;
    struct worker *worker = session->client.worker;
    int status;

    session->lease.done = on_lease_done;
    session->lease.closed = on_lease_closed;
    session->lease.flags = exchange->tries > 0 ? POOL_FRESH | POOL_WAIT_FOR_READY : 0;
    if (exchange->tries == 0)
        session->lease.avoid = NULL;
    exchange->tries++;
    exchange->asked = pool_now(worker->pool);
    status = pool_acquire_target(worker->target, &session->lease);
    if (status == POOL_READY)
        return join(session, parts);
    if (!upward_keep(session, parts))
        return exchange_cut(session, "full");
    if (status != POOL_PENDING)
        return own_unserved(session);
    clock_start(&session->client, CLOCK_NONE);
    return true;
}

void exchange_release(struct session *session, bool clean)
{
    if (session->counts == NULL) {
        pool_cancel(&session->lease); /* where it is not waiting, nothing happens */
        return;
    }
    session->counts->held--;
    session->counts = NULL;
    pool_release(&session->lease, clean ? POOL_REUSE : POOL_DISCARD);
}

static const char *words_for(const char *outcome)
{
    if (strcmp(outcome, "backend_broken") == 0)
        return "the backend has spoken before it was asked";
    return strcmp(outcome, "backend_reset") == 0 ? "the backend has reset the connection without an answer"
                                                 : "the backend has closed the connection without an answer";
}

/* Sent twice is only what nobody has seen, or what may be asked twice and was not answered. */
bool exchange_lost(struct session *session, const char *outcome)
{
    const struct pool_lease *lease = &session->lease;
    struct exchange *exchange = &session->exchange;
    struct parts *parts = &session->client.worker->parts;
    bool again = lease->bytes_sent == 0 || (exchange->repeatable && lease->bytes_received == 0);

    if (exchange->answered)
        return exchange_cut(session, "cut");
    if (!again || exchange->tries >= MAX_TRIES)
        return own_answer(session, 502, outcome, words_for(outcome));
    session->counts->retries++;
    session->lease.avoid = lease->host; /* for it may be dying: its listener outlives its connections by a moment */
    exchange_release(session, false);
    buffers_give(&session->client.worker->buffers, session->back); /* of the link that was lost */
    session->back = NULL;
    if (session->up != NULL)
        session->up->start = 0;
    parts_begin(parts);
    parts_plain(parts);
    return exchange_ask(session, parts);
}

/* ---- the end ---- */

static void write_log(const struct session *session)
{
    const struct exchange *exchange = &session->exchange;
    struct access_entry entry = {
        .client = session->address,
        .method = exchange->target == NULL ? NULL : llhttp_method_name(exchange->method),
        .target = exchange->target,
        .target_n = exchange->target_n,
        .status = exchange->status,
        .bytes = exchange->told,
        .waited = exchange->waited,
        .total = pool_now(session->client.worker->pool) - exchange->started,
        .backend = exchange->backend,
        .reused = exchange->backend == NULL ? -1 : exchange->reused,
        .tries = exchange->tries,
        .outcome = exchange->outcome,
    };

    access_log_write(session->client.worker->log, &entry);
}

static void count(const struct session *session)
{
    const struct exchange *exchange = &session->exchange;
    struct worker *worker = session->client.worker;

    worker->counts.requests++;
    if (session->answered_by != NULL)
        counts_request(
            session->answered_by, exchange->status, exchange->waited, pool_now(worker->pool) - exchange->started);
}

void exchange_forget(struct session *session)
{
    struct exchange *exchange = &session->exchange;
    struct buffers *buffers = &session->client.worker->buffers;

    if (session->phase == SESSION_REQUEST || session->phase == SESSION_LINGER)
        return;
    if (exchange->outcome == NULL)
        exchange->outcome = exchange->answer_whole ? "ok" : "stopped";
    count(session);
    if (session->client.worker->log != NULL)
        write_log(session);
    buffers_give(buffers, session->up);
    buffers_give(buffers, session->back);
    session->up = session->back = NULL;
    session->answered_by = NULL;
    free(exchange->target);
    memset(exchange, 0, sizeof *exchange);
    message_end(&session->answer);
    message_end(&session->request);
}

bool exchange_end(struct session *session)
{
    bool is_over = session->exchange.close || session->client.worker->draining;
    bool has_more = !session->request.whole || session->in != NULL || (is_over && client_has_unread(&session->client));

    exchange_forget(session);
    message_begin(&session->request, MESSAGE_REQUEST);
    session->phase = SESSION_REQUEST;
    if (!is_over) {
        clock_start(&session->client, CLOCK_REQUEST);
        return true;
    }
    if (!has_more) {
        client_end(&session->client, CLIENT_SERVED);
        return false;
    }
    session->phase = SESSION_LINGER;
    client_shutdown(&session->client); /* closed now, what has come unread would reset what is on its way */
    clock_start(&session->client, CLOCK_LINGER);
    return true;
}

bool exchange_cut(struct session *session, const char *outcome)
{
    struct exchange *exchange = &session->exchange;

    exchange->outcome = outcome;
    if (!exchange->spoken && session->phase == SESSION_EXCHANGE) {
        if (!exchange->answered)
            counts_refuse(&session->client.worker->counts, 499);
        exchange->status = 499;
        session->answered_by = NULL;
    }
    client_end(&session->client, CLIENT_BROKEN);
    return false;
}
