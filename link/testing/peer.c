/* peer.c - a peer as its user sets it up and looks at it; what it does on a connection is conn.c's.
 *
 * A peer freed from inside one of its callbacks is off its address at once; its memory goes when the outermost of
 * these callbacks has returned. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "link/testing/testing_internal.h"
#include "linkpool/error.h"

int testing__peer_init(struct testing_peer *peer, struct testing__heap *heap, enum testing_behaviour behaviour)
{
    peer->heap = heap;
    peer->behaviour = behaviour;
    peer->cut_after = SIZE_MAX;
    peer->window = SIZE_MAX;
    peer->max_waiting = 4096; /* Linux's somaxconn */
    peer->accept_timer.fire = testing__accept_next;
    return testing__hold(heap);
}

void testing__peer_discard(struct testing_peer *peer)
{
    while (peer->ended)
        testing__conn_free(peer->ended);
    testing__unhold(peer->heap, &peer->accept_timer);
    testing__bytes_free(&peer->greeting);
    testing__bytes_free(&peer->kept);
    free(peer->attempts);
}

static void destroy(struct testing_peer *peer)
{
    testing__peer_discard(peer);
    peer->ground->destroy(peer);
}

void testing_peer_free(struct testing_peer *peer)
{
    if (!peer || peer->gone)
        return;
    peer->gone = true;
    while (peer->coming)
        testing__conn_drop(peer->coming);
    while (peer->queue)
        testing__conn_drop(peer->queue);
    while (peer->open)
        testing__conn_drop(peer->open);
    testing__disarm(peer->heap, &peer->accept_timer);
    peer->ground->unplace(peer);
    if (peer->busy == 0)
        destroy(peer);
}

void testing__peer_leave(struct testing_peer *peer)
{
    if (--peer->busy == 0 && peer->gone)
        destroy(peer);
}

bool testing__peer_full(const struct testing_peer *peer)
{
    return peer->n_waiting >= peer->max_waiting && (peer->max_waiting || peer->accept_rate > 0);
}

double testing__peer_connect_delay(struct testing_peer *peer)
{
    if (peer->spread == 0)
        return peer->connect_delay;
    return peer->connect_delay * (1 + peer->spread * (2 * testing__draw(peer->draws) - 1));
}

void testing__peer_attempt(struct testing_peer *peer)
{
    if (peer->n_attempts == peer->room_attempts) {
        unsigned room = peer->room_attempts ? 2 * peer->room_attempts : 16;
        double *attempts = realloc(peer->attempts, room * sizeof *attempts);
        if (!attempts)
            return;
        peer->attempts = attempts;
        peer->room_attempts = room;
    }
    peer->attempts[peer->n_attempts++] = *peer->heap->now;
}

/* ---- what it is told to do ---- */

const char *testing_peer_address(const struct testing_peer *peer)
{
    return peer->text;
}

int testing_peer_behave(struct testing_peer *peer, enum testing_behaviour behaviour)
{
    peer->behaviour = behaviour;
    return peer->ground->behave(peer);
}

void testing_peer_serve(struct testing_peer *peer,
    ssize_t (*serve)(void *data, const void *in, size_t n, void *out, size_t room), void *data)
{
    peer->serve = serve;
    peer->serve_data = data;
}

ssize_t testing_echo(void *data, const void *in, size_t n, void *out, size_t room)
{
    (void)data;
    if (n > room)
        n = room;
    memcpy(out, in, n);
    return (ssize_t)n;
}

void testing_peer_on(struct testing_peer *peer, const struct testing_server *server)
{
    peer->scripted = server != NULL;
    peer->server = (struct testing_server){0};
    if (server)
        memcpy(&peer->server, server, server->size < sizeof peer->server ? server->size : sizeof peer->server);
}

int testing_peer_greet(struct testing_peer *peer, const void *bytes, size_t n)
{
    testing__bytes_drop(&peer->greeting, peer->greeting.n);
    return testing__bytes_add(&peer->greeting, bytes, n);
}

int testing_peer_say(struct testing_peer *peer, const void *bytes, size_t n)
{
    struct testing_conn *conn;
    int result = 0;

    DL_FOREACH (peer->open, conn)
        if (testing__conn_say(conn, *peer->heap->now, bytes, n) == LINKPOOL_ENOMEM)
            result = LINKPOOL_ENOMEM;
    return result;
}

void testing_peer_delay(struct testing_peer *peer, double connect, double answer)
{
    peer->connect_delay = connect;
    peer->answer_delay = answer;
}

void testing_peer_spread(struct testing_peer *peer, double spread)
{
    peer->spread = spread;
}

void testing_peer_drip(struct testing_peer *peer, size_t bytes, double interval)
{
    peer->drip = bytes;
    peer->drip_interval = interval;
}

void testing_peer_cut_after(struct testing_peer *peer, size_t bytes, enum link_reason how)
{
    peer->cut_after = bytes;
    peer->cut_how = how;
}

void testing_peer_cut(struct testing_peer *peer, enum link_reason how)
{
    while (peer->coming)
        testing__conn_cut(peer->coming, how);
    while (peer->queue)
        testing__conn_cut(peer->queue, how);
    while (peer->open)
        testing__conn_cut(peer->open, how);
}

void testing_peer_window(struct testing_peer *peer, size_t bytes)
{
    struct testing_conn *conn;

    peer->window = bytes;
    DL_FOREACH (peer->open, conn) {
        conn->appetite = bytes;
        if (!conn->eof)
            peer->ground->read_on(conn);
    }
}

void testing_peer_backlog(struct testing_peer *peer, unsigned n)
{
    peer->max_waiting = n;
}

void testing_peer_accept_rate(struct testing_peer *peer, double per_second)
{
    peer->accept_rate = per_second;
    peer->next_accept = *peer->heap->now;
    testing__arm(peer->heap, &peer->accept_timer, *peer->heap->now);
}

/* ---- what it has seen ---- */

unsigned testing_peer_accepted(const struct testing_peer *peer)
{
    return peer->n_accepted;
}

unsigned testing_peer_open(const struct testing_peer *peer)
{
    return peer->n_open;
}

unsigned testing_peer_attempts(const struct testing_peer *peer)
{
    return peer->n_attempts;
}

double testing_peer_attempt_at(const struct testing_peer *peer, unsigned i)
{
    return i < peer->n_attempts ? peer->attempts[i] : NAN;
}

uint64_t testing_peer_bytes(const struct testing_peer *peer)
{
    return peer->n_bytes;
}

const void *testing_peer_received(const struct testing_peer *peer, size_t *n)
{
    size_t older = peer->kept.n > TESTING__KEPT ? peer->kept.n - TESTING__KEPT : 0;

    *n = peer->kept.n - older;
    return peer->kept.memory ? testing__bytes_at(&peer->kept) + older : (const unsigned char *)"";
}

struct testing_conn *testing_peer_conn(const struct testing_peer *peer, unsigned i)
{
    struct testing_conn *conn = peer->open;

    while (conn && i--)
        conn = conn->next;
    return conn;
}
