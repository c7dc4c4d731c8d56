/* sweep.h - playing a scenario with one thing after the other failing; see scene.h. */
#ifndef LINKPOOL_TESTS_FAULTS_SWEEP_H
#define LINKPOOL_TESTS_FAULTS_SWEEP_H

#include "tests/faults/scene.h"

/** Asserts that what a lease says of its failure is what has failed. */
void sweep_is_right(const struct scene *scene, const struct pool_lease *lease);

/** Plays it with each allocation failing, once and all from there on, until it meets none. */
void sweep_memory(const struct scenario *scenario);

/** A call, and what it may say. */
struct sweep_pair {
    enum scene_call call;
    int error;               /* as scene_fault's */
    enum link_reason reason; /* of the end that comes of it, if one comes */
};
extern const struct sweep_pair sweep_pairs[];
extern const unsigned sweep_n_pairs;

/** Of a pair: it was met; and links of a pool have ended with its reason, where that is not one of the scenario's. */
struct sweep_seen {
    bool met, told;
};

/** Plays it with each call failing in each way, the first, the second, until it meets none. Marks what it has seen. */
void sweep_calls(const struct scenario *scenario, struct sweep_seen *seen);
/** The same, the first call alone of each pair that was not seen whole. */
void sweep_first_calls(const struct scenario *scenario, struct sweep_seen *seen);

#endif
