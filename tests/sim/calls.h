/* calls.h - those who call: requests over shared links, alone and in crowds, and what became of each. */
#ifndef LINKPOOL_TESTS_SIM_CALLS_H
#define LINKPOOL_TESTS_SIM_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "linkpool/call.h"

enum {
    MAX_CALLERS = 300,
    MAX_CROWDS = 8,
    MAX_CROWD = 24
};

struct sim;
struct target;

/** Makes one call after another. */
struct caller {
    struct pool_call *call;
    struct pool_call own; /* where it is no member of a crowd */
    struct sim *sim;
    struct crowd *crowd; /* NULL: none */
    bool out;            /* its call is under way, as far as it knows */
    int key;             /* which it asked for; -1: a target, then this */
    struct target *target;
    uint32_t id; /* of its request: no other has it */
    double asked, deadline;
    unsigned char *request;
    uint32_t decided; /* of its claim, as it had asked: another one means that it had won meanwhile */
    uint64_t got;     /* how manieth channel of its link it has */
};

/** Makes one group of calls after another. */
struct crowd {
    struct pool_fanout group;
    struct pool_call calls[MAX_CROWD];
    struct caller members[MAX_CROWD];
    struct sim *sim;
    bool out;
    double deadline;
};

/** A request, for as long as the game lasts: it may still be on its way when its call is over. */
struct asked {
    struct caller *who;           /* under way; else NULL */
    uint16_t received, processed; /* by peers: how often; of those, denied ones left out */
    uint16_t attempts;            /* over: how often it had a channel */
    uint8_t fate;                 /* over: enum pool_fate */
    bool answered, cancelled;     /* over: how */
    bool repeats;                 /* it may be sent twice */
    bool retries;
};

/* ledger.c */
uint32_t ledger__new(struct sim *s, struct caller *caller); /* its id, from 1 */
void ledger__over(struct sim *s, const struct caller *caller);
void ledger__received(struct sim *s, uint32_t id); /* a peer has it, and may do something with it */
void ledger__undone(struct sim *s, uint32_t id);   /* a peer says that it did nothing with it */
bool ledger__is_over(const struct sim *s, uint32_t id, bool *cancelled);
void ledger__free(struct sim *s);

/* calls.c */
void calls__begin(struct sim *s);
bool calls__wish(struct sim *s, struct caller *caller);  /* false: there is nobody to ask */
void calls__taken(struct sim *s, struct caller *caller); /* it is about to be asked for */
void calls__timed(
    struct sim *s, struct caller *caller); /* it was: by the pool's clock, which that brought up to date */
double calls__deadline(struct sim *s, double timeout);
void calls__over(struct sim *s, struct caller *caller); /* it is over, told or not */
void calls__act(struct sim *s);
void calls__free(struct sim *s); /* the pool has gone */
struct caller *calls__of_lease(const struct sim *s, const struct pool_lease *lease);
void calls__check(struct sim *s);          /* after a turn */
unsigned calls__back(const struct sim *s); /* in line again, since their link died, or they are tried again */
void calls__calm(struct sim *s);           /* those who would wait for ever give up */

/* crowds.c */
void crowds__begin(struct sim *s);
void crowds__act(struct sim *s);
void crowds__calm(struct sim *s);

#endif
