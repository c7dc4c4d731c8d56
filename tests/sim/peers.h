/* peers.h - the servers of a game: what each does to those who connect. */
#ifndef LINKPOOL_TESTS_SIM_PEERS_H
#define LINKPOOL_TESTS_SIM_PEERS_H

#include "tests/sim/sim.h"
#include "tests/sim/wire.h"

struct framed_visit;

/** A connection, as its peer sees it. */
struct visit {
    struct visit *prev, *next; /* utlist, of its peer */
    struct peer *peer;
    struct testing_conn *conn;
    struct framed_visit *framed; /* it speaks that; else NULL */
    unsigned char in[FRAME];
    unsigned n_in;
    int key;         /* -1: not said yet */
    uint32_t serial; /* the latest */
    uint32_t last_stream;
    bool is_shared, has_spoken;
    double last_at; /* what is said later does not come before */
};

/** Makes the i-th peer, or makes it again after a crash. */
void peers__start(struct sim *s, unsigned i);
void peers__crash(struct peer *peer);
/** Tells each of its shared links that it takes all that it ever takes, and what is still to be answered. */
void peers__calm(struct sim *s, struct peer *peer);
/** To some of its shared links: another room, a notice that it leaves, the end of a stream, and more. */
void peers__speak(struct sim *s, struct peer *peer);
/** Ends some of its connections. */
void peers__cut_some(struct sim *s, struct peer *peer, enum link_reason how);
/** Some of what is still to be answered is. */
void peers__go_on(struct sim *s, struct peer *peer);

/** Says bytes `late` seconds from now, after what was said before. */
void peers__say(struct visit *visit, const void *bytes, size_t n, double late);
/** When all that was said is there, but for what drips. */
double peers__said_by(const struct visit *visit);
/** Whose bytes are these, and whose were those before? */
void peers__look_at_owner(struct visit *visit, const struct frame *f);

/* framed_peer.c */
struct framed_visit *framed_visit__new(struct visit *visit);
void framed_visit__free(struct framed_visit *fv);
void framed_visit__take(struct framed_visit *fv, const void *bytes, size_t n);
void framed_visit__speak(struct framed_visit *fv);
void framed_visit__go_on(struct framed_visit *fv);
void framed_visit__calm(struct framed_visit *fv);

#endif
