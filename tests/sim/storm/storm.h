/* storm.h - a server loses all its clients at once: the real link and pool code in virtual time, and what was seen.
 *
 *     struct storm storm;
 *     storm_begin(&storm, &(struct storm_plan){.seed = 1, .rate = 1000, .pools = 1, .links = 10000});
 *     storm_strike(&storm, TESTING_REFUSE);     all connections are reset: this is t = 0
 *     storm_run_to(&storm, 60);
 *     storm_return(&storm);                     the server is back
 *     storm_recover(&storm, 200);
 *     ... the figures ...
 *     storm_end(&storm);
 *
 * The server shakes hands one at a time, first come first served: it says one byte, for which its clients wait. A
 * connection whose client has given up still costs its turn. Its backlog is the kit's 4096. */
#ifndef LINKPOOL_TESTS_SIM_STORM_H
#define LINKPOOL_TESTS_SIM_STORM_H

#include <stdbool.h>
#include <stdint.h>

#include "linkpool/linkpool.h"
#include "linkpool/testing.h"

enum {
    STORM_POOLS = 100,
    STORM_NEIGHBOURS = 49,       /* healthy hosts in the first pool */
    STORM_NEIGHBOUR_LINKS = 100, /* of each of them */
    STORM_SEEDS = 20
};

struct storm_plan {
    uint64_t seed;
    double rate;                        /* handshakes a second */
    double round_trip;                  /* seconds */
    unsigned pools, links;              /* links of each pool */
    const struct backoff_policy *alone; /* no pool: the links are on their own, each with this policy; NULL: pools */
};

struct storm;

struct storm_pool {
    struct storm *storm;
    struct pool *pool;
    struct pool_host *host; /* the server's */
};

struct storm {
    struct storm_plan plan;
    struct testing *t;
    struct testing_peer *server;
    struct storm_pool pools[STORM_POOLS];
    struct driver *driver;  /* of the links on their own, */
    struct link **alone;    /* so many as are wanted */
    unsigned ready, wanted; /* links to the server */
    double struck, returned;
    double most_back, all_back; /* when 99 %, and all, were READY; INFINITY: not yet */
    unsigned struck_attempts, returned_attempts, returned_accepted;
    bool rude;         /* it resets whom it has accepted, without a byte */
    double failing;    /* part of the handshakes that fail, 0 to 1 */
    double dies_after; /* seconds from its first READY until it dies; 0: it lives */
    unsigned deaths;
    double died; /* the last time */
    unsigned died_attempts, died_failures;
    unsigned crowded;       /* the most attempts between two deaths */
    unsigned miscounted;    /* deaths that did not count as one failure */
    unsigned off_the_curve; /* gaps after a death that are none of the backoff's */
    bool death_planned;
    unsigned neighbours_ready, neighbours_wanted;
    double neighbours_opened; /* when all of them were READY; INFINITY: not yet */
};

/** A world in which all links have been READY for so long that their end is a loss. */
void storm_begin(struct storm *storm, const struct storm_plan *plan);
void storm_end(struct storm *storm);

/** t = 0: resets all connections; what comes from now on is met so. */
void storm_strike(struct storm *storm, enum testing_behaviour behaviour);
/** Runs to so many seconds after t = 0. */
void storm_run_to(struct storm *storm, double seconds);
/** The server is back. */
void storm_return(struct storm *storm);
/** Runs until all links are READY, `at_most` so many seconds; false: they were not. */
bool storm_recover(struct storm *storm, double at_most);
/** Opens healthy hosts in the first pool, now, and watches them. */
void storm_add_neighbours(struct storm *storm);
/** Runs until these are open, at most a minute. */
void storm_open_neighbours(struct storm *storm);
/** From now on it dies so long after its first READY, and is back at once; 0: no more. */
void storm_die_after(struct storm *storm, double seconds);

/** The most attempts in any window of so many seconds, of those from the first-th on. */
unsigned storm_crowd(const struct storm *storm, unsigned first, double window);

#endif
