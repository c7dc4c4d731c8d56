/* wire.c - what a fake socket goes through over time: its connecting, and the bytes and ends in both directions.
 *
 * Nothing reaches a peer from within a socket call: each socket has one timer, and the network's part of a turn does
 * what is due. Figures are those of Linux: SYNs again after 1, 2, 4, ... s up to 127 s (tcp_syn_retries 6), and
 * unacknowledged bytes given up after 924.6 s (tcp_retries2 15). */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

#include "link/testing/testing_internal.h"

static const double give_up_connecting = 127, give_up_sending = 924.6;

static double now(const struct testing__socket *socket)
{
    return socket->world->now;
}

static void at(struct testing__socket *socket, double when)
{
    testing__arm(&socket->world->heap, &socket->timer, when);
}

unsigned testing__socket_events(const struct testing__socket *socket)
{
    unsigned events = 0;

    if (socket->state == SOCKET_CONNECTING)
        return 0;
    if (socket->state != SOCKET_UP || socket->error) /* an error or a hang-up wakes every waiter */
        return LINKPOOL_READ | LINKPOOL_WRITE;
    if (socket->in.n || socket->in_ended || socket->shut_read)
        events |= LINKPOOL_READ;
    if (socket->shut_write ||
        socket->max_out - socket->out.n >= (socket->out.n + 1) / 2) /* as sk_stream_is_writeable() */
        events |= LINKPOOL_WRITE;
    return events;
}

static void die(struct testing__socket *socket, int error)
{
    socket->state = SOCKET_DEAD;
    socket->error = error;
    testing__bytes_free(&socket->out);
    testing__disarm(&socket->world->heap, &socket->timer);
    testing__socket_changed(socket);
}

/* ---- connecting ---- */

static void choose_local(struct testing__socket *socket)
{
    static const unsigned char host6[16] = {0xfd, [15] = 1};
    struct testing *t = socket->world;
    bool bound = socket->bound;

    if (socket->domain == AF_UNIX)
        return;
    if (!bound) {
        memset(&socket->local, 0, sizeof socket->local);
        socket->local.name.any.sa_family = (sa_family_t)socket->domain;
    }
    if (!bound && socket->domain == AF_INET) {
        socket->local.size = sizeof socket->local.name.in;
        socket->local.name.in.sin_addr.s_addr = htonl(0x0affff01);
    } else if (!bound) {
        socket->local.size = sizeof socket->local.name.in6;
        memcpy(&socket->local.name.in6.sin6_addr, host6, sizeof host6);
    }
    if (socket->local.name.in.sin_port == 0) { /* in6 has it at the same place */
        socket->local.name.in.sin_port = htons(t->next_port);
        t->next_port = t->next_port == 60999 ? 32768 : (uint16_t)(t->next_port + 1);
    }
}

/** Joins the socket to a peer that takes it. Returns 0, or errno. */
static int join(struct testing__socket *socket, struct testing_peer *peer)
{
    socket->conn = testing__conn_new(peer, socket, &socket->local);
    if (!socket->conn)
        return ENOBUFS;
    socket->state = SOCKET_UP;
    socket->far = FAR_OPEN;
    testing__socket_changed(socket);
    if (socket->domain == AF_UNIX)
        testing__conn_arrive(socket->conn, testing__peer_connect_delay(peer));
    else
        testing__conn_queue(socket->conn);
    return 0;
}

static int connect_unix(struct testing__socket *socket, struct testing_peer *peer)
{
    const struct sockaddr_un *un = &socket->remote.name.un;

    if (!peer)
        return socket->remote.size > offsetof(struct sockaddr_un, sun_path) && !un->sun_path[0] ? ECONNREFUSED : ENOENT;
    switch (peer->behaviour) {
    case TESTING_REFUSE:
        return ECONNREFUSED;
    case TESTING_UNREACHABLE:
    case TESTING_NO_HOST:
        return ENOENT;
    case TESTING_BLACK_HOLE:
        return EAGAIN;
    default:
        return testing__peer_full(peer) ? EAGAIN : join(socket, peer);
    }
}

