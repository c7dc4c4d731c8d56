/* sim.h - a pool played from one seed: profile, world, users, owners; shared by the files of tests/sim/.
 *
 * All that is drawn comes from the seed, one draw a statement, so that the order of draws is the same under any
 * compiler. What the library does is written to a log, of which a hash is kept: the same seed gives the same hash. */
#ifndef LINKPOOL_TESTS_SIM_H
#define LINKPOOL_TESTS_SIM_H

#include "linkpool/framed.h"
#include "linkpool/testing.h"
#include "pool/internal.h"
#include "tests/sim/calls.h"
#include "tests/sim/profile.h"
#include "tests/sim/rare.h"

enum {
    MAX_KEYS = 200,
    MAX_USERS = 2000,
    MAX_TARGETS = 8,
    DEEPEST = 3,
    MAX_KEPT = 16,
    LINK_BUCKETS = 4096,
    MOST_TURNS = 12000 /* of a game: what retries each millisecond has had its say by then */
};

enum user_state {
    USER_FREE,
    USER_WAITING,
    USER_HOLDING
};

/** Those who wait in one line of the library's, in the order in which they asked. */
struct line {
    struct user *first; /* utlist */
    unsigned n;
    struct line *next; /* all lines that were made, until the end of the game */
};

/** One claim on a channel after another; what it may be told, and which bytes are its own. */
struct user {
    struct pool_lease lease;
    struct sim *sim;
    enum user_state state;
    struct line *line;        /* waiting */
    struct user *prev, *next; /* in its line */
    struct target *target;    /* it asked for that; NULL: for a key */
    int key;                  /* the key it asked for, then that of its channel; -1: not known yet */
    uint64_t order;           /* of asking */
    uint32_t decided;         /* the claim's, as last seen: another one means that it had won meanwhile */
    double asked, deadline;   /* deadline: INFINITY: none */
    uint32_t serial;          /* marks its bytes: given as it gets its channel */
    unsigned char out[16];    /* what is still to be sent */
    unsigned n_out, n_in;
    unsigned char in[16];
    unsigned due;           /* whole frames it has still to hear */
    bool heard;             /* it has read since it sent last */
    bool midway;            /* a part of an answer was read */
    bool said, extra, shut; /* anything; a frame that has an extra answer; its sending side has ended */
    bool asked_now;         /* it has its channel within its asking */
    uint64_t link;          /* the id of what it holds */
    uint64_t passed_until;  /* the turn: waiting again, since its win was lost */
};

/** What makes a host: an address, and a tag where it has one. */
struct key {
    unsigned address;
    char tag[20]; /* "": none */
    int kind;     /* enum protocol_kind */
    int variant;  /* which options; 0: the pool's */
    struct line line;
    struct pool_host *pin;
    uint64_t changed_turn; /* drained, started or listed anew */
    uint64_t asked_turn, idle_turn;
    bool was_ready;      /* since the faults stopped */
    bool known;          /* somebody asked for it */
    unsigned limit;      /* of attempts at once, as last seen */
    unsigned kept;       /* links kept up, at most so far */
    double connect_most; /* of the options that were set meanwhile: an attempt that tries again takes the new ones */
    unsigned failures;   /* as last told */
    bool forgiven;       /* the count may have begun anew */
    double begun_anew;   /* when a change of the network last had its pool begin anew, as seen by then */
    double terms_at;     /* its options were set then */
    uint32_t opened;     /* attempts of its host so far: one named anew begins anew */
};

struct target {
    struct pool_target *target;
    struct line *line;
    const struct pool_picker *picker;
    bool member[MAX_KEYS];
    unsigned n;
    bool known;
    uint64_t changed_turn;
};

/** What the model knows of a link, by its id. */
struct seen_link {
    uint64_t id;
    enum link_state state;
    double since, due; /* of the state; due: no sooner retry than that */
    double began;      /* the attempt */
    double deadline;   /* of the attempt: READY by then */
    double ready_at;
    int key;
    unsigned held, uses;        /* told holders, now and ever */
    double heard_at, pinged_at; /* of this attempt; 0: never */
    double asked_again;         /* a drain with an end has become one without; 0: never */
    bool unasked;               /* as last seen: a drain ends it in its time */
    uint64_t changes;           /* of the network, that its pool had seen when it was asked last, or began */
    uint64_t n_got, sent_got;   /* channels leased, and whose request was sent last */
    bool over;                  /* exclusive: it has ended; its holder may not know yet */
    struct seen_link *next;     /* of the same bucket */
};

