/* call.h - what calls and groups of them know of each other, and the pool of both. */
#ifndef LINKPOOL_POOL_CALL_H
#define LINKPOOL_POOL_CALL_H

#include <utlist.h>

#include "linkpool/call.h"
#include "pool/internal.h"

enum call_stage {
    CALL_OVER,    /* not ours: before, and after */
    CALL_WAITING, /* for a channel */
    CALL_SENDING, /* has one, and the request is not taken yet */
    CALL_SENT
};

/** What is kept of a call in its `lib`. What most calls do without lies first, beside what they do without in the call
 * and its lease, and is not touched: the rest is one line of cache. */
struct call_state {
    struct pool_target *target;     /* is_kept: whom to ask again; or */
    struct pool_host *host;         /* pinned: the same; neither: it is not to be tried again */
    struct pool_host *avoided;      /* is_kept, pinned: the host of the last try; NULL: none */
    struct call_state *prev, *next; /* is_queued: in its link's `unsent` */
    bool *over;                     /* is_telling: set when what it is told ends it */
    struct pool *pool;
    struct pool_fanout *group; /* NULL: none */
    struct link_node timer;    /* its deadline, and with has_timer its timer; from asking to the answer */
    struct call_state *clock_prev, *clock_next; /* in the pool's `clocked`; prev NULL: it is not */
    double sent_at;                             /* when the protocol took it */
    unsigned retries_left;
    uint8_t stage; /* enum call_stage */
    bool has_timer : 1;
    bool is_kept : 1;    /* it may be tried again */
    bool is_queued : 1;  /* sending: not while it is being taken */
    bool is_telling : 1; /* a piece is being told */
    bool has_words : 1;  /* from a use before this one perhaps */
    uint16_t silences;   /* its link's, when it was sent */
};

/** What is kept of a group in its `lib`. */
struct fanout_state {
    struct pool *pool;
    struct link_node timer;           /* its deadline */
    struct fanout_state *prev, *next; /* decided, and to be told; prev NULL: it is not */
    size_t pending;                   /* calls under way */
    bool is_under_way;
};

static inline struct call_state *call__state(const struct pool_call *call)
{
    return (struct call_state *)call->lib;
}
static inline struct fanout_state *fanout__state(const struct pool_fanout *group)
{
    return (struct fanout_state *)group->lib;
}

static inline double call__deadline(const struct call_state *state) /* INFINITY: none */
{
    return state->clock_prev || state->has_timer ? state->timer.due : (double)INFINITY;
}

static inline struct pool_call *call__of_state(const struct call_state *state)
{
    return (struct pool_call *)((const char *)state - offsetof(struct pool_call, lib));
}
static inline struct pool_call *call__of_lease(const struct pool_lease *lease) /* of a call's lease */
{
    return (struct pool_call *)((const char *)lease - offsetof(struct pool_call, lease));
}

/* call.c */
int call__start(struct pool *pool, struct pool_call *call, struct pool_fanout *group);
void call__skip(struct pool_call *call, int status);    /* not under way: it is not even started */
void call__give_up(struct pool_call *call, int status); /* under way; nothing is told */
void call__rang(struct link_node *timer);
bool call__waits_with_too_much(
    const struct pool_lease *lease);                       /* of a call that begins: by the pool's bound of bytes */
void call__forget(struct pool_lease *lease);               /* after a fork; of no call: nothing */
size_t call__unsent_bytes(const struct pool_lease *lease); /* what it has of the pool's call_bytes; of no call: 0 */
void call__tell(struct pool_call *call, int status);       /* its outcome: touch nothing after it */

/* call_clock.c */
void call__clock_arm(struct pool *pool);
int call__clock_alone(struct pool *pool, struct call_state *state, double due); /* with a timer of its own */
void call__clock_stop_alone(struct call_state *state);
void call__clock_rang(struct pool *pool);

/* Whoever is due now rings first: see call__clock_rang(). */
static inline bool call__clock_is_next(const struct pool *pool, double due)
{
    return due > pool__now(pool) && (!pool->clocked || due >= pool->clocked->clock_prev->timer.due);
}
static inline int call__clock_start(struct pool *pool, struct call_state *state, double due) /* 0, or LINKPOOL_ENOMEM */
{
    if (due == (double)INFINITY)
        return 0;
    if (!call__clock_is_next(pool, due))
        return call__clock_alone(pool, state, due);
    state->timer.due = due;
    DL_APPEND2(pool->clocked, state, clock_prev, clock_next);
    if (!link__node_is_set(&pool->call_timer) || pool->clocked->timer.due < pool->call_timer.due)
        call__clock_arm(pool);
    return 0;
}
static inline void call__clock_stop(struct call_state *state)
{
    if (state->clock_prev) {
        DL_DELETE2(state->pool->clocked, state, clock_prev, clock_next);
        state->clock_prev = NULL;
    } else if (state->has_timer) {
        call__clock_stop_alone(state);
    }
}

/* call_link.c */
int call__use(struct pool_call *call); /* it has a channel. 0, or an error: the channel is given back */
void call__give_back(struct pool_call *call);
void call__stop_waiting(struct pool_call *call); /* the same, as its time is up */
void call__lost(struct pool_call *call);         /* its channel was taken away */

/* fanout.c */
/** One of its calls is over: that may decide it. */
void fanout__count(struct pool_fanout *group, int status);
void fanout__rang(struct link_node *timer);
void fanout__tell(struct pool *pool);           /* those decided by now */
void fanout__forget(struct pool_fanout *group); /* after a fork; not under way: nothing */
void fanout__forget_all(struct pool *pool);     /* the same, of those decided */

_Static_assert(sizeof(struct call_state) <= sizeof((struct pool_call *)0)->lib, "a call's own fits");
_Static_assert(sizeof(struct fanout_state) <= sizeof((struct pool_fanout *)0)->lib, "a group's own fits");

#endif
