/* owner.h - a link on its own in a world of virtual time, and an owner that writes down what it is told.
 *
 *     struct fake_owner owner;
 *     fake_owner_begin(&owner, TESTING_REFUSE);    options may be changed now
 *     fake_owner_open(&owner);
 *     link_start(owner.link);
 *     fake_owner_run(&owner, 10);
 *     fake_owner_end(&owner);                      frees the link and asserts that nothing is left of it
 */
#ifndef LINKPOOL_TESTS_FAKES_OWNER_H
#define LINKPOOL_TESTS_FAKES_OWNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "linkpool/linkpool.h"
#include "linkpool/testing.h"

#define FAKE_ADDRESS "10.0.0.1:80"

enum {
    FAKE_TOLD = 256 /* callbacks, and records, that are remembered; the counts go on */
};

/** One callback of a link's owner. */
struct fake_told {
    char what[16]; /* the callback's name */
    unsigned attempt;
    double delay, at;
    enum link_reason reason;
};

struct fake_owner {
    struct testing *t;
    struct driver *driver;
    struct testing_peer *peer;   /* at FAKE_ADDRESS; it echoes */
    struct linkpool_env env;     /* the world's, but for the draws where fake_owner_draw() was called */
    uint64_t draw;               /* what the env draws then */
    struct link_options options; /* backoff_edge; all callbacks set; `data` is the owner */
    struct backoff_policy backoff;
    struct pool_observer observer;
    struct link *link;
    struct channel *channel; /* from connected to disconnected */
    struct fake_told told[FAKE_TOLD];
    unsigned n_told;
    struct link_transition records[FAKE_TOLD];
    unsigned n_records;
    bool hears;      /* watches each channel it gets, and reads what comes */
    char heard[256]; /* what came */
    size_t n_heard;
    bool ended; /* end of file was read on this channel */
    int fault;  /* what channel_read() answered last, when it was an error */
    void (*then)(struct fake_owner *owner, const struct fake_told *told); /* called at the end of each callback */
};

/** A world with a peer that behaves so, and options for the link. */
void fake_owner_begin(struct fake_owner *owner, enum testing_behaviour behaviour);
/** All draws of the library are this one from now on: in [0, 1). Before fake_owner_open(). */
void fake_owner_draw(struct fake_owner *owner, double draw);
/** It waits without jitter: base, times factor each time, at most cap. Before fake_owner_open(). */
void fake_owner_gaps(struct fake_owner *owner, double base, double factor, double cap);
/** Its link, IDLE. */
void fake_owner_open(struct fake_owner *owner);
/** The same, and starts it. */
void fake_owner_start(struct fake_owner *owner);
/** Frees the link if it is still there, and the world; asserts that nothing is left and nothing was misused. */
void fake_owner_end(struct fake_owner *owner);

void fake_owner_run(struct fake_owner *owner, double seconds);
/** Runs what can be run without time passing (but for a microsecond). */
void fake_owner_settle(struct fake_owner *owner);
/** Runs until the link is in this state, at most so long; asserts that it came. */
void fake_owner_until(struct fake_owner *owner, enum link_state state, double at_most);

/** The names of all callbacks so far, with a space between; of the first FAKE_TOLD. The owner's until the next call. */
const char *fake_owner_story(const struct fake_owner *owner);
/** How many callbacks of this name there were, and the i-th of them from 0; NULL past the last. */
unsigned fake_owner_count(const struct fake_owner *owner, const char *what);
const struct fake_told *fake_owner_told(const struct fake_owner *owner, const char *what, unsigned i);
/** Forgets what was told and recorded so far. */
void fake_owner_forget(struct fake_owner *owner);

/** Asserts what a record of a transition says. */
void fake_expect_record(const struct link_transition *record, enum link_state from, enum link_state to,
    const char *event, unsigned attempt, double delay);

struct link_stats fake_link_stats(const struct link *link);
/** Seconds between the peer's i-th attempt and the one after. */
double fake_gap(const struct testing_peer *peer, unsigned i);
/** Sends these bytes on the owner's channel. */
void fake_owner_send(struct fake_owner *owner, const char *bytes);

/** A link that is told HELLO and answers ACK: protocol_raw with a handshake. The peer's `serve`: says ACK to each. */
extern const struct protocol fake_hello;
ssize_t fake_ack(void *data, const void *in, size_t n, void *out, size_t room);

#endif