struct peer {
    struct sim *sim;
    struct testing_peer *peer; /* NULL: crashed */
    char address[40];
    struct visit *visits; /* its connections */
    double late;          /* seconds to its answers */
    bool refuses, mute;   /* handshakes: says no; says nothing */
    bool dripped;         /* it ever said things in pieces: what comes late may come to another holder */
    bool drips;
    bool clogged;
    double thawed_at; /* what was sent while it was clogged, or dripped, came then at the latest */
    bool odd;         /* answers out of order, with errors, twice or never */
    bool denies;      /* requests: did nothing with them */
    unsigned wrongs;  /* what it has said that no framed link forgives */
};

/* A handle of an attempt that outside code keeps. */
struct kept {
    struct link_attempt attempt;
    uint32_t mark; /* 0: none */
};

struct sim {
    uint64_t seed, draws;
    struct profile p;
    struct testing *t;
    struct pool *pool; /* NULL: freed */
    struct pool_options options;
    struct pool_host_options host[3];
    struct backoff_policy backoff[3];
    struct pool_observer observer;
    struct peer peers[MAX_KEYS];
    struct key keys[MAX_KEYS];
    struct target targets[MAX_TARGETS];
    struct user users[MAX_USERS];
    struct caller callers[MAX_CALLERS];
    struct crowd crowds[MAX_CROWDS];
    struct asked *ledger; /* by id, from 1 */
    uint32_t n_asked, ledger_room;
    unsigned n_out; /* calls under way */
    uint64_t n_called, n_retried;
    double first_call;
    struct framed_options framed;
    struct heartbeat_policy heart[3];
    struct line *lines;
    struct seen_link *links[LINK_BUCKETS]; /* by id */
    unsigned n_links;
    unsigned depth, in_done, in_closed, in_bytes, in_drained;
    unsigned in_call, in_crowd;
    bool plain; /* no draw but those of games before there were calls */
    bool calm, draining, ticked;
    bool unsettled; /* too much went on to wait for the computed time */
    unsigned drains_told;
    uint64_t order, turns, events, actions;
    uint32_t serial;
    unsigned n_waiting, n_holding;
    double jumped_at;  /* the clock was set forward last then; before the jump */
    double jumped_to;  /* after it */
    double changed_at; /* the network, as the pool was told `changes` times */
    uint64_t changes;
    double longest;                           /* the longest time of any option so far */
    unsigned turn_moves, turn_actions, still; /* of this turn: transitions, actions; turns at one time */
    uint64_t turn_calls, were_there;
    double still_at;
    uint64_t still_most; /* of what there was, since time stood still */
    uint64_t trouble_turn, no_descriptors_turn, made_room_turn;
    unsigned made_room, max_hosts_seen;
    enum link_reason last_end; /* seen by the observer: the last end */
    uint64_t n_ends, seen_ends, memory_failures;
    struct linkpool_env env;
    bool hosts_went; /* in this turn */
    unsigned n_hosts;
    uint64_t log; /* the hash */
    bool verbose;
    struct rare rare;
    struct kept kept[MAX_KEPT];
    uint32_t marks;
};

/* ---- draws: splitmix64 of the seed and the number of the draw ---- */

static inline uint64_t draw(struct sim *s)
{
    uint64_t z = s->seed * 0xD1342543DE82EF95u + ++s->draws * 0x9E3779B97F4A7C15u;

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}
static inline unsigned below(struct sim *s, unsigned n)
{
    return n ? (unsigned)(draw(s) % n) : 0;
}
static inline bool once_in(struct sim *s, unsigned n)
{
    return !below(s, n);
}
static inline double unit(struct sim *s)
{
    return (double)(draw(s) >> 11) * 0x1p-53;
}
/** Log-uniform, near enough: an octave, then evenly within it. No function of libm, so that compilers agree. */
double sim__spread(struct sim *s, double low, double high);
unsigned sim__size(struct sim *s, unsigned low, unsigned high);

