/* conn.c - one connection as its peer plays it: accepted, greeted, heard, ended.
 *
 * It is in one list of its peer, that of its state. Its end is played at once and told from the loop. */
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "link/testing/testing_internal.h"
#include "linkpool/error.h"

static double now(const struct testing_conn *conn)
{
    return *conn->peer->heap->now;
}

static double answer_delay(const struct testing_conn *conn)
{
    struct testing_peer *peer = conn->peer;

    if (peer->spread == 0)
        return peer->answer_delay;
    return peer->answer_delay * (1 + peer->spread * (2 * testing__draw(peer->draws) - 1));
}

static struct testing_conn **list_of(struct testing_conn *conn)
{
    struct testing_peer *peer = conn->peer;

    switch (conn->state) {
    case CONN_COMING:
        return &peer->coming;
    case CONN_QUEUED:
        return &peer->queue;
    case CONN_OPEN:
        return &peer->open;
    default:
        return &peer->ended;
    }
}

static void move_to(struct testing_conn *conn, enum testing__conn_state state)
{
    struct testing_peer *peer = conn->peer;
    struct testing_conn **list = list_of(conn);

    DL_DELETE(*list, conn);
    peer->n_waiting -= conn->state <= CONN_QUEUED;
    peer->n_open -= conn->state == CONN_OPEN;
    conn->state = state;
    peer->n_waiting += conn->state <= CONN_QUEUED;
    peer->n_open += conn->state == CONN_OPEN;
    list = list_of(conn);
    DL_APPEND(*list, conn);
}

/* ---- its end ---- */

/** Over, and the wire is let go of: `closed` is told from the loop. */
static void end(struct testing_conn *conn)
{
    bool told = conn->state == CONN_OPEN; /* who was never accepted is not missed */

    testing__words_drop(conn);
    move_to(conn, CONN_ENDED);
    conn->swallows = !told;
    testing__arm(conn->peer->heap, &conn->timer, now(conn));
}

void testing__conn_free(struct testing_conn *conn)
{
    struct testing_conn **list = list_of(conn);

    testing__words_drop(conn);
    DL_DELETE(*list, conn);
    testing__unhold(conn->peer->heap, &conn->timer);
    free(conn);
}

static void tell_end(struct testing_conn *conn)
{
    struct testing_peer *peer = conn->peer;

    peer->busy++;
    if (!conn->swallows && peer->scripted && peer->server.closed)
        peer->server.closed(peer->server.data, conn);
    testing__conn_free(conn);
    testing__peer_leave(peer);
}

void testing__conn_cut(struct testing_conn *conn, enum link_reason how)
{
    const struct testing__ground *ground = conn->peer->ground;

    if (conn->state == CONN_ENDED)
        return;
    if (!conn->wire)
        ; /* the client has reset it while it was queued */
    else if (how == LINK_CLOSED_BY_PEER)
        ground->finish(conn);
    else if (how == LINK_TIMED_OUT)
        ground->silence(conn);
    else
        ground->reset(conn);
    end(conn);
}

void testing__conn_drop(struct testing_conn *conn)
{
    if (conn->wire)
        conn->peer->ground->reset(conn);
    testing__words_drop(conn);
    move_to(conn, CONN_ENDED);
    testing__disarm(conn->peer->heap, &conn->timer);
}

void testing__conn_broken(struct testing_conn *conn)
{
    if (conn->state == CONN_OPEN)
        end(conn);
}

/* ---- what it hears ---- */

static void keep(struct testing_peer *peer, const void *bytes, size_t n)
{
    peer->n_bytes += n;
    if (testing__bytes_add(&peer->kept, bytes, n) == 0 && peer->kept.n > 2 * TESTING__KEPT)
        testing__bytes_drop(&peer->kept, peer->kept.n - TESTING__KEPT);
}

static void serve(struct testing_conn *conn, const void *bytes, size_t n)
{
    unsigned char answer[TESTING__ANSWER];
    struct testing_peer *peer = conn->peer;
    ssize_t said = peer->serve(peer->serve_data, bytes, n, answer, sizeof answer);

    if (peer->gone || conn->state != CONN_OPEN)
        return;
    if (said < 0)
        testing__conn_say_end(conn, now(conn) + answer_delay(conn), LINK_CLOSED_BY_PEER);
    else
        testing__conn_say(conn, now(conn) + answer_delay(conn), answer, (size_t)said);
}

void testing__conn_take(struct testing_conn *conn, const void *bytes, size_t n)
{
    struct testing_peer *peer = conn->peer;

    conn->received += n;
    if (conn->appetite != SIZE_MAX)
        conn->appetite -= n;
    keep(peer, bytes, n);
    if (conn->swallows)
        return;
    peer->busy++;
    if (peer->scripted && peer->server.received)
        peer->server.received(peer->server.data, conn, bytes, n);
    else if (!peer->scripted && peer->serve)
        serve(conn, bytes, n);
    testing__peer_leave(peer);
}

