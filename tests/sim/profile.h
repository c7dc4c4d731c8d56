/* profile.h - what kind of a game a seed is: sizes, times, and how hostile its world. */
#ifndef LINKPOOL_TESTS_SIM_PROFILE_H
#define LINKPOOL_TESTS_SIM_PROFILE_H

#include <stdbool.h>

struct profile {
    unsigned hostility; /* 0, calm, to 4 */
    unsigned n_addresses, n_keys, n_targets, n_users, n_steps;
    unsigned burst;         /* users that ask at once, at most */
    double gap;             /* seconds between two steps, the middle */
    unsigned jump, trouble; /* once in so many steps: the clock leaps, something goes wrong; 0: never */
    unsigned patience;      /* how long holders hold: of so many steps of theirs one is the return */
    unsigned react;         /* once in so many callbacks something is done within */
    bool system_fails, memory_fails, descriptors_fail;
    bool small_bounds;
    bool aims;  /* steps meet the library's timers */
    bool frees; /* the pool is drained, and freed from inside callbacks */
    unsigned rooms;
    unsigned send_buffer;         /* bytes; 0: as many as there are */
    unsigned n_callers, n_crowds; /* 0: a plain game, without calls, framed links and heartbeats */
};

#endif
