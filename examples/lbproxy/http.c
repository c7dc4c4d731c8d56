/* http.c - http mode: a session from its first request to its end. */
#include <linkpool/error.h>
#include <string.h>

#include "examples/lbproxy/client.h"
#include "examples/lbproxy/mode.h"
#include "examples/lbproxy/options.h"
#include "examples/lbproxy/session.h"
#include "examples/lbproxy/worker.h"

/* ---- requests ---- */

static void make_request_id(struct worker *worker, char id[REQUEST_ID_SIZE])
{
    static const char digits[] = "0123456789abcdef";

    for (int word = 0; word < 2; word++) {
        uint64_t bits = worker_draw(worker);

        for (int i = 0; i < 16; i++, bits >>= 4)
            id[16 * word + i] = digits[bits & 15];
    }
    id[REQUEST_ID_SIZE - 1] = '\0';
}

/* Where a client has named no host, what it has dialled is the truest name. */
static const char *authority_of(const struct session *session, const struct head *head, char text[SOCKET_TEXT])
{
    if (head->host.n > 0)
        return "";
    socket_name(session->client.io.fd, text);
    return strncmp(text, "unix:", 5) == 0 ? "localhost" : text;
}

static bool compose(struct session *session, const struct head *head, size_t head_n)
{
    struct worker *worker = session->client.worker;
    char id[REQUEST_ID_SIZE], authority[SOCKET_TEXT];
    struct request_terms terms = {session->address, authority_of(session, head, authority), id};

    make_request_id(worker, id);
    session->up = buffers_take(&worker->buffers, head_n + COMPOSE_ROOM);
    if (session->up == NULL)
        return false;
    session->up->end = compose_request(session->up->bytes, session->up->room, head, &terms);
    return session->up->end > 0;
}

static bool is_repeatable(const struct head *head)
{
    return head->framing == FRAMING_NONE && (head->method == HTTP_GET || head->method == HTTP_HEAD ||
                                                head->method == HTTP_OPTIONS || head->method == HTTP_TRACE);
}

static void remember(struct session *session, const struct head *head)
{
    struct exchange *exchange = &session->exchange;

    exchange->method = head->method;
    exchange->minor = head->minor;
    exchange->keep_alive = head->keep_alive;
    exchange->upgrade = head->upgrade;
    exchange->repeatable = is_repeatable(head);
    exchange->identity = head->identity;
    exchange->request_chunked = head->framing == FRAMING_CHUNKED;
    exchange->started = pool_now(session->client.worker->pool);
    if (session->client.worker->log == NULL)
        return;
    exchange->target = strndup(head->target.at, head->target.n);
    exchange->target_n = exchange->target == NULL ? 0 : head->target.n;
}

/* A head that is not whole yet: it waits in a buffer for the rest, for so long and no longer. */
static bool await_head(struct session *session, const char *at, size_t n)
{
    session->head_is_partial = true;
    if (session->in == NULL && !buffers_add(&session->client.worker->buffers, &session->in, at, n))
        return exchange_cut(session, NULL);
    if (session->client.clock != CLOCK_HEAD)
        clock_start(&session->client, CLOCK_HEAD);
    return true;
}

static bool begin_exchange(struct session *session, const struct head *head, size_t head_n, const char *rest, size_t n)
{
    struct parts *parts = &session->client.worker->parts;

    session->phase = SESSION_EXCHANGE;
    remember(session, head);
    if (session->address[0] == '\0')
        socket_peer_host(session->client.io.fd, session->address);
    if (!compose(session, head, head_n)) {
        session->exchange.close = true; /* what is behind the head was not kept */
        return own_answer(session, 503, "full", "out of memory");
    }
    if (!upward_take(session, rest, n, parts))
        return false;
    if (session->phase != SESSION_EXCHANGE || session->exchange.answered)
        return true; /* refused */
    return exchange_ask(session, parts);
}

/* Takes a request from the first `n` bytes there are. */
static bool take_request(struct session *session, const char *at, size_t n)
{
    struct worker *worker = session->client.worker;
    struct message *request = &session->request;
    size_t head_n = 0;
    enum message_step step = message_scan(request, at, n, worker->options->max_header, &head_n);

    if (step == MESSAGE_MORE)
        return await_head(session, at, n);
    session->head_is_partial = false;
    if (step == MESSAGE_WHOLE) {
        step = message_head(request, at, head_n, &worker->head);
        session->exchange.method = worker->head.method; /* a HEAD is refused without a body */
    }
    if (step == MESSAGE_BAD)
        return own_refuse(session, &request->fault, "refused");
    return begin_exchange(session, &worker->head, head_n, at + head_n, n - head_n);
}

static bool read_request(struct session *session)
{
    struct worker *worker = session->client.worker;
    char *into = worker->scratch;
    size_t room = BUFFER_SIZE;
    ssize_t got;

    if (session->in != NULL) {
        room = buffers_make_room(&worker->buffers, &session->in);
        into = session->in->bytes + session->in->end;
    }
    got = client_read(&session->client, into, room);
    if (got == LINKPOOL_EAGAIN)
        return true;
    if (got <= 0) {
        client_end(&session->client, got == 0 && session->in == NULL ? CLIENT_SERVED : CLIENT_BROKEN);
        return false;
    }
    if (session->in == NULL)
        return take_request(session, into, (size_t)got);
    session->in->end += (size_t)got;
    return take_request(session, session->in->bytes + session->in->start, buffer_held(session->in));
}

/* ---- what is needed next ---- */

static bool is_up_sent(const struct session *session)
{
    return buffer_held(session->up) == 0;
}

/* While a request is under way its client is read for its body, or else to hear it go away, and what it says besides
 * waits in a small buffer: when that is full, in the kernel. */
