/* backoff.h - how long to wait before the next attempt. Pure arithmetic: no clock, no I/O, no allocation. */
#ifndef LINKPOOL_BACKOFF_H
#define LINKPOOL_BACKOFF_H

#include <stddef.h>

#include "symbols.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How the delay d, already capped, is spread by the draw. */
enum backoff_jitter {
    BACKOFF_NONE,         /* d itself */
    BACKOFF_PROPORTIONAL, /* uniform in [d * (1 - spread), d * (1 + spread)] */
    BACKOFF_HALF,         /* uniform in [d / 2, d] */
    BACKOFF_FULL          /* uniform in [0, d], at least `floor` */
};

/** What is known of the failures so far. */
struct backoff_history {
    unsigned attempt;  /* failures since it was last stable, this one included: from 1 */
    double elapsed;    /* seconds since the first of them */
    double last_delay; /* seconds: what was answered the last time; 0: nothing yet */
    int reason;        /* enum link_reason (link.h) of the last failure */
};

/** The answer "no more attempts": exactly this number, no other below 0. */
#define BACKOFF_STOP (-1.0)

/**
 * A policy: plain data, copied by whoever is given one. Begin with one of the presets and change what should differ.
 *
 * `size` lets both sides grow: members that an older caller's smaller struct does not have are those of
 * backoff_default, and members that only a newer caller knows are not read.
 */
struct backoff_policy {
    size_t size; /* sizeof (struct backoff_policy) */
    enum backoff_jitter jitter;
    double base;           /* seconds: the first delay; above 0, at most ten years */
    double factor;         /* each delay is so many times the last; at least 1 */
    double cap;            /* seconds: the most before jitter; at least base */
    double floor;          /* seconds: never less, whatever the jitter; 0 to cap */
    double spread;         /* of proportional jitter: 0.2 is +-20 %; 0 to 1 */
    unsigned max_attempts; /* the failure of this number is answered by BACKOFF_STOP: 1 never retries; 0: no limit */
    double stable_after;   /* seconds READY until the count goes back to 0; 0: at READY itself */
    /** Seconds: after a loss with no other link READY the next attempt waits a draw from [0, this]. */
    double reconnect_spread;
    /** The user's own rule instead of the formula, whose members (jitter, base, factor, cap, floor, spread) are then
     *  the user's to read or leave; max_attempts still holds, before it. It is given the policy as backoff_delay()
     *  was, and an attempt of at least 1. It answers seconds, or BACKOFF_STOP, and may call the reading functions
     *  only. What is negative otherwise or not a number is taken as 0, what is over ten years as ten years.
     *  NULL: the formula. */
    double (*delay)(const struct backoff_policy *policy, const struct backoff_history *history, double draw);
    void *data; /* the user's; never read */
};

/* The presets. None limits the attempts; all but the default have stable_after and reconnect_spread 0. */

/** The pool's: uniform in [d / 2, d], d = min(2, 0.2 * 2^(attempt - 1)) s; stable after 10 s, spread 0.25 s after a
 *  loss. */
extern const struct backoff_policy backoff_default;

extern const struct backoff_policy backoff_linkd;     /* 0.2 s, x2, cap 10, +-20 % */
extern const struct backoff_policy backoff_edge;      /* 1 s, x2, cap 60, +-30 % */
extern const struct backoff_policy backoff_grpc;      /* 1 s, x1.6, cap 120, +-20 % */
extern const struct backoff_policy backoff_heartbeat; /* 1 s, x2, cap 60, +-30 %: used after a lost heartbeat */
extern const struct backoff_policy backoff_signalr;   /* 1 s, x2, cap 60, +-20 %, at least 0.1 s */

/**
 * Returns the delay before the next attempt.
 *
 * min(cap, base * factor^(attempt - 1)), then the jitter, then at least `floor`: cap first, jitter after, as in
 * gRPC's "Connection Backoff Protocol" (doc/connection-backoff.md). The cost does not grow with the attempt.
 *
 * @param policy   read during the call only; it should have passed backoff_policy_check().
 * @param history  attempt is at least 1 (0 is taken as 1); any number is fine. The formula reads it alone.
 * @param draw     uniform in [0, 1); the caller owns the generator.
 * @return seconds, at most cap * (1 + spread) and ten years, or BACKOFF_STOP when the attempts are used up. With a
 *         policy that cannot be used it is still one of these: a number from 0 to ten years, or BACKOFF_STOP.
 */
double backoff_delay(const struct backoff_policy *policy, const struct backoff_history *history, double draw);

/**
 * Says whether a policy can be used. Members that its own `delay` replaces are not looked at.
 *
 * @param text  gets what is wrong, naming the first such member, its value and its range, cut to n with its NUL; left
 *              alone when nothing is; may be NULL with n 0.
 * @return 0, or LINKPOOL_EINVAL.
 */
int backoff_policy_check(const struct backoff_policy *policy, char *text, size_t n);

#ifdef __cplusplus
}
#endif
#endif
