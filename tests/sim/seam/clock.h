/* clock.h - the system's clock and epoll_wait(), played: libev and the library run on time that goes when we say so.
 *
 * clock.c defines both functions. A program's own definitions come before the C library's for every shared library it
 * loads, libev too, so that nothing need be preloaded. While the clock is off they are the system's. */
#ifndef LINKPOOL_TESTS_SIM_SEAM_CLOCK_H
#define LINKPOOL_TESTS_SIM_SEAM_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/** What lies behind the descriptors: it moves before each look at them. */
struct clock_world {
    void *data;
    /** Does all that is due by `now`. @return the time of what is due next; INFINITY: nothing. */
    double (*move)(void *data, double now);
};

/** From now on time stands at `start` and is ours. @param world borrowed until clock_off(). */
void clock_on(double start, const struct clock_world *world);
void clock_off(void);

double clock_time(void);
/** Time goes on at once, whatever is due meanwhile: a process that was stopped, or was busy. */
void clock_leap(double seconds);
/** The machine sleeps: time stands still but for CLOCK_BOOTTIME. */
void clock_sleep(double seconds);

/** No poll waits beyond `end`; clock_reached() says that one would have. */
void clock_stop_at(double end);
bool clock_reached(void);
/** For when the loop waits for nothing: time goes on to what the world does next, or to the end. */
void clock_go_on(void);

/** Polls so far, those that brought something, and those that waited as long as they were told. */
struct clock_counts {
    uint64_t polls, ready, timed_out;
};
struct clock_counts clock_counts(void);

/** The last poll brought nothing. */
bool clock_was_quiet(void);
/** More polls than anything here needs, and no time has passed: something spins. */
bool clock_is_stuck(void);

#endif
