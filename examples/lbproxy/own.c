/* own.c - lbproxy's own answers: a line that says why, in linkpool's words where it is about a backend. */
#include <linkpool/error.h>
#include <stdio.h>
#include <string.h>

#include "examples/lbproxy/counts.h"
#include "examples/lbproxy/options.h"
#include "examples/lbproxy/session.h"
#include "examples/lbproxy/worker.h"

/* Seconds until the first backend is tried again; 0: none of them will be. */
static double retry_after(const struct session *session)
{
    const struct worker *worker = session->client.worker;
    double least = 0;

    for (unsigned i = 0; i < worker->options->n_backends; i++) {
        struct pool_host_stats stats;

        pool_host_stats(pool_target_host(worker->target, i), &stats, sizeof stats);
        if (stats.retry_in > 0 && (least <= 0 || stats.retry_in < least))
            least = stats.retry_in;
    }
    return least;
}

static size_t compose(struct session *session, unsigned status, const char *why, char *out, size_t room)
{
    const struct exchange *exchange = &session->exchange;
    struct own_answer answer = {
        .status = status,
        .line = why,
        .retry_after = status == 503 ? retry_after(session) : 0,
        .allow = status == 405 ? "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS" : NULL,
        .client_minor = exchange->minor,
        .close = exchange->close,
        .head = exchange->method == HTTP_HEAD,
    };

    return compose_own(out, room, &answer);
}

bool own_answer(struct session *session, unsigned status, const char *outcome, const char *why)
{
    struct worker *worker = session->client.worker;
    struct exchange *exchange = &session->exchange;
    struct parts *parts = &worker->parts;
    char out[1024];
    size_t n;

    exchange_release(session, false);
    exchange->status = status;
    exchange->outcome = outcome;
    exchange->answered = exchange->answer_whole = true;
    exchange->close |= !exchange->keep_alive || !session->request.whole || worker->draining;
    counts_refuse(&worker->counts, status);
    clock_start(&session->client, CLOCK_BODY);
    buffers_give(&worker->buffers, session->up);
    session->up = NULL;
    n = compose(session, status, why, out, sizeof out);
    if (n == 0 || !downward_put(session, out, n))
        return exchange_cut(session, outcome);
    exchange->told = exchange->method == HTTP_HEAD ? 0 : strlen(why) + 1;
    parts_begin(parts);
    parts_plain(parts);
    if (!downward_send(session, parts))
        return false;
    return buffer_held(session->down) > 0 || exchange_end(session);
}

bool own_refuse(struct session *session, const struct fault *fault, const char *outcome)
{
    struct exchange *exchange = &session->exchange;

    if (exchange->answered)
        return exchange_cut(session, "cut");
    if (session->phase == SESSION_REQUEST) {
        session->phase = SESSION_EXCHANGE;
        exchange->minor = 1;
        exchange->started = pool_now(session->client.worker->pool);
        if (session->address[0] == '\0')
            socket_peer_host(session->client.io.fd, session->address);
    }
    exchange->close = true;
    session->request.whole = false; /* where it ends, nobody knows */
    return own_answer(session, fault->status, outcome, fault->text);
}

static const char *outcome_of(int status)
{
    switch (status) {
    case LINKPOOL_ETIMEDOUT:
        return "wait_timeout";
    case LINKPOOL_EFULL:
    case LINKPOOL_ENOMEM:
        return "full";
    case LINKPOOL_ECLOSED:
        return "stopping";
    default:
        return "unavailable";
    }
}

bool own_unserved(struct session *session)
{
    struct worker *worker = session->client.worker;
    int status = session->lease.status;
    char why[512];

    worker->counts.no_backend++;
    if (session->lease.reason == LINK_NO_DESCRIPTORS)
        listener_short(&worker->listener);
    pool_explain(&session->lease, why, sizeof why);
    return own_answer(session, status == LINKPOOL_ETIMEDOUT ? 504 : 503, outcome_of(status), why);
}
