/* scene.h - a scenario that is played again and again while something fails: first the first allocation, then the
 * second, and so on; and likewise each system call.
 *
 * Between the pool and the system lies an env that counts each call and lets the one fail that is its turn. A scenario
 * goes on whatever fails: it asks for what it wants, takes what it gets, and looks only at what must hold in any case.
 * When it is over the faults are, too: the pool is checked, serves as ever, and leaves nothing. */
#ifndef LINKPOOL_TESTS_FAULTS_SCENE_H
#define LINKPOOL_TESTS_FAULTS_SCENE_H

#include <stdbool.h>

#include "tests/fakes/world.h"

#define ADDRESS "10.0.0.1:80" /* echo, as are the next two */
#define OTHER   "10.0.0.2:80"
#define THIRD   "10.0.0.3:80"
#define SOCKET  "unix:/run/echo.sock" /* echoes, as does the next */
#define SIXTH   "[fd00::1]:80"
#define REFUSES "10.0.9.1:80"
#define SILENT  "10.0.9.2:80" /* takes no connection and says nothing */
#define CLOSES  "10.0.9.3:80" /* accepts, and closes */
#define RESETS  "10.0.9.4:80" /* accepts, and resets */

enum {
    USERS = 24,
    HANDLES = 8,
    SCENE_PEERS = 9,
    SCENE_LINKS = 3,
    SHORT = -1,        /* of recvmsg() and sendmsg(): one byte moves */
    IN_VALUE = 1 << 16 /* with an errno, of getsockopt(): the call succeeds, and this is the socket's error */
};

enum scene_call {
    CALL_SOCKET,
    CALL_CONNECT,
    CALL_BIND,
    CALL_SETSOCKOPT,
    CALL_GETSOCKOPT,
    CALL_RECVMSG,
    CALL_SENDMSG,
    CALL_SHUTDOWN,
    CALL_CLOSE,
    CALLS,
    CALL_NONE = -1
};

/** What fails: the `at`-th call of a kind (0: none), or all from there on. */
struct scene_fault {
    int call;  /* enum scene_call, or CALL_NONE: an allocation */
    int error; /* an errno, SHORT, or an errno and IN_VALUE */
    unsigned at, count;
    bool from_then, met;
};

struct scene {
    struct fake_world world;
    struct linkpool_env env; /* the world's, but for the fault */
    struct scene_fault fault;
    struct testing_peer *peers[SCENE_PEERS];
    struct fake_user users[USERS];
    const char *serves; /* where a normal use goes when all is over; ADDRESS at first */
    bool pool_ends;     /* the scenario drains or frees its pool: a normal use is one of a new pool */
    bool ends_leases; /* it ends leases by drains and removals, or meets bounds: LINKPOOL_ECLOSED and EFULL are right */
    bool natural;     /* things fail in it without any fault */
    int natural_errno; /* and with this errno, where it is not 0 */
    struct pool_observer observer;
    struct driver *driver; /* of links on their own */
    struct link *links[SCENE_LINKS];
    unsigned n_connected[SCENE_LINKS], n_disconnected[SCENE_LINKS];
    struct link_attempt handles[HANDLES];
    unsigned n_handles;
    size_t looks_for; /* a new block of this size says that something has grown */
    bool has_found;
    unsigned (*own_timers)(void); /* of calls and groups under way; NULL: none */
    unsigned edge;                /* how many of something make what grows stand at its edge */
};

struct scenario {
    const char *name;
    void (*options)(struct scene *scene); /* of the pool and its hosts, before it is made; may be NULL */
    void (*before)(
        struct scene *scene); /* without faults, the pool made; may be NULL. Then the pool's making never fails
                               */
    void (*play)(struct scene *scene);
};

/* ---- what scenarios are made of: each does nothing where an earlier failure has left nothing to do it with ---- */

struct fake_user *scene_ask(struct scene *scene, unsigned i, const char *text);
struct fake_user *scene_ask_host(struct scene *scene, unsigned i, struct pool_host *host);
struct fake_user *scene_ask_target(struct scene *scene, unsigned i, struct pool_target *target);
void scene_cancel(struct scene *scene, unsigned i);
void scene_release(struct scene *scene, unsigned i, enum pool_disposition disposition);
void scene_run(struct scene *scene, double seconds);
/** Each holder says a byte, hears the answer, and keeps the channel. */
void scene_exchange(struct scene *scene);
/** Each lease is given back, or given up. */
void scene_give_all_back(struct scene *scene);
struct testing_peer *scene_peer(struct scene *scene, const char *address);

/** NULL only without memory. */
struct pool_host *scene_host(struct scene *scene, const char *address);
struct pool_host *scene_host_for(
    struct scene *scene, const struct pool_endpoint *endpoint, const struct pool_host_options *options);
struct pool_host *scene_protocol(struct scene *scene, const char *address, const struct protocol *protocol);
struct pool_target *scene_target(struct scene *scene, const char *name, const struct pool_target_options *options);
/** A target of ADDRESS and OTHER. */
struct pool_target *scene_pair(struct scene *scene, const char *name, const struct pool_picker *picker);
void scene_update(struct scene *scene, struct pool_target *target, const char *const *addresses, size_t n);

/** The i-th link on its own, started. */
struct link *scene_link(struct scene *scene, unsigned i, const struct link_options *options);
/** Options that count what its owner is told. */
void scene_link_options(struct scene *scene, struct link_options *options);

/** What holds in any case: pool__check() of everything, and what each lease says. */
void scene_check(struct scene *scene);

#endif
