/* cases.c - the rows of the table of gates.
 *
 * A case runs one world, or two of the same seed where it compares, and writes down the figures that its gates name. */
#include "tests/sim/storm/cases.h"

#include <math.h>

static const double give_up = 300; /* seconds after its return: who is not back by then never will be */

const char *const figure_names[FIGURES] = {
    [MOST_BACK] = "99 % back after, s",
    [ALL_BACK] = "all back after, s",
    [CROWD] = "most attempts in 100 ms",
    [HANDSHAKES] = "handshakes a link",
    [AWAY_A_LINK] = "attempts a link while away",
    [AWAY_A_SECOND] = "attempts a second while away",
    [AWAY_IN_ONE_SECOND] = "most attempts in a second, after the first minute",
    [AWAY] = "attempts while away; a refusing server's + 1",
    [REFUSED] = "attempts while away of a server that refuses",
    [WASTED] = "wasted handshakes a link",
    [DEATHS_MISCOUNTED] = "deaths that are not one failure",
    [GAPS_OFF_THE_CURVE] = "gaps off the backoff curve",
    [BETWEEN_DEATHS] = "most attempts between two deaths",
    [THROUGHPUT] = "of the healthy throughput",
    [ATTEMPTS] = "of the healthy attempts",
    [NEIGHBOURS] = "of their opening alone",
};

/* ---- away, and back ---- */

static void note_away(struct storm *storm, struct result *result)
{
    double attempts = testing_peer_attempts(storm->server) - storm->struck_attempts;

    result->figures[AWAY] = attempts;
    result->figures[AWAY_A_LINK] = attempts / storm->wanted;
    result->figures[AWAY_A_SECOND] = attempts / storm->plan.pools / (testing_now(storm->t) - storm->struck);
}

static void note_back(struct storm *storm, struct result *result)
{
    double handshakes = (double)(testing_peer_accepted(storm->server) - storm->returned_accepted) / storm->wanted;

    result->figures[MOST_BACK] = storm->most_back - storm->returned;
    result->figures[ALL_BACK] = storm->all_back - storm->returned;
    result->figures[CROWD] = storm_crowd(storm, storm->struck_attempts, 0.1);
    result->figures[HANDSHAKES] = handshakes;
    result->figures[WASTED] = handshakes - 1;
}

static void be_away(struct storm *storm, const struct storm_case *this)
{
    storm_strike(storm, this->behaviour);
    storm_run_to(storm, this->away);
}

/* The turns of those who have given up are counted as well: the queue runs empty. */
static void come_back(struct storm *storm, struct result *result)
{
    storm_return(storm);
    storm_recover(storm, give_up);
    storm_run_to(storm, testing_now(storm->t) - storm->struck + 4096 / storm->plan.rate + 1);
    note_back(storm, result);
}

static void run_away(const struct storm_case *this, const struct storm_plan *plan, struct result *result)
{
    struct storm storm;

    storm_begin(&storm, plan);
    be_away(&storm, this);
    note_away(&storm, result);
    come_back(&storm, result);
    storm_end(&storm);
}

/* At the cap of the backoff no two probes are within a second. */
static void run_long_away(const struct storm_case *this, const struct storm_plan *plan, struct result *result)
{
    struct storm storm;
    unsigned first;

    storm_begin(&storm, plan);
    storm_strike(&storm, this->behaviour);
    storm_run_to(&storm, 60);
    first = testing_peer_attempts(storm.server);
    storm_run_to(&storm, this->away);
    note_away(&storm, result);
    result->figures[AWAY_IN_ONE_SECOND] = storm_crowd(&storm, first, 1 - 1e-6);
    come_back(&storm, result);
    storm_end(&storm);
}

