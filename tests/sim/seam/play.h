/* play.h - a scenario on a stage: a pool, its users and links on their own, and a log of all that they are told.
 *
 * A scenario is a function of calls like ask() and run(). It is played on both stages, and the logs must be the same.
 * What is done within a callback is a user's or a link's `then`. */
#ifndef LINKPOOL_TESTS_SIM_SEAM_PLAY_H
#define LINKPOOL_TESTS_SIM_SEAM_PLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "linkpool/linkpool.h"
#include "tests/sim/seam/stage.h"

enum {
    PLAY_USERS = 128,
    PLAY_TARGETS = 3,
    PLAY_TEXT = 104
};

/** One line of a log. Times and values are compared within what rounding explains, the text as it is. */
struct record {
    double at, value;
    char text[PLAY_TEXT];
};

struct log {
    struct record *records;
    size_t n, room;
    unsigned turns;
    bool verbose; /* each line is printed as it comes */
};

enum event {
    TOLD,     /* done */
    TAKEN,    /* closed */
    HEARD,    /* some bytes came */
    ENDED,    /* end of file, or lost */
    SENT_ALL, /* send_much() is through */
    LINK_IS_UP,
    LINK_IS_DOWN,
    LINK_WAITS,
    LINK_STOPS
};

struct play;

struct user {
    struct pool_lease lease; /* first */
    struct play *play;
    unsigned i;
    bool waits, reads; /* asked and not told; reads from the moment it has a channel */
    bool counts_only;  /* what it hears is not logged piece by piece */
    size_t heard, to_send;
    bool was_blocked;
    void (*then)(struct user *user, enum event event); /* last line of each callback */
};

struct play {
    struct stage *stage;
    bool is_unix;
    struct log log;
    unsigned broken; /* checks that failed */
    char address[STAGE_PEERS][64];
    bool has_peer[STAGE_PEERS];
    struct pool_options options; /* its host is the next, its env the one below */
    struct pool_host_options host;
    struct backoff_policy backoff; /* the host's, and a link's */
    struct pool_observer observer;
    struct linkpool_env env; /* the stage's, with memory that is counted and draws of the scenario's own */
    uint64_t draws;
    size_t blocks, bytes;
    struct driver *driver, *link_driver;
    struct pool *pool;
    struct pool_target *targets[PLAY_TARGETS];
    struct user users[PLAY_USERS];
    struct link *link;
    struct channel *channel; /* the link's, while it is up */
    void (*then)(struct play *p, enum event event);
};

struct scenario {
    const char *name;
    void (*options)(struct play *p); /* NULL: the defaults */
    void (*play)(struct play *p);
    bool alone;    /* no pool */
    bool tcp_only; /* what it is about does not come with unix addresses */
};

/** Plays it, and closes all. The log is the caller's to free. */
void play_scenario(const struct scenario *scenario, struct stage *stage, bool is_unix, bool verbose, struct log *log,
    unsigned *broken);

/* ---- what scenarios are made of ---- */

/** A line of the log. */
void note(struct play *p, double value, const char *format, ...) __attribute__((format(printf, 3, 4)));
/** What holds on either stage. Where it does not, the scenario has failed, though both may agree. */
void must(struct play *p, bool holds, const char *what);
void run(struct play *p, double seconds);
/** The clock goes on at once. From within a callback: it has been busy; the run must last longer. */
void leap(struct play *p, double seconds);
/** The machine sleeps, and the clock with it. */
void suspend(struct play *p, double seconds);
/** As leap(), and the user's own code then calls ev_now_update(). */
void leap_and_refresh(struct play *p, double seconds);
/** Whether the loop would wait, or end. After a run: what is asked for since is done by asking. */
void note_waits(struct play *p);
/** At that very time, within the poll that also brings what peers do then: something of the user's own is ready. */
void knock(struct play *p, double seconds, void (*fn)(void *data), void *data);
/** A timer of the user's own: as late as such timers are. */
void at(struct play *p, double seconds, void (*fn)(void *data), void *data);

void peer(struct play *p, unsigned i, enum testing_behaviour behaviour);
void echo_peer(struct play *p, unsigned i);
void behave(struct play *p, unsigned i, enum testing_behaviour behaviour);
void delay(struct play *p, unsigned i, double connect, double answer);
void greet(struct play *p, unsigned i, const char *text);
void peer_says(struct play *p, unsigned i, const char *text);
void cut(struct play *p, unsigned i, enum link_reason how);
void window(struct play *p, unsigned i, size_t bytes);

/** Asks for the i-th peer's address. */
void ask(struct play *p, unsigned user, unsigned peer);
void ask_target(struct play *p, unsigned user, unsigned target);
/** How the last wish of a user must have ended, on either stage. */
void expect(struct play *p, unsigned user, int status, enum link_reason reason);
void cancel(struct play *p, unsigned user);
void give_back(struct play *p, unsigned user);
void discard(struct play *p, unsigned user);
/** Wants to hear; what comes is read at once, and logged. */
void listen_to(struct play *p, unsigned user);
void want(struct play *p, unsigned user, unsigned events);
void say(struct play *p, unsigned user, const char *text);
/** So many bytes, going on as there is room. */
void send_much(struct play *p, unsigned user, size_t n);
/** Says, listens, and has its answer, within a millisecond. */
void exchange(struct play *p, unsigned user);

struct pool_host *host(struct play *p, unsigned peer);
void target(struct play *p, unsigned i, const struct pool_picker *picker, unsigned first, unsigned n);
void update(struct play *p, unsigned i, unsigned first, unsigned n);
void drain(struct play *p, double timeout);
void free_pool(struct play *p);
/** How many links of a peer's host must be idle, and what its last failure or loss was, on either stage. */
void expect_idle(struct play *p, unsigned peer, unsigned n, enum link_reason last);
/** The states of hosts, and what is out. */
void look(struct play *p);

/** A link on its own to peer 0, on a driver of its own, started. */
void start_link(struct play *p);
void link_says(struct play *p, const char *text);

/* ---- of the play itself ---- */

void play__env(struct play *p);
void play__observer(struct play *p);
/** The number of the peer a host leads to; 99: no host. */
unsigned place_of(struct play *p, const struct pool_host *of);

extern const struct scenario scenarios_wait[], scenarios_life[], scenarios_many[], scenarios_bytes[], scenarios_time[],
    scenarios_end[];

#endif
