/* cases.h - the storms that are run, what is measured in each, and how good that must be. */
#ifndef LINKPOOL_TESTS_SIM_STORM_CASES_H
#define LINKPOOL_TESTS_SIM_STORM_CASES_H

#include <stdint.h>

#include "tests/sim/storm/storm.h"

enum figure {
    NO_FIGURE, /* ends a list of gates */
    MOST_BACK,
    ALL_BACK,
    CROWD,
    HANDSHAKES,
    AWAY_A_LINK,
    AWAY_A_SECOND,
    AWAY_IN_ONE_SECOND,
    AWAY,
    REFUSED,
    WASTED,
    DEATHS_MISCOUNTED,
    GAPS_OFF_THE_CURVE,
    BETWEEN_DEATHS,
    THROUGHPUT,
    ATTEMPTS,
    NEIGHBOURS,
    FIGURES
};

extern const char *const figure_names[FIGURES];

struct result {
    double figures[FIGURES];
};

struct gate {
    enum figure figure;
    double near, far;   /* at a short round trip, and at 50 ms */
    bool least;         /* the figure must be at least so much; else at most */
    enum figure beyond; /* so much beyond the mean of this one */
};

struct storm_case {
    const char *name;
    void (*run)(const struct storm_case *this, const struct storm_plan *plan, struct result *result);
    double rate;
    unsigned pools;
    enum testing_behaviour behaviour; /* while it is away */
    bool rude;                        /* see struct storm */
    double away;                      /* seconds */
    struct gate gates[8];
};

extern const struct storm_case storm_cases[];
extern const unsigned n_storm_cases;

#endif