/* Accepting and then resetting is to cost no more attempts than refusing does. */
static void run_as_refused(const struct storm_case *this, const struct storm_plan *plan, struct result *result)
{
    struct storm storm;

    storm_begin(&storm, plan);
    storm_strike(&storm, TESTING_REFUSE);
    storm_run_to(&storm, this->away);
    result->figures[REFUSED] = testing_peer_attempts(storm.server) - storm.struck_attempts;
    storm_end(&storm);
    storm_begin(&storm, plan);
    storm.rude = this->rude;
    be_away(&storm, this);
    note_away(&storm, result);
    come_back(&storm, result);
    storm_end(&storm);
}

/* ---- back, and dead again; handshakes that fail ---- */

static void run_dying(const struct storm_case *this, const struct storm_plan *plan, struct result *result)
{
    struct storm storm;

    storm_begin(&storm, plan);
    storm_strike(&storm, this->behaviour);
    storm_die_after(&storm, 1);
    storm_run_to(&storm, this->away);
    storm_die_after(&storm, 0);
    result->figures[DEATHS_MISCOUNTED] = storm.miscounted;
    result->figures[GAPS_OFF_THE_CURVE] = storm.off_the_curve;
    result->figures[BETWEEN_DEATHS] = storm.crowded;
    come_back(&storm, result);
    storm_end(&storm);
}

static void come_up(const struct storm_case *this, const struct storm_plan *plan, double failing, double *seconds,
    double *attempts, struct result *result)
{
    struct storm storm;

    storm_begin(&storm, plan);
    storm.failing = failing;
    storm_strike(&storm, this->behaviour);
    come_back(&storm, result);
    *seconds = storm.all_back - storm.struck;
    *attempts = testing_peer_attempts(storm.server) - storm.struck_attempts;
    storm_end(&storm);
}

static void run_failing(const struct storm_case *this, const struct storm_plan *plan, struct result *result)
{
    double healthy, healthy_attempts, seconds, attempts;

    come_up(this, plan, 0, &healthy, &healthy_attempts, result);
    come_up(this, plan, 0.3, &seconds, &attempts, result);
    result->figures[THROUGHPUT] = healthy / seconds;
    result->figures[ATTEMPTS] = attempts / healthy_attempts;
}

/* ---- neighbours ---- */

static double open_alone(const struct storm_plan *plan)
{
    struct storm_plan calm = *plan;
    struct storm storm;
    double begun, seconds;

    calm.links = 1;
    storm_begin(&storm, &calm);
    begun = testing_now(storm.t);
    storm_add_neighbours(&storm);
    storm_open_neighbours(&storm);
    seconds = storm.neighbours_opened - begun;
    storm_end(&storm);
    return seconds;
}

static void run_beside(const struct storm_case *this, const struct storm_plan *plan, struct result *result)
{
    struct storm storm;

    storm_begin(&storm, plan);
    storm_strike(&storm, this->behaviour);
    storm_add_neighbours(&storm);
    storm_run_to(&storm, this->away);
    note_away(&storm, result);
    come_back(&storm, result);
    result->figures[NEIGHBOURS] = (storm.neighbours_opened - storm.struck) / open_alone(plan);
    storm_end(&storm);
}

/* ---- the table ---- */

#define AT_MOST(figure, gate)                                                                                          \
    {                                                                                                                  \
        figure, gate, gate, false, NO_FIGURE                                                                           \
    }
#define AT_MOST_BY(figure, near, far)                                                                                  \
    {                                                                                                                  \
        figure, near, far, false, NO_FIGURE                                                                            \
    }
#define AT_LEAST(figure, gate)                                                                                         \
    {                                                                                                                  \
        figure, gate, gate, true, NO_FIGURE                                                                            \
    }
/* clang-format off */
#define AS_THE_FIRST(more)                                                                                             \
    AT_MOST_BY(MOST_BACK, 12 + (more), 18 + (more)), AT_MOST_BY(ALL_BACK, 13 + (more), 19 + (more)),                   \
    AT_MOST(CROWD, 200), AT_MOST(HANDSHAKES, 1.02), AT_MOST(AWAY_A_LINK, 0.1)
