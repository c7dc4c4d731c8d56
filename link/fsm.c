/* fsm.c - the table of a link's states and events.
 *
 * Every cell is filled. IGNORE is what the outside may cause at any time and means nothing there; IMPOSSIBLE is what
 * only a fault of ours could cause. */
#include "link/fsm.h"

#define GO(state, act)                                                                                                 \
    {                                                                                                                  \
        .to = (state), .action = (act)                                                                                 \
    }
#define IGNORE                                                                                                         \
    {                                                                                                                  \
        .to = LINK_STATES, .action = LINK_DO_IGNORE                                                                    \
    }
#define IMPOSSIBLE                                                                                                     \
    {                                                                                                                  \
        .to = LINK_STATES, .action = LINK_DO_IMPOSSIBLE                                                                \
    }

/* clang-format off */
static const struct link_move table[LINK_STATES][LINK_EVENTS] = {
    [LINK_IDLE] = { /* no socket, no timer: nothing can arrive but what somebody asks for */
        [LINK_EV_START]     = GO(LINK_CONNECTING, LINK_DO_CONNECT),
        [LINK_EV_HOLD]      = GO(LINK_BACKOFF, LINK_DO_ARM_RETRY),
        [LINK_EV_UP]        = IMPOSSIBLE,
        [LINK_EV_READY]     = IMPOSSIBLE,
        [LINK_EV_RESET]     = IMPOSSIBLE,
        [LINK_EV_DRAIN]     = IGNORE,
        [LINK_EV_END_RETRY] = IMPOSSIBLE,
        [LINK_EV_END_REST]  = IMPOSSIBLE,
        [LINK_EV_END_OUT]   = IMPOSSIBLE,
        [LINK_EV_RETRY]     = IMPOSSIBLE,
        [LINK_EV_STOP]      = IGNORE,
        [LINK_EV_FREE]      = GO(LINK_CLOSED, LINK_DO_REST),
    },
    [LINK_CONNECTING] = { /* the socket is opening; the deadline of the attempt, or an earlier next try */
        [LINK_EV_START]     = IGNORE,
        [LINK_EV_HOLD]      = IGNORE,
        [LINK_EV_UP]        = GO(LINK_HANDSHAKING, LINK_DO_HANDSHAKE),
        [LINK_EV_READY]     = IGNORE, /* a protocol that speaks before its transport is up */
        [LINK_EV_RESET]     = IMPOSSIBLE,
        [LINK_EV_DRAIN]     = IGNORE,
        [LINK_EV_END_RETRY] = GO(LINK_BACKOFF, LINK_DO_ARM_RETRY),
        [LINK_EV_END_REST]  = GO(LINK_IDLE, LINK_DO_REST),
        [LINK_EV_END_OUT]   = GO(LINK_OFFLINE, LINK_DO_REST),
        [LINK_EV_RETRY]     = IMPOSSIBLE,
        [LINK_EV_STOP]      = GO(LINK_IDLE, LINK_DO_REST),
        [LINK_EV_FREE]      = IMPOSSIBLE,
    },
    [LINK_HANDSHAKING] = { /* the socket is open, its peer not yet known; the deadline of the attempt */
        [LINK_EV_START]     = IGNORE,
        [LINK_EV_HOLD]      = IGNORE,
        [LINK_EV_UP]        = IGNORE, /* a transport that says it twice */
        [LINK_EV_READY]     = GO(LINK_READY, LINK_DO_SERVE),
        [LINK_EV_RESET]     = IMPOSSIBLE,
        [LINK_EV_DRAIN]     = IGNORE, /* a protocol told to leave before it has come */
        [LINK_EV_END_RETRY] = GO(LINK_BACKOFF, LINK_DO_ARM_RETRY),
        [LINK_EV_END_REST]  = GO(LINK_IDLE, LINK_DO_REST),
        [LINK_EV_END_OUT]   = GO(LINK_OFFLINE, LINK_DO_REST),
        [LINK_EV_RETRY]     = IMPOSSIBLE,
        [LINK_EV_STOP]      = GO(LINK_IDLE, LINK_DO_REST),
        [LINK_EV_FREE]      = IMPOSSIBLE,
    },
    [LINK_READY] = { /* channels may be leased; age, or proof of stability, whichever is first */
        [LINK_EV_START]     = IGNORE,
        [LINK_EV_HOLD]      = IGNORE,
        [LINK_EV_UP]        = IGNORE,
        [LINK_EV_READY]     = IGNORE, /* a late second acknowledgement */
        [LINK_EV_RESET]     = GO(LINK_RESETTING, LINK_DO_CLEAN),
        [LINK_EV_DRAIN]     = GO(LINK_DRAINING, LINK_DO_FINISH),
        [LINK_EV_END_RETRY] = GO(LINK_BACKOFF, LINK_DO_ARM_RETRY),
        [LINK_EV_END_REST]  = GO(LINK_IDLE, LINK_DO_REST),
        [LINK_EV_END_OUT]   = GO(LINK_OFFLINE, LINK_DO_REST),
        [LINK_EV_RETRY]     = IMPOSSIBLE,
        [LINK_EV_STOP]      = GO(LINK_IDLE, LINK_DO_REST),
        [LINK_EV_FREE]      = IMPOSSIBLE,
    },
    [LINK_RESETTING] = { /* open, held by nobody, its session being cleaned; the reset deadline */
        [LINK_EV_START]     = IGNORE,
        [LINK_EV_HOLD]      = IGNORE,
        [LINK_EV_UP]        = IGNORE,
        [LINK_EV_READY]     = GO(LINK_READY, LINK_DO_SERVE),
        [LINK_EV_RESET]     = IMPOSSIBLE,
        [LINK_EV_DRAIN]     = IGNORE, /* it is looked at again when clean */
        [LINK_EV_END_RETRY] = GO(LINK_BACKOFF, LINK_DO_ARM_RETRY),
        [LINK_EV_END_REST]  = GO(LINK_IDLE, LINK_DO_REST),
        [LINK_EV_END_OUT]   = GO(LINK_OFFLINE, LINK_DO_REST),
        [LINK_EV_RETRY]     = IMPOSSIBLE,
        [LINK_EV_STOP]      = GO(LINK_IDLE, LINK_DO_REST),
        [LINK_EV_FREE]      = IMPOSSIBLE,
    },
    [LINK_DRAINING] = { /* open, its leases may finish; the drain deadline */
        [LINK_EV_START]     = IGNORE,
        [LINK_EV_HOLD]      = IGNORE,
        [LINK_EV_UP]        = IGNORE,
        [LINK_EV_READY]     = IGNORE,
        [LINK_EV_RESET]     = IMPOSSIBLE,
        [LINK_EV_DRAIN]     = IGNORE, /* a second notice */
        [LINK_EV_END_RETRY] = GO(LINK_BACKOFF, LINK_DO_ARM_RETRY),
        [LINK_EV_END_REST]  = GO(LINK_IDLE, LINK_DO_REST),
        [LINK_EV_END_OUT]   = GO(LINK_OFFLINE, LINK_DO_REST),
        [LINK_EV_RETRY]     = IMPOSSIBLE,
        [LINK_EV_STOP]      = GO(LINK_IDLE, LINK_DO_REST),
        [LINK_EV_FREE]      = IMPOSSIBLE,
    },
    [LINK_BACKOFF] = { /* no socket; the retry timer */
        [LINK_EV_START]     = IGNORE, /* use does not shorten a wait; link_start() while it waits changes nothing */
        [LINK_EV_HOLD]      = IGNORE,
        [LINK_EV_UP]        = IMPOSSIBLE,
        [LINK_EV_READY]     = IMPOSSIBLE,
        [LINK_EV_RESET]     = IMPOSSIBLE,
        [LINK_EV_DRAIN]     = IGNORE,
        [LINK_EV_END_RETRY] = IMPOSSIBLE,
        [LINK_EV_END_REST]  = IMPOSSIBLE,
        [LINK_EV_END_OUT]   = IMPOSSIBLE,
        [LINK_EV_RETRY]     = GO(LINK_CONNECTING, LINK_DO_CONNECT),
        [LINK_EV_STOP]      = GO(LINK_IDLE, LINK_DO_REST),
        [LINK_EV_FREE]      = IMPOSSIBLE, /* it is stopped first */
    },
    [LINK_OFFLINE] = { /* no socket, no timer: nobody tries any more */
        [LINK_EV_START]     = GO(LINK_CONNECTING, LINK_DO_CONNECT),
        [LINK_EV_HOLD]      = IGNORE,
        [LINK_EV_UP]        = IMPOSSIBLE,
        [LINK_EV_READY]     = IMPOSSIBLE,
        [LINK_EV_RESET]     = IMPOSSIBLE,
        [LINK_EV_DRAIN]     = IGNORE,
        [LINK_EV_END_RETRY] = IMPOSSIBLE,
        [LINK_EV_END_REST]  = IMPOSSIBLE,
        [LINK_EV_END_OUT]   = IMPOSSIBLE,
        [LINK_EV_RETRY]     = IMPOSSIBLE,
        [LINK_EV_STOP]      = GO(LINK_IDLE, LINK_DO_REST),
        [LINK_EV_FREE]      = IMPOSSIBLE,
    },
    [LINK_CLOSED] = { /* final: nothing leads out */
        [LINK_EV_START]     = IGNORE,
        [LINK_EV_HOLD]      = IGNORE,
        [LINK_EV_UP]        = IMPOSSIBLE,
        [LINK_EV_READY]     = IMPOSSIBLE,
        [LINK_EV_RESET]     = IMPOSSIBLE,
        [LINK_EV_DRAIN]     = IGNORE,
        [LINK_EV_END_RETRY] = IMPOSSIBLE,
        [LINK_EV_END_REST]  = IMPOSSIBLE,
        [LINK_EV_END_OUT]   = IMPOSSIBLE,
        [LINK_EV_RETRY]     = IMPOSSIBLE,
        [LINK_EV_STOP]      = IGNORE,
        [LINK_EV_FREE]      = IGNORE,
    },
};
/* clang-format on */

struct link_move link__move(enum link_state state, enum link_event event)
{
    return table[state][event];
}

enum link_action link__step(
    struct link_fsm *fsm, uint64_t generation, enum link_event event, struct link_fsm_counts *counts)
{
    struct link_move move = table[fsm->state][event];

    if (generation != fsm->generation) {
        counts->stale++;
        return LINK_DO_STALE;
    }
    if (move.action == LINK_DO_IGNORE)
        counts->ignored++;
    else if (move.action == LINK_DO_IMPOSSIBLE)
        counts->impossible++;
    else
        fsm->state = move.to;
    return (enum link_action)move.action;
}

const char *link_state_name(enum link_state state)
{
    static const char *const names[LINK_STATES] = {
        "idle", "connecting", "handshaking", "ready", "resetting", "draining", "backoff", "offline", "closed"};

    return (unsigned)state < LINK_STATES ? names[state] : "unknown";
}

const char *link__event_name(enum link_event event)
{
    static const char *const names[LINK_EVENTS] = {"start", "hold", "up", "ready", "reset", "drain", "end, retry",
        "end, rest", "end, out", "retry", "stop", "free"};

    return names[event];
}