void testing__conn_eof(struct testing_conn *conn)
{
    struct testing_peer *peer = conn->peer;

    conn->eof = true;
    if (conn->swallows || !peer->scripted || !peer->server.ended) {
        testing_conn_close(conn);
        return;
    }
    peer->busy++;
    peer->server.ended(peer->server.data, conn);
    testing__peer_leave(peer);
}

/* ---- its beginning ---- */

static void on_timer(struct testing__timer *timer);

struct testing_conn *testing__conn_new(struct testing_peer *peer, void *wire, const struct link_address *client)
{
    struct testing_conn *conn = calloc(1, sizeof *conn);

    if (!conn)
        return NULL;
    if (testing__hold(peer->heap) != 0) {
        free(conn);
        return NULL;
    }
    conn->peer = peer;
    conn->wire = wire;
    conn->timer.fire = on_timer;
    if (client->size <= sizeof(sa_family_t))
        strcpy(conn->client, "unix:");
    else
        link_address_format(client, conn->client);
    peer->n_waiting++;
    DL_APPEND(peer->coming, conn);
    return conn;
}

static void greet(struct testing_conn *conn)
{
    struct testing_peer *peer = conn->peer;
    double due = now(conn) + answer_delay(conn);

    if (peer->greeting.n && !conn->swallows)
        testing__conn_say(conn, due, testing__bytes_at(&peer->greeting), peer->greeting.n);
    if (peer->behaviour == TESTING_ACCEPT_AND_CLOSE || peer->behaviour == TESTING_ACCEPT_AND_RESET)
        testing__conn_say_end(
            conn, due, peer->behaviour == TESTING_ACCEPT_AND_CLOSE ? LINK_CLOSED_BY_PEER : LINK_RESET);
}

static void accept_one(struct testing_conn *conn)
{
    struct testing_peer *peer = conn->peer;

    peer->n_accepted++;
    conn->swallows = peer->behaviour == TESTING_SILENT;
    conn->appetite = peer->window;
    move_to(conn, CONN_OPEN);
    peer->busy++;
    if (peer->scripted && peer->server.accepted && !conn->swallows)
        peer->server.accepted(peer->server.data, conn);
    if (!peer->gone && conn->state == CONN_OPEN) {
        if (conn->wire) {
            greet(conn);
            peer->ground->read_on(conn);
        } else {
            end(conn); /* reset while it was queued */
        }
    }
    testing__peer_leave(peer);
}

void testing__accept_next(struct testing__timer *timer)
{
    struct testing_peer *peer = testing__of(timer, struct testing_peer, accept_timer);
    double time = *peer->heap->now;

    peer->busy++;
    while (peer->queue && !peer->gone && peer->next_accept <= time) {
        if (peer->accept_rate > 0)
            peer->next_accept = time + 1 / peer->accept_rate;
        accept_one(peer->queue);
    }
    if (peer->queue && !peer->gone)
        testing__arm(peer->heap, &peer->accept_timer, peer->next_accept);
    if (!peer->gone)
        peer->ground->behave(peer); /* fewer wait now */
    testing__peer_leave(peer);
}

void testing__conn_queue(struct testing_conn *conn)
{
    struct testing_peer *peer = conn->peer;

    move_to(conn, CONN_QUEUED);
    if (!peer->accept_timer.place)
        testing__accept_next(&peer->accept_timer);
}

static void on_timer(struct testing__timer *timer)
{
    struct testing_conn *conn = testing__of(timer, struct testing_conn, timer);

    switch (conn->state) {
    case CONN_COMING:
        testing__conn_queue(conn);
        break;
    case CONN_OPEN:
        testing__speak(conn);
        break;
    default:
        tell_end(conn);
    }
}

void testing__conn_arrive(struct testing_conn *conn, double delay)
{
    testing__arm(conn->peer->heap, &conn->timer, now(conn) + delay);
}

/* ---- for the test's own script ---- */

void testing_conn_reset(struct testing_conn *conn)
{
    testing__conn_cut(conn, LINK_RESET);
}

void testing_conn_cut(struct testing_conn *conn, enum link_reason how)
{
    testing__conn_cut(conn, how);
}

struct testing_peer *testing_conn_peer(const struct testing_conn *conn)
{
    return conn->peer;
}

const char *testing_conn_client(const struct testing_conn *conn)
{
    return conn->client;
}

uint64_t testing_conn_received(const struct testing_conn *conn)
{
    return conn->received;
}

uint64_t testing_conn_sent(const struct testing_conn *conn)
{
    return conn->sent;
}

bool testing_conn_option(const struct testing_conn *conn, int level, int name, int *value)
{
    return conn->wire && conn->peer->ground->option(conn, level, name, value);
}

void testing_conn_set_data(struct testing_conn *conn, void *data)
{
    conn->data = data;
}

void *testing_conn_data(const struct testing_conn *conn)
{
    return conn->data;
}
