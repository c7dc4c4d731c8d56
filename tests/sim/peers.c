/* peers.c - servers that answer frames, and look at whose they are.
 *
 * A connection carries bytes of one key, and, where it is not shared, of one holder after another: what an earlier
 * one sent never comes behind a later one's. */
#include "tests/sim/peers.h"

#include <stdlib.h>
#include <utlist.h>

static void on_accepted(void *data, struct testing_conn *conn)
{
    struct peer *peer = data;
    struct visit *visit = calloc(1, sizeof *visit);

    if (!visit)
        abort();
    visit->peer = peer;
    visit->conn = conn;
    visit->key = -1;
    DL_APPEND(peer->visits, visit);
    testing_conn_set_data(conn, visit);
}

static void on_closed(void *data, struct testing_conn *conn)
{
    struct peer *peer = data;
    struct visit *visit = testing_conn_data(conn);

    if (visit) {
        DL_DELETE(peer->visits, visit);
        framed_visit__free(visit->framed);
    }
    testing_conn_set_data(conn, NULL);
    free(visit);
}

void peers__say(struct visit *visit, const void *bytes, size_t n, double late)
{
    struct sim *s = visit->peer->sim;
    double at = testing_now(s->t) + late;

    if (at < visit->last_at)
        at = visit->last_at;
    visit->last_at = at;
    if (at > testing_now(s->t))
        testing_conn_send_after(visit->conn, at - testing_now(s->t), bytes, n);
    else
        testing_conn_send(visit->conn, bytes, n);
}

double peers__said_by(const struct visit *visit)
{
    double now = testing_now(visit->peer->sim->t);

    return visit->last_at > now ? visit->last_at : now;
}

static void say(struct testing_conn *conn, const struct frame *frames, size_t n)
{
    struct visit *visit = testing_conn_data(conn);

    peers__say(visit, frames, n * FRAME, visit->peer->late);
}

static void say_one(struct testing_conn *conn, char letter, const struct frame *to, uint32_t arg)
{
    struct frame f = frame_of(letter, to->key, to->serial, arg);

    say(conn, &f, 1);
}

/* ---- what comes ---- */

void peers__look_at_owner(struct visit *visit, const struct frame *f)
{
    struct sim *s = visit->peer->sim;

    HOLDS(s, f->key < s->p.n_keys);
    HOLDS(s, &s->peers[s->keys[f->key].address] == visit->peer); /* bytes for another address */
    HOLDS(s, visit->key < 0 || visit->key == f->key);            /* bytes of two keys on one connection */
    HOLDS(s, visit->is_shared || visit->serial <= f->serial);    /* bytes of an earlier holder after a later one's */
    visit->key = f->key;
    visit->serial = f->serial;
}

static void welcome(struct testing_conn *conn, const struct frame *f)
{
    struct visit *visit = testing_conn_data(conn);
    struct sim *s = visit->peer->sim;

    visit->is_shared = f->letter == 'S';
    if (visit->peer->mute)
        return;
    if (visit->peer->refuses) {
        s->rare.n[RARE_HANDSHAKE_REFUSED]++;
        say_one(conn, 'w', f, 0);
    } else {
        say_one(conn, 'w', f, f->letter == 'S' ? 1 + below(s, s->p.rooms) : 1);
    }
}

static void answer(struct testing_conn *conn, const struct frame *f)
{
    struct visit *visit = testing_conn_data(conn);
    struct frame twice[2] = {frame_of('d', f->key, f->serial, f->arg), frame_of('e', f->key, f->serial, f->arg)};

    peers__look_at_owner(visit, f);
    if (f->letter == 'M' && f->arg > visit->last_stream)
        visit->last_stream = f->arg;
    if (f->letter == 'M')
        say_one(conn, 'm', f, f->arg);
    else if (f->letter != 'O')
        say(conn, twice, f->letter == 'X' ? 2 : 1);
}

static void take(struct testing_conn *conn, const struct frame *f)
{
    struct visit *visit = testing_conn_data(conn);

    HOLDS(visit->peer->sim, frame_is_whole(f));
    switch (f->letter) {
    case 'H':
    case 'S':
        welcome(conn, f);
        break;
    case 'R':
        if (!visit->peer->mute)
            say_one(conn, 'r', f, 0);
        break;
    case 'K':
        break;
    default:
        answer(conn, f);
        break;
    }
}

