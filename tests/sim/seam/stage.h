/* stage.h - what a scenario is played on: the library's own virtual world, or libev and the kernel.
 *
 * A stage has a driver, an env, a clock, and peers at far ends. stage_virtual.c is the testing kit. stage_real.c is a
 * libev loop on the clock of clock.h, with real descriptors: "unix:" addresses are real sockets on a real listener;
 * others are socket pairs, which a table of far ends (ends.c) makes look like TCP. */
#ifndef LINKPOOL_TESTS_SIM_SEAM_STAGE_H
#define LINKPOOL_TESTS_SIM_SEAM_STAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "linkpool/driver.h"
#include "linkpool/testing.h"

struct stage {
    const char *name;
    const struct linkpool_env *env;
    void *data;                                    /* for the next */
    void (*turned)(void *data);                    /* after each turn of the loop */
    bool stuck;                                    /* something spins: the run was given up */
    struct driver *(*driver)(struct stage *stage); /* a new one */
    double (*now)(struct stage *stage);
    void (*run)(struct stage *stage, double seconds);
    void (*leap)(struct stage *stage, double seconds);  /* the clock goes on and nothing else does */
    void (*sleep)(struct stage *stage, double seconds); /* the machine */
    void (*refresh)(struct stage *stage);               /* the loop looks at the clock: ev_now_update() */
    bool (*waits)(struct stage *stage);                 /* something keeps the loop from ending */
    void (*at)(struct stage *stage, double seconds, void (*fn)(void *data), void *data); /* from now: a user's timer */
    /* The same at that very time, in the poll that also brings what peers do then: a user's descriptor. */
    void (*knock)(struct stage *stage, double seconds, void (*fn)(void *data), void *data);
    unsigned (*descriptors)(struct stage *stage); /* the library's that are open */
    void (*cancel_timers)(struct stage *stage);   /* of at() */
    const char *(*misuse)(struct stage *stage);   /* NULL: none */
    void (*free)(struct stage *stage);

    /* Peers, by number, as the functions of these names in testing.h. */
    void (*peer)(struct stage *stage, unsigned i, const char *address, enum testing_behaviour behaviour);
    void (*behave)(struct stage *stage, unsigned i, enum testing_behaviour behaviour);
    void (*echo)(struct stage *stage, unsigned i, bool on);
    void (*greet)(struct stage *stage, unsigned i, const char *text);
    void (*delay)(struct stage *stage, unsigned i, double connect, double answer);
    void (*say)(struct stage *stage, unsigned i, const char *text);
    void (*cut)(struct stage *stage, unsigned i, enum link_reason how);
    void (*window)(struct stage *stage, unsigned i, size_t bytes);
    unsigned (*accepted)(struct stage *stage, unsigned i);
    unsigned (*open)(struct stage *stage, unsigned i);
    size_t (*bytes)(struct stage *stage, unsigned i); /* that it has read */
};

enum {
    STAGE_PEERS = 8
};

/** The clocks of both begin at 1000. */
struct stage *stage_virtual(void);
struct stage *stage_real(void);

#endif