static bool reads_client(const struct session *session)
{
    if (session->phase != SESSION_EXCHANGE)
        return true;
    if (session->exchange.answer_whole || session->exchange.deaf) /* should it go, that is heard in writing */
        return !session->request.whole && session->dropped < SESSION_MAX_DROPPED;
    if (!session->request.whole && session->lease.channel != NULL && buffer_held(session->in) == 0)
        return is_up_sent(session);
    return buffer_held(session->in) < BUFFER_SMALL;
}

static void settle(struct session *session)
{
    size_t down = buffer_held(session->down);
    unsigned wants;

    if (session->phase == SESSION_TUNNEL)
        return;
    client_want(&session->client, (reads_client(session) ? EV_READ : 0) | (down > 0 ? EV_WRITE : 0));
    if (session->lease.channel == NULL)
        return;
    wants = (down == 0 ? LINKPOOL_READ : 0u) | (is_up_sent(session) ? 0u : LINKPOOL_WRITE);
    if (wants != session->channel_wants)
        channel_want(session->lease.channel, session->channel_wants = wants);
}

/* Bytes of the client's wait in `in`, and no event will tell of them: a request, or more of a body whose link has come
 * or has room again. */
static bool has_input(const struct session *session)
{
    if (buffer_held(session->in) == 0)
        return false;
    if (session->phase == SESSION_REQUEST)
        return !session->head_is_partial;
    return session->phase == SESSION_EXCHANGE && !session->request.whole && session->lease.channel != NULL &&
           is_up_sent(session) && !session->exchange.deaf;
}

static bool take_input(struct session *session)
{
    if (session->phase == SESSION_REQUEST)
        return take_request(session, session->in->bytes + session->in->start, buffer_held(session->in));
    return upward_pump(session);
}

void session_go_on(struct session *session)
{
    while (has_input(session))
        if (!take_input(session))
            return;
    settle(session);
}

/* ---- the client's side ---- */

static bool flush(struct session *session)
{
    struct parts *parts = &session->client.worker->parts;

    parts_begin(parts);
    parts_plain(parts);
    if (!downward_send(session, parts))
        return false;
    if (session->phase == SESSION_EXCHANGE && session->exchange.answer_whole && buffer_held(session->down) == 0)
        return exchange_end(session);
    return true;
}

static bool linger(struct session *session)
{
    ssize_t got = client_read(&session->client, session->client.worker->scratch, BUFFER_SIZE);

    if (got == LINKPOOL_EAGAIN)
        return true;
    session->dropped += got > 0 ? (size_t)got : 0;
    if (got > 0 && session->dropped < SESSION_MAX_DROPPED)
        return true;
    client_end(&session->client, got == 0 ? CLIENT_SERVED : CLIENT_BROKEN);
    return false;
}

static bool read_client(struct session *session)
{
    switch (session->phase) {
    case SESSION_REQUEST:
        return read_request(session);
    case SESSION_EXCHANGE:
        return upward_pump(session);
    default:
        return linger(session);
    }
}

static void ready(struct client *client, int events)
{
    struct session *session = (struct session *)client;

    if (session->phase == SESSION_TUNNEL) {
        tunnel_ready(&session->tunnel, events);
        return;
    }
    if (events & EV_WRITE && !flush(session))
        return;
    if (events & EV_READ && !read_client(session))
        return;
    session_go_on(session);
}

static void begin(struct client *client)
{
    struct session *session = (struct session *)client;

    session->tunnel.client = client;
    session->tunnel.lease = &session->lease;
    session->lease.data = session;
    message_begin(&session->request, MESSAGE_REQUEST);
    clock_start(client, CLOCK_HEAD);
    client_want(client, EV_READ);
}

/* ---- time-outs ---- */

static const struct fault head_is_slow = {408, "the request's head did not come in time"};
static const struct fault body_is_slow = {408, "the request's body did not come in time"};

/* No byte of a body has moved: whose turn was it? */
static bool expire_body(struct session *session)
{
    if (session->exchange.answered)
        return exchange_cut(session, buffer_held(session->down) > 0 ? "client_slow" : "answer_timeout");
    if (session->request.whole || !is_up_sent(session))
        return own_answer(session, 504, "answer_timeout", "the backend does not take the request");
    return own_refuse(session, &body_is_slow, "client_slow");
}

static void expired(struct client *client, enum clock_of clock)
{
    struct session *session = (struct session *)client;
    bool is_there = false;

    if (clock == CLOCK_HEAD && session->in != NULL)
        is_there = own_refuse(session, &head_is_slow, "client_slow");
    else if (clock == CLOCK_ANSWER)
        is_there = own_answer(session, 504, "answer_timeout", "the backend does not answer");
    else if (clock == CLOCK_BODY)
        is_there = expire_body(session);
    else
        client_end(client, CLIENT_IDLE);
    if (is_there)
        session_go_on(session);
}

/* ---- the end ---- */

static bool is_busy(const struct client *client)
{
    const struct session *session = (const struct session *)client;

    return session->phase != SESSION_REQUEST || session->in != NULL;
}

static void end(struct client *client)
{
    struct session *session = (struct session *)client;
    struct buffers *buffers = &client->worker->buffers;

    exchange_release(session, false);
    exchange_forget(session);
    tunnel_end(&session->tunnel);
    buffers_give(buffers, session->in);
    buffers_give(buffers, session->down);
    message_end(&session->request);
}

const struct mode mode_http = {
    .name = "http",
    .size = sizeof(struct session),
    .begin = begin,
    .ready = ready,
    .expired = expired,
    .is_busy = is_busy,
    .end = end,
};
