/* heartbeat.h - a link's sign of life: what is known of it, and what is done as time passes. */
#ifndef LINKPOOL_LINK_HEARTBEAT_H
#define LINKPOOL_LINK_HEARTBEAT_H

#include <stdbool.h>
#include <stdint.h>

#include "linkpool/heartbeat.h"

struct link;
struct link_core;

enum {
    HEARTBEAT_EASED = 6,     /* doublings: a peer that goes on complaining is asked 64 times less */
    HEARTBEAT_SECONDS = 128, /* of the histogram; the last holds what is longer */
    HEARTBEAT_MANY = 100     /* probes due at once, of which the observer is told */
};

/** Of all links of a core. */
struct link_heartbeat_figures {
    uint64_t probes, misses, transitions;
    double shortest, longest, sum; /* seconds between the probes of a link, or from its last sign of life */
    uint64_t of_seconds[HEARTBEAT_SECONDS];
    double minute; /* number of the minute that misses_now counts; misses_before: the one before it */
    unsigned misses_now, misses_before;
    uint64_t turn; /* of the driver, that `due` counts */
    unsigned due, most_due;
};

/** Behind a link whose protocol can ask, or whose owner bounds its silence: see LINK_HEARS. */
struct link_heartbeat {
    struct heartbeat_history history; /* `eased`: as it was when it was READY, or asked last; its owner's may be more */
    double heard_at;                  /* something came, or it was READY */
    double sent_at;                   /* the last probe */
    double held_at;                   /* from when on somebody holds it */
    unsigned owed;                    /* answers that protocol_pong() has not told of */
    bool asking : 1;                  /* nothing came since the last probe was sent, and its time is not up */
    bool unarmed : 1;                 /* the timer was set while it was leased whole, and knows of no probe */
    uint8_t doubt;                    /* enum link_doubt */
    uint16_t unsettled;               /* exclusive: answers missed since it last owed none */
};

enum link_doubt {
    DOUBT_NONE,
    DOUBT_CAST, /* what was known of it is of a time before the network changed: it is to be asked */
    DOUBT_ASKED /* it has been since */
};

void link__heartbeat_stats(const struct link_core *core, struct heartbeat_stats *stats);
struct heartbeat_policy link__heartbeat_whole(const struct heartbeat_policy *given);

/* All of them do nothing where a link has none. */
void link__heartbeat_reset(struct link *link);  /* a new attempt: nothing is known of it */
void link__heartbeat_begin(struct link *link);  /* READY */
void link__heartbeat_lent(struct link *link);   /* somebody holds it from now on */
void link__heartbeat_armed(struct link *link);  /* READY: the timer was set for what is due */
void link__heartbeat_sooner(struct link *link); /* READY: the timer rings in time for what is due */
void link__heard(struct link *link);            /* something came */
bool link__doubt(struct link *link);            /* asks it soon, before it is lent again; false: it cannot be asked */
bool link__can_be_asked(const struct link *link);
double link__heartbeat_due(const struct link *link); /* INFINITY: never */
bool link__heartbeat_rang(struct link *link);        /* READY: does what is due; false: the link has ended */
double link__answer_due(const struct link *link);    /* of the probe under way; -INFINITY: there is none */

#endif
