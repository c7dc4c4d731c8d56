/* pinging.h - a protocol that can ask for a sign of life, and a peer that answers, late, otherwise or not at all.
 *
 *     struct fake_pinging pinging;
 *     fake_pinging_init(&pinging, world.t, true);            true: three channels a link; false: one holder
 *     world.host.protocol = &pinging.protocol;
 *     fake_pinging_serve(&pinging, peer);
 *
 * Shared, what is said is two bytes, channel and letter; channel 0 is the protocol's own. Exclusive, it is letters. The
 * peer says all that is not a ping back. */
#ifndef LINKPOOL_TESTS_FAKES_PINGING_H
#define LINKPOOL_TESTS_FAKES_PINGING_H

#include <stdbool.h>

#include "linkpool/protocol.h"
#include "linkpool/testing.h"

enum {
    FAKE_PROBES = 256 /* that are remembered; the count goes on */
};

enum fake_answer {
    FAKE_PONG,
    FAKE_MUTE,
    FAKE_NOISE,    /* bytes that mean nothing */
    FAKE_COMPLAINS /* a complaint of too many, and the answer */
};

struct fake_pinging {
    struct protocol protocol; /* its config is this */
    struct testing *t;
    /* what the peer does */
    enum fake_answer answer;
    double delay;              /* seconds to its answer */
    struct testing_conn *mute; /* this connection alone gets no answers */
    /* what ping() does on purpose */
    bool fails; /* says LINKPOOL_EAGAIN and sends nothing */
    bool ends;  /* ends the link */
    /* what happened */
    double at[FAKE_PROBES]; /* when ping() was called */
    const struct link *of[FAKE_PROBES];
    unsigned probes;   /* calls of ping() */
    unsigned received; /* pings that came to the peer */
    unsigned pongs;    /* answers that came to the protocol */
    unsigned most_out; /* probes that had no answer yet, the most so far */
};

void fake_pinging_init(struct fake_pinging *pinging, struct testing *t, bool shared);
void fake_pinging_serve(struct fake_pinging *pinging, struct testing_peer *peer);
/** Bytes that mean nothing, from the peer on this connection: a sign of life. */
void fake_pinging_noise(struct fake_pinging *pinging, struct testing_conn *conn);

#endif