/** A socket may try again after a connect() that failed. */
static void start_afresh(struct testing__socket *socket, const struct link_address *remote)
{
    socket->remote = *remote;
    socket->state = SOCKET_NEW;
    socket->far = FAR_NONE;
    socket->in_ended = socket->shut_read = socket->shut_write = socket->eof_told = false;
    testing__bytes_free(&socket->in);
}

int testing__socket_connect(struct testing__socket *socket, const struct link_address *address)
{
    struct testing_peer *peer = testing__peer_at(socket->world, address);

    if (socket->state == SOCKET_UP)
        return EISCONN;
    if (socket->state == SOCKET_CONNECTING)
        return EALREADY;
    if (socket->error) {
        int error = socket->error;
        socket->error = 0;
        return error;
    }
    start_afresh(socket, address);
    if (peer)
        testing__peer_attempt(peer);
    choose_local(socket);
    if (socket->domain == AF_UNIX)
        return connect_unix(socket, peer);
    if (peer && peer->behaviour == TESTING_UNREACHABLE)
        return ENETUNREACH;
    socket->state = SOCKET_CONNECTING;
    socket->started = now(socket);
    socket->syn = 0;
    at(socket, now(socket) + (peer ? testing__peer_connect_delay(peer) : 0));
    return EINPROGRESS;
}

static void send_syn_again(struct testing__socket *socket, struct testing_peer *peer)
{
    double last = socket->started + give_up_connecting;
    double after = (double)(((unsigned)2 << socket->syn++) - 1); /* 1, 3, 7, ... since the start */

    if (now(socket) >= last)
        die(socket, ETIMEDOUT);
    else if (after >= give_up_connecting)
        at(socket, last);
    else
        at(socket, socket->started + after + testing__peer_connect_delay(peer));
}

/** A SYN has come to where it was sent. */
static void on_syn(struct testing__socket *socket)
{
    struct testing_peer *peer = testing__peer_at(socket->world, &socket->remote);

    if (!peer || peer->behaviour == TESTING_REFUSE) {
        die(socket, ECONNREFUSED);
    } else if (peer->behaviour == TESTING_NO_HOST || peer->behaviour == TESTING_UNREACHABLE) {
        die(socket, EHOSTUNREACH);
    } else if (peer->behaviour == TESTING_BLACK_HOLE || testing__peer_full(peer)) {
        send_syn_again(socket, peer);
    } else {
        int error = join(socket, peer);
        if (error)
            die(socket, error);
    }
}

/* ---- to the peer ---- */

static void detach(struct testing__socket *socket)
{
    if (socket->conn)
        socket->conn->wire = NULL;
    socket->conn = NULL;
}

void testing__socket_sent(struct testing__socket *socket)
{
    int user_timeout_ms = 0;

    if (socket->far == FAR_SILENT) {
        testing__socket_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_timeout_ms);
        if (!socket->timer.place && socket->domain != AF_UNIX)
            at(socket, now(socket) + (user_timeout_ms > 0 ? 1e-3 * user_timeout_ms : give_up_sending));
    } else if (socket->far != FAR_NONE && !socket->timer.place) {
        at(socket, now(socket));
    }
}

void testing__socket_closed(struct testing__socket *socket)
{
    if (!socket->conn) {
        testing__socket_let_go(socket);
        return;
    }
    socket->abort = socket->in.n > 0 || socket->lingers_not; /* unread bytes: a reset, as Linux */
    socket->shut_write = true;
    testing__bytes_free(&socket->in);
    at(socket, now(socket));
}

