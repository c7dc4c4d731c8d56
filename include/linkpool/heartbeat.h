/* heartbeat.h - when a silent peer is asked for a sign of life, and when it is given up. Pure arithmetic: no clock, no
 * I/O, no allocation. */
#ifndef LINKPOOL_HEARTBEAT_H
#define LINKPOOL_HEARTBEAT_H

#include <stddef.h>
#include <stdint.h>

#include "symbols.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A policy: plain data, copied by whoever is given one. Begin with one of the presets and change what should differ.
 *
 * A link is healthy until an answer is missed; it is watched until the peer answers, or `misses` in a row end it. Any
 * byte from the peer is a sign of life; what we wrote is none.
 */
struct heartbeat_policy {
    size_t size;           /* sizeof (struct heartbeat_policy) */
    double interval;       /* seconds of silence until a probe; 0: no heartbeat; to ten years */
    double timeout;        /* seconds an answer is awaited, from when the probe was queued; above 0 */
    unsigned misses;       /* answers missed in a row that end the link; from 1 */
    double watch_interval; /* seconds from a missed answer to the next probe; 0: at once */
    double min, max;       /* seconds: the bounds of an interval that adapts, min above 0 and at most max; both 0: it
                              does not */
    double jitter;         /* up to this part of an interval a healthy link is asked sooner, by a draw at its birth, so
                              that links born together are not asked together: 0 to 0.5 */
};

/** The pool's: after 15 s of silence, or up to a tenth sooner, answered within 5 s, given up after 2. A peer that has
 * died is found in 25 s. The others have no jitter. */
extern const struct heartbeat_policy heartbeat_default;
/** None. */
extern const struct heartbeat_policy heartbeat_none;
/** An interval of 30 s that adapts between 10 and 90; once an answer is missed 5 s, and given up after 4 in all: in
 * 90 + 4 * 5 + 3 * 5 s at the latest. */
extern const struct heartbeat_policy heartbeat_adaptive;
/** After 15 s of silence, given up after three such periods: in 45 s. */
extern const struct heartbeat_policy heartbeat_edge;

/** What is known of a link's probes. */
struct heartbeat_history {
    unsigned probes;   /* sent since READY */
    unsigned streak;   /* answered in a row */
    unsigned misses;   /* not answered in a row */
    double round_trip; /* seconds: of the last answer; 0: none yet */
    unsigned eased;    /* how often the peer has complained of too many: each doubles a healthy link's interval */
};

/** Figures of all links of a pool. Intervals lie between two probes of a link, or a sign of life and a probe. */
struct heartbeat_stats {
    uint64_t probes, misses;        /* sent, and not answered */
    uint64_t transitions;           /* links that missed an answer while healthy, or were heard of again */
    double mean, shortest, longest; /* seconds: of intervals; 0: none yet */
    double p99;                     /* seconds: 99 of 100 intervals were shorter; in whole seconds up to 127 */
    double misses_a_minute;         /* over the last one to two minutes */
    unsigned due_at_once, most_due; /* probes of one turn of the loop: the last that had any, and the most so far */
};

/**
 * Returns how long after the last sign of life, or the last missed answer, the next probe is due.
 *
 * Healthy and adapting: `min` before the first probe; then min(max, max(min, interval - min(rtt / 100, 15) +
 * min(streak / 10, 20))) s, with whole milliseconds of the round trip and whole divisions: a long round trip makes
 * probes more frequent, two hundred answers in a row make them rarer. (The description it was taken from says the
 * opposite of the round trip, and 20 answers; its formula is what holds.)
 *
 * The jitter comes on top: a healthy link takes its draw's part off.
 *
 * @return seconds, from 0; INFINITY without a heartbeat.
 */
double heartbeat_interval(const struct heartbeat_policy *policy, const struct heartbeat_history *history);

/** Says whether a policy can be used. @param text  gets the first member at fault, its value and its range; may be NULL
 * with n 0. @return 0, or LINKPOOL_EINVAL. */
int heartbeat_policy_check(const struct heartbeat_policy *policy, char *text, size_t n);

#ifdef __cplusplus
}
#endif
#endif