/* ---- what must hold ---- */

void sim__fail(const struct sim *s, const char *file, int line, const char *text) __attribute__((noreturn));
#define HOLDS(s, condition)                                                                                            \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            sim__fail((s), __FILE__, __LINE__, #condition);                                                            \
    } while (0)

/** One line of the log. */
void sim__note(struct sim *s, const char *what, uint64_t a, uint64_t b);
void sim__note_time(struct sim *s, const char *what, uint64_t a, double time);

/* ---- profile.c, world.c, owners.c, users.c, watch.c, check.c, play.c ---- */

void sim__profile(struct sim *s);
void sim__host_options(struct sim *s, int variant);
void sim__pool_options(struct sim *s);

void sim__world(struct sim *s);
bool sim__is_quiet(const struct sim *s, const struct link *link);
void sim__trouble(struct sim *s);
void sim__go_on(struct sim *s);
void sim__calm_world(struct sim *s);
void sim__world_end(struct sim *s);
int sim__key_of(const struct sim *s, const struct pool_host *host);
double sim__jump(struct sim *s);
static inline uint64_t sim__memory_failures(const struct sim *s)
{
    return s->memory_failures;
}

void sim__own(struct sim *s); /* something is done to hosts, targets or the pool */
void sim__free_pool(struct sim *s);
void sim__listed(struct sim *s, struct target *target, const bool *members, size_t n); /* the members it has now */
struct pool_host *sim__pin(struct sim *s, int key);
struct pool_endpoint sim__endpoint(struct sim *s, int key);
/* Whom a lease of a target that picks by hash is sent to; NULL: nobody is up, or the target picks otherwise. */
struct pool_host *sim__host_by_hash(const struct target *target, const struct pool_lease *lease);
void sim__line_new(struct sim *s, struct target *target);

void sim__use(struct sim *s, struct user *user); /* the next thing this user does */
void sim__ask(struct sim *s, struct user *user);
void sim__release(struct sim *s, struct user *user, enum pool_disposition disposition);
void sim__cancel(struct sim *s, struct user *user);
void sim__react(struct sim *s);

void sim__channel(struct sim *s, struct user *user); /* channel.c: bytes of a holder */
void sim__held(struct sim *s, struct user *user);
bool sim__is_done(const struct user *user);
bool sim__may_reuse(struct sim *s, const struct user *user);

void sim__defaults(struct pool_host_options *host); /* protocols.c: the transport and the protocol */

/* framed.c */
void framed__options(struct sim *s);
void framed__protocol(struct sim *s, struct protocol *protocol);
void framed__pinged(struct protocol *protocol);
bool framed__is_full(const struct link *link); /* something waits to be written */

/* signs.c */
void signs__policy(struct sim *s, struct heartbeat_policy *policy);
void signs__heard(struct sim *s, const struct link *link);
void signs__pinged(struct sim *s, const struct link *link);
void signs__check(struct sim *s, const struct link *link, const struct seen_link *seen);
void signs__lent(struct sim *s, const struct link *link); /* at once, to whoever had asked */
void signs__lent_to_call(struct sim *s, const struct caller *caller);

void sim__act(struct sim *s);
void sim__watch(struct sim *s);                                /* the observer */
struct seen_link *sim__seen(const struct sim *s, uint64_t id); /* NULL: no link has that id now */
void sim__links_end(struct sim *s);
void sim__forgive(struct sim *s); /* failures of every host are forgotten */
void sim__look_at_kept(struct sim *s);
double sim__longest_backoff(const struct sim *s);

void sim__check_turn(struct sim *s);
void sim__check_told(struct sim *s, struct user *user);
void sim__check_newcomer(struct sim *s, struct user *user);

bool sim__turn(struct sim *s);   /* one, and all checks. false: nothing is left to wait for */
void sim__settle(struct sim *s); /* calm.c: the faults stop */

/** Plays one seed. */
void sim__play(struct sim *s, uint64_t seed, bool plain, bool verbose);

#endif
