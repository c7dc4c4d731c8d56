/* fsm.h - the state machine of a link: events in, states and actions out.
 *
 * Knows no socket, no clock and no loop. Who asks carries the action out. */
#ifndef LINKPOOL_LINK_FSM_H
#define LINKPOOL_LINK_FSM_H

#include <stdint.h>

#include "linkpool/link.h"

enum link_event {
    LINK_EV_START,     /* somebody wants it, or asks for it */
    LINK_EV_HOLD,      /* somebody wants it, but not before a moment: the spread after a loss */
    LINK_EV_UP,        /* the transport is up */
    LINK_EV_READY,     /* the handshake, or the cleaning, is done */
    LINK_EV_RESET,     /* given back, to be cleaned by its protocol */
    LINK_EV_DRAIN,     /* no new leases; those out may finish */
    LINK_EV_END_RETRY, /* the connection ceased; its keeper says: again, later */
    LINK_EV_END_REST,  /* the connection ceased; its keeper says: rest */
    LINK_EV_END_OUT,   /* the connection ceased; its keeper says: no more */
    LINK_EV_RETRY,     /* the retry timer rang */
    LINK_EV_STOP,      /* forget what is planned */
    LINK_EV_FREE,      /* for good */
    LINK_EVENTS
};

enum link_action {
    LINK_DO_NOTHING,
    LINK_DO_CONNECT,   /* a new attempt: open the transport, arm the deadline */
    LINK_DO_HANDSHAKE, /* let the protocol introduce itself */
    LINK_DO_SERVE,     /* offer its channels, arm age */
    LINK_DO_CLEAN,     /* arm the reset deadline */
    LINK_DO_FINISH,    /* arm the drain deadline */
    LINK_DO_ARM_RETRY, /* arm the retry timer; the socket is closed */
    LINK_DO_REST,      /* no socket, no timer */
    LINK_DO_IGNORE,    /* meant nothing here: counted */
    LINK_DO_STALE,     /* of an older attempt: counted */
    LINK_DO_IMPOSSIBLE /* cannot be: counted; in debug builds it asserts */
};

/** One cell. A cell left zero is a hole, and a test looks for it. */
struct link_move {
    uint8_t to;     /* enum link_state */
    uint8_t action; /* enum link_action */
};

struct link_fsm {
    uint64_t generation; /* of the attempt; 0: none yet */
    uint8_t state;       /* enum link_state; written by link__step() alone */
};

struct link_fsm_counts {
    uint64_t ignored, stale, impossible;
};

/** The cell of a state and an event. */
struct link_move link__move(enum link_state state, enum link_event event);

/**
 * Takes an event in.
 *
 * @param generation  of the attempt the event is of; another one than the machine's is dropped and counted.
 * @return what is to be done; the state is the new one already.
 */
enum link_action link__step(
    struct link_fsm *fsm, uint64_t generation, enum link_event event, struct link_fsm_counts *counts);

const char *link__event_name(enum link_event event);

#endif