/** Takes what the peer reads off the send buffer. It may end the connection at each piece. */
static void carry(struct testing__socket *socket)
{
    unsigned char piece[TESTING__PIECE];
    size_t n;

    while (socket->conn && socket->out.n && (n = testing__conn_appetite(socket->conn)) > 0) {
        if (n > socket->out.n)
            n = socket->out.n;
        if (n > sizeof piece)
            n = sizeof piece;
        memcpy(piece, testing__bytes_at(&socket->out), n);
        testing__bytes_drop(&socket->out, n);
        testing__conn_take(socket->conn, piece, n);
    }
    if (socket->conn && socket->out.n == 0 && socket->shut_write && !socket->eof_told && !socket->abort &&
        socket->conn->state == CONN_OPEN) {
        socket->eof_told = true;
        testing__conn_eof(socket->conn);
    }
}

/* What was sent before the reset has come: the peer may read it first. */
static void abort_conn(struct testing__socket *socket)
{
    struct testing_conn *conn;

    carry(socket);
    if (!(conn = socket->conn))
        return;
    detach(socket);
    testing__conn_broken(conn);
}

static void on_far_end(struct testing__socket *socket)
{
    if (socket->far == FAR_SILENT)
        die(socket, ETIMEDOUT);
    else if (socket->abort && socket->conn)
        abort_conn(socket);
    else if (socket->far == FAR_OPEN)
        carry(socket);
    else if (socket->far == FAR_CLOSED && socket->out.n) /* to one who has closed: its kernel resets */
        die(socket, EPIPE);
}

void testing__socket_timer(struct testing__timer *timer)
{
    struct testing__socket *socket = testing__of(timer, struct testing__socket, timer);

    socket->busy = true;
    if (socket->state == SOCKET_CONNECTING)
        on_syn(socket);
    else if (socket->state == SOCKET_UP)
        on_far_end(socket);
    socket->busy = false;
    testing__socket_changed(socket);
    testing__socket_let_go(socket);
}

/* ---- from the peer ---- */

static size_t deliver(struct testing_conn *conn, const void *bytes, size_t n)
{
    struct testing__socket *socket = conn->wire;

    if (socket->fd < 0) {
        socket->abort = true; /* to one who has closed */
        at(socket, now(socket));
        return n;
    }
    if (testing__bytes_add(&socket->in, bytes, n) != 0) {
        socket->abort = true;
        at(socket, now(socket));
    }
    testing__socket_changed(socket);
    return n;
}

static void reset(struct testing_conn *conn)
{
    struct testing__socket *socket = conn->wire;

    detach(socket);
    die(socket, socket->in_ended ? EPIPE : ECONNRESET);
    testing__socket_let_go(socket);
}

static void finish(struct testing_conn *conn)
{
    struct testing__socket *socket = conn->wire;

    if (socket->out.n) { /* closed with unread bytes: a reset, as Linux */
        reset(conn);
        return;
    }
    detach(socket);
    socket->far = FAR_CLOSED;
    socket->in_ended = true;
    testing__socket_changed(socket);
    testing__socket_let_go(socket);
}

static void silence(struct testing_conn *conn)
{
    struct testing__socket *socket = conn->wire;

    detach(socket);
    socket->far = FAR_SILENT;
    testing__disarm(&socket->world->heap, &socket->timer);
    if (socket->out.n)
        testing__socket_sent(socket);
    testing__socket_let_go(socket);
}

static void read_on(struct testing_conn *conn)
{
    testing__socket_sent(conn->wire);
}

static bool option(const struct testing_conn *conn, int level, int name, int *value)
{
    return testing__socket_option(conn->wire, level, name, value);
}

static int behave(struct testing_peer *peer)
{
    (void)peer;
    return 0;
}

const struct testing__ground testing__fake_ground = {
    .deliver = deliver,
    .finish = finish,
    .reset = reset,
    .silence = silence,
    .read_on = read_on,
    .option = option,
    .behave = behave,
    .unplace = testing__fake_unplace,
    .destroy = testing__fake_destroy,
};
