/* world.h - a pool in a world of virtual time, and users that remember what they were told.
 *
 *     struct fake_world world;
 *     fake_world_begin(&world);       options and host options may be changed now
 *     fake_world_open(&world);
 *     struct fake_user user = {0};
 *     fake_ask(&world, &user, "10.0.0.1:80");
 *     fake_settle(&world);
 *     fake_world_end(&world);         frees the pool and asserts that nothing is left of it
 */
#ifndef LINKPOOL_TESTS_FAKES_WORLD_H
#define LINKPOOL_TESTS_FAKES_WORLD_H

#include <stdbool.h>
#include <stddef.h>

#include "linkpool/linkpool.h"
#include "linkpool/testing.h"

struct fake_world {
    struct testing *t;
    struct pool *pool;
    struct pool_options options; /* its host is the next, its env the world's */
    struct pool_host_options host;
    struct backoff_policy backoff; /* the host's */
    unsigned told;                 /* outcomes told so far, to whom soever */
};

/** Someone who asks for a channel. All zero at first; only its lease's in members are the test's to set. */
struct fake_user {
    struct pool_lease lease;
    struct fake_world *world;
    unsigned done, closed; /* times told */
    int status;            /* what asking said, then what `done` saw: POOL_PENDING in between */
    double told_at;        /* when `done` or `closed` ran last */
    unsigned place;        /* the how manieth to be told in this world, counted from 1 */
};

/** A world, and options with the defaults of the library. */
void fake_world_begin(struct fake_world *world);
/** The same from another seed than 1. */
void fake_world_begin_with(struct fake_world *world, uint64_t seed);
/** Its pool. */
void fake_world_open(struct fake_world *world);
/** Frees the pool, if it still is there, and the world; asserts that nothing is left and nothing was misused. */
void fake_world_end(struct fake_world *world);

/** A peer that echoes. */
struct testing_peer *fake_echo(struct fake_world *world, const char *address);
/** A peer that behaves so. */
struct testing_peer *fake_peer(struct fake_world *world, const char *address, enum testing_behaviour behaviour);

/** pool_acquire(), pool_acquire_host(), pool_acquire_target() for a user. */
int fake_ask(struct fake_world *world, struct fake_user *user, const char *text);
int fake_ask_host(struct fake_world *world, struct fake_user *user, struct pool_host *host);
int fake_ask_target(struct fake_world *world, struct fake_user *user, struct pool_target *target);
/** Asks, and runs until the user has its channel, which must be within a second. */
void fake_hold(struct fake_world *world, struct fake_user *user, const char *text);
/** Sends a byte and reads the echo: a whole exchange. */
void fake_exchange(struct fake_world *world, struct fake_user *user);
/** Sends these bytes, all of them. */
void fake_send(struct fake_user *user, const char *bytes);
/** Gives the channel back for reuse. */
void fake_give_back(struct fake_user *user);

/** Runs what can be run without time passing (but for a microsecond). */
void fake_settle(struct fake_world *world);
/** Runs this long. */
void fake_run(struct fake_world *world, double seconds);
/** Runs to the end of the next turn. */
void fake_turn(struct fake_world *world);

struct pool_stats fake_stats(const struct fake_world *world);
struct pool_host_stats fake_host_stats(const struct pool_host *host);
/** The host of an address that the pool has already; NULL: it has none. */
struct pool_host *fake_host(const struct fake_world *world, const char *address);
/** Endpoints of these addresses, n of them, in `endpoints`. */
void fake_endpoints(struct pool_endpoint *endpoints, const char *const *addresses, size_t n);
/** For pickers of a test's own: the host that the lease's hash, or without a lease the draw, falls on, up or not. */
int fake_pick_by_hash(const struct pool_pick *pick, const struct pool_lease *lease, uint64_t draw);
bool fake_takes_by_hash(const struct pool_pick *pick, const struct pool_lease *lease, size_t i);
/** A target of these addresses. */
struct pool_target *fake_target(struct fake_world *world, const char *name, const struct pool_picker *picker,
    const char *const *addresses, size_t n);

#endif
