/* random.h - a game of users, peers and system, shared by random.c and random_users.c. */
#ifndef LINKPOOL_TESTS_UNIT_RANDOM_H
#define LINKPOOL_TESTS_UNIT_RANDOM_H

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "linkpool/testing.h"
#include "pool/internal.h"
#include "tests/fakes/shared.h"

enum {
    USERS = 20,
    PEERS = 6,
    PINS = 5,
    TARGETS = 3,
    STEPS = 300,
    DEEPEST = 3
};

enum user_state {
    USER_FREE,
    USER_WAITING,
    USER_HOLDING
};

struct game;

struct user {
    struct pool_lease lease;
    struct game *game;
    enum user_state state;
    double deadline;
};

struct game {
    uint64_t seed, draws;
    struct testing *t;
    struct testing_peer *peers[PEERS];
    struct pool *pool; /* NULL: freed */
    struct pool_options options;
    struct pool_host_options host;
    struct backoff_policy backoff;
    struct pool_observer observer;
    struct fake_shared_ways ways;
    struct protocol protocol;
    struct user users[USERS];
    struct pool_host *pins[PINS];
    struct pool_target *targets[TARGETS];
    unsigned depth;
    unsigned n_done, n_ready; /* leases told, and those of them that got a channel */
    bool calm;                /* the faults have stopped */
    bool drains;              /* pool_drain() was called */
    unsigned drains_told;
};

/** Where the peers are. */
extern const char *const random__addresses[PEERS];

/* ---- draws: splitmix64, so that a step more in the library does not change the game ---- */

static inline uint64_t draw(struct game *g)
{
    uint64_t z = g->seed * 0xD1342543DE82EF95u + ++g->draws * 0x9E3779B97F4A7C15u;

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static inline unsigned below(struct game *g, unsigned n)
{
    return (unsigned)(draw(g) % n);
}
static inline bool once_in(struct game *g, unsigned n)
{
    return !below(g, n);
}
static inline unsigned one_of(struct game *g, const unsigned *from, size_t n)
{
    return from[below(g, (unsigned)n)];
}
static inline double time_of(struct game *g, const double *from, size_t n)
{
    return from[below(g, (unsigned)n)];
}
#define ONE_OF(g, ...)                                                                                                 \
    one_of(g, (const unsigned[]){__VA_ARGS__}, sizeof((const unsigned[]){__VA_ARGS__}) / sizeof(unsigned))
#define TIME_OF(g, ...)                                                                                                \
    time_of(g, (const double[]){__VA_ARGS__}, sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

/* ---- what must hold ---- */

static inline void holds(const struct game *g, bool condition, const char *text, int line)
{
    cr_assert(eq(int, condition, true), "seed %llu, line %d: %s", (unsigned long long)g->seed, line, text);
}
#define HOLDS(g, condition) holds((g), (condition), #condition, __LINE__)

/* ---- in random.c ---- */

/** Something is done, by whomever. */
void random__act(struct game *g);

/* ---- in random_users.c ---- */

void random__acquire(struct game *g, struct user *user);
void random__cancel(struct game *g, struct user *user);
void random__release(struct game *g, struct user *user, enum pool_disposition disposition);
/** Reads, writes, watches, shuts, lends: what a holder may do. */
void random__use_channel(struct game *g, struct user *user);
/** Within a callback: something may be done, at most so deep. */
void random__react(struct game *g);

#endif