#define SLOW_SERVER   AT_MOST(ALL_BACK, 55), AT_MOST(WASTED, 0.02)
#define MANY_POOLS    AT_MOST(ALL_BACK, 90), AT_MOST(WASTED, 0.7)
#define AS_REFUSED    {AWAY, 1, 1, false, REFUSED}
#define HEALTHY_HOSTS AT_MOST(NEIGHBOURS, 1.1)

const struct storm_case storm_cases[] = {
    {"away 60 s, C 1000/s", run_away, 1000, 1, TESTING_REFUSE, false, 60, {AS_THE_FIRST(0)}},
    {"away 0.05 s, C 200/s", run_away, 200, 1, TESTING_REFUSE, false, 0.05, {SLOW_SERVER}},
    {"away 2 s, C 200/s", run_away, 200, 1, TESTING_REFUSE, false, 2, {SLOW_SERVER}},
    {"away 60 s, C 200/s", run_away, 200, 1, TESTING_REFUSE, false, 60, {SLOW_SERVER}},
    {"away 0.05 s, C 200/s, 100 pools", run_away, 200, 100, TESTING_REFUSE, false, 0.05, {MANY_POOLS}},
    {"away 2 s, C 200/s, 100 pools", run_away, 200, 100, TESTING_REFUSE, false, 2, {MANY_POOLS}},
    {"away 60 s, C 200/s, 100 pools", run_away, 200, 100, TESTING_REFUSE, false, 60, {MANY_POOLS}},
    {"away 1 h", run_long_away, 1000, 1, TESTING_REFUSE, false, 3600,
        {AT_MOST(AWAY_A_SECOND, 1), AT_MOST(AWAY_IN_ONE_SECOND, 1), AT_MOST(ALL_BACK, 13)}},
    {"black hole for 60 s", run_away, 1000, 1, TESTING_BLACK_HOLE, false, 60, {AS_THE_FIRST(3)}},
    {"accepts then resets for 60 s", run_as_refused, 1000, 1, TESTING_ACCEPT, true, 60, {AS_REFUSED}},
    {"greets then resets for 60 s", run_as_refused, 1000, 1, TESTING_ACCEPT_AND_RESET, false, 60, {AS_REFUSED}},
    {"dies 1 s after its first READY, for 60 s", run_dying, 1000, 1, TESTING_ACCEPT, false, 60,
        {AT_MOST(DEATHS_MISCOUNTED, 0), AT_MOST(GAPS_OFF_THE_CURVE, 0), AT_MOST(BETWEEN_DEATHS, 1000)}},
    {"30 % of handshakes fail", run_failing, 1000, 1, TESTING_ACCEPT, false, 0,
        {AT_LEAST(THROUGHPUT, 0.65), AT_MOST(ATTEMPTS, 1.5)}},
    {"away 60 s, C 1000/s, beside 49 healthy hosts", run_beside, 1000, 1, TESTING_REFUSE, false, 60,
        {AS_THE_FIRST(0), HEALTHY_HOSTS}},
    {"away 60 s, C 200/s, beside 49 healthy hosts", run_beside, 200, 1, TESTING_REFUSE, false, 60,
        {SLOW_SERVER, HEALTHY_HOSTS}},
    {"away 0.05 s, C 200/s, beside 49 healthy hosts", run_beside, 200, 1, TESTING_REFUSE, false, 0.05,
        {SLOW_SERVER, HEALTHY_HOSTS}},
    {"black hole for 60 s, beside 49 healthy hosts", run_beside, 1000, 1, TESTING_BLACK_HOLE, false, 60,
        {AS_THE_FIRST(3), HEALTHY_HOSTS}},
};
/* clang-format on */

const unsigned n_storm_cases = sizeof storm_cases / sizeof *storm_cases;