/* Framed begins with the length of a short frame, of which the first byte is 0. */
static bool is_framed(struct visit *visit, unsigned char first)
{
    if (!visit->has_spoken && !first) {
        visit->framed = framed_visit__new(visit);
        visit->is_shared = true;
    }
    visit->has_spoken = true;
    return visit->framed;
}

static void on_asked(struct visit *visit)
{
    struct peer *peer = visit->peer;
    double late = once_in(peer->sim, 4) ? peer->late : 0;

    if (peer->mute || (peer->odd && once_in(peer->sim, 8)))
        return;
    if (peer->odd && once_in(peer->sim, 4))
        late = peer->sim->heart[0].timeout;
    peers__say(visit, &(char){ALIVE}, 1, late);
}

static void on_received(void *data, struct testing_conn *conn, const void *bytes, size_t n)
{
    struct visit *visit = testing_conn_data(conn);
    const unsigned char *from = bytes;

    (void)data;
    if (visit && is_framed(visit, *from)) {
        framed_visit__take(visit->framed, bytes, n);
        return;
    }
    for (size_t i = 0; i < n && visit; i++) {
        if (!visit->n_in && from[i] == ALIVE_ASKED) {
            on_asked(visit);
            continue;
        }
        visit->in[visit->n_in++] = from[i];
        if (visit->n_in < FRAME)
            continue;
        struct frame f = frame_read(visit->in);
        visit->n_in = 0;
        take(conn, &f);
        visit = testing_conn_data(conn);
    }
}

/* ---- coming and going ---- */

void peers__start(struct sim *s, unsigned i)
{
    struct peer *peer = &s->peers[i];
    struct testing_server server = {
        .size = sizeof server, .accepted = on_accepted, .received = on_received, .closed = on_closed, .data = peer};

    peer->sim = s;
    peer->peer = testing_peer_add(s->t, peer->address, TESTING_ACCEPT);
    HOLDS(s, peer->peer);
    testing_peer_on(peer->peer, &server);
}

void peers__crash(struct peer *peer)
{
    struct visit *visit, *next;

    testing_peer_free(peer->peer);
    peer->peer = NULL;
    DL_FOREACH_SAFE (peer->visits, visit, next) {
        framed_visit__free(visit->framed);
        free(visit);
    }
    peer->visits = NULL;
}

/* ---- unasked ---- */

static void speak_to(struct sim *s, struct testing_conn *conn)
{
    struct visit *visit = testing_conn_data(conn);
    struct frame none = frame_of('n', 0, 0, 0);
    unsigned what = below(s, 6);

    if (what < 3)
        say_one(conn, 'n', &none, below(s, s->p.rooms + 1));
    else if (what < 5)
        say_one(conn, 'z', &(struct frame){.key = (uint16_t)below(s, 2)}, visit->last_stream);
    else
        say_one(conn, 'g', &none, visit->last_stream > 1 ? visit->last_stream - 1 : visit->last_stream);
}

void peers__speak(struct sim *s, struct peer *peer)
{
    unsigned most = 1 + below(s, 8);

    for (unsigned i = 0; i < most; i++) {
        struct testing_conn *conn = testing_peer_conn(peer->peer, i);
        struct visit *visit = conn ? testing_conn_data(conn) : NULL;
        if (visit && visit->framed)
            framed_visit__speak(visit->framed);
        else if (visit && visit->is_shared)
            speak_to(s, conn);
    }
}

void peers__calm(struct sim *s, struct peer *peer)
{
    struct testing_conn *conn;
    struct frame none = frame_of('n', 0, 0, 0);

    for (unsigned i = 0; (conn = testing_peer_conn(peer->peer, i)); i++) {
        const struct visit *visit = testing_conn_data(conn);
        if (visit && visit->framed)
            framed_visit__calm(visit->framed);
        else if (visit && visit->is_shared)
            say_one(conn, 'n', &none, s->p.rooms);
    }
}

void peers__go_on(struct sim *s, struct peer *peer)
{
    unsigned i = 0;
    struct visit *visit;

    DL_FOREACH (peer->visits, visit)
        if (visit->framed && i++ < 4 && once_in(s, 2))
            framed_visit__go_on(visit->framed);
}

void peers__cut_some(struct sim *s, struct peer *peer, enum link_reason how)
{
    struct testing_conn *conns[64];
    unsigned n = 0;

    while (n < 64 && (conns[n] = testing_peer_conn(peer->peer, n)))
        n++;
    for (unsigned i = 0; i < n; i++)
        if (once_in(s, 3))
            testing_conn_cut(conns[i], how);
}
