/* cell.h - one cell of the matrix: a world, a callback about to run, and a lease in a given state.
 *
 * Each cell has a pool with a host whose one link is fought for, a target, and a link on its own. When the callback
 * runs, a public function is called from within it; afterwards all is ended and each lease must have had one outcome.
 */
#ifndef LINKPOOL_TESTS_MATRIX_CELL_H
#define LINKPOOL_TESTS_MATRIX_CELL_H

#include <stdbool.h>

#include "linkpool/linkpool.h"
#include "linkpool/testing.h"

/** Where the lease is when the function is called. */
enum cell_lease {
    LEASE_OVER,    /* it was held, and given back */
    LEASE_WAITING, /* in line */
    LEASE_WON,     /* has won, and was not told yet */
    LEASE_HELD,
    LEASE_FAILED, /* has failed, and was not told yet */
    LEASE_LOST,   /* its channel was taken away, and it was not told yet */
};

/** Which callback the function is called from. */
enum cell_from {
    FROM_DONE,
    FROM_DONE_OF_FREE, /* pool_free() runs it */
    FROM_CLOSED,
    FROM_CLOSED_OF_FREE,
    FROM_READABLE,
    FROM_WRITABLE,
    FROM_MESSAGE,
    FROM_ERROR, /* of a channel */
    FROM_PART,
    FROM_POOL_DRAINED,
    FROM_TARGET_DRAINED,
    FROM_TIMER, /* testing_at() */
    FROM_CALL_PART,
    FROM_CALL_DONE,
    FROM_CALL_DONE_OF_FREE,
    FROM_FANOUT_DONE,
    FROM_FANOUT_DONE_OF_FREE,
    FROM_CONNECTING,
    FROM_CONNECTED,
    FROM_DISCONNECTED,
    FROM_RECONNECT,
    FROM_STOPPED,
    FROMS
};

/** A lease and what it was told. */
struct cell_user {
    struct pool_lease lease;
    struct cell *cell;
    bool held;                  /* it has, or had, a channel */
    bool asked, held_at_once;   /* acquired; READY was the answer */
    unsigned done, closed;      /* times told */
    unsigned gave_up, released; /* pool_cancel() and pool_release() that said 0 */
    unsigned forgotten;         /* by pool_after_fork() */
};

/** A call, or two as a group, and what they were told. */
struct cell_calls {
    struct pool_call calls[2];
    struct pool_fanout group;
    struct cell *cell;
    bool is_group;
    unsigned asked, told, gave_up;
    unsigned forgotten; /* by pool_after_fork() */
};

struct cell {
    const char *function; /* for messages */
    void (*call)(struct cell *cell);
    enum cell_from from;
    enum cell_lease lease; /* of the subject, as it is when `call` runs */
    struct testing *t;
    struct testing_peer *own_peer;
    struct driver *own_driver;
    struct pool *pool;           /* NULL: freed */
    struct pool_host *host;      /* the subject's; pinned; NULL: dropped */
    struct pool_target *target;  /* NULL: removed */
    struct link *own;            /* on its own; NULL: freed */
    struct channel *own_channel; /* of that link, while connected */
    struct cell_user subject, trigger, blocker;
    struct cell_calls calls, trigger_calls;
    bool freeing; /* pool_free() is under way, and told the callback */
    bool pool_drains, target_drains;
    bool fired;
    unsigned drains_asked, drains_told;
};

const char *cell_from_name(enum cell_from from);
const char *cell_lease_name(enum cell_lease lease);

/** Can the lease be in that state when this callback runs? */
bool cell_exists(enum cell_from from, enum cell_lease lease);

/** Plays the cell from its beginning to its end, and asserts what must hold of any. */
void cell_play(struct cell *cell);

/** Asserts that a result is the expected one, naming the cell where it is not. */
void cell_expect(const struct cell *cell, const char *what, long actual, long expected);

/** For functions that take a lease: fills the callbacks of the subject, and notes what was answered. */
struct pool_lease *cell_prepare(struct cell_user *user);
int cell_asked(struct cell_user *user, int status);

/** Fills the first call, or the group, for a peer that answers, or at `address`, where none does. */
void cell_prepare_calls(struct cell *cell, struct cell_calls *calls, bool is_group, const char *address);

/** A drain was asked for: its `done` must be told once, unless what drains goes first. */
void cell_on_pool_drained(struct pool *pool, void *data);
void cell_on_target_drained(struct pool_target *target, void *data);

#endif
