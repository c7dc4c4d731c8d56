/* backoff.c - the delay before the next attempt, from a policy and what is known of the failures.
 *
 * Every answer is BACKOFF_STOP or a number from 0 to ten years, whatever the policy, the history, the draw or
 * the user's own rule say; a policy that backoff_policy_check() accepts gets what the header promises.
 * Arithmetic alone: no clock, no I/O, no allocation, no state. */
#include <linkpool/backoff.h>

#include <float.h>
#include <linkpool/error.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The longest relative time the library knows. A double still tells nanoseconds apart at a hundred days, and
 * microseconds well past this. */
#define TEN_YEARS (10 * 365.25 * 86400)

/* The pool's. Half jitter: a host has one probe, so the draw need not part many, only keep processes out of step. */
const struct backoff_policy backoff_default = {
    .size = sizeof(struct backoff_policy),
    .jitter = BACKOFF_HALF,
    .base = 0.2,
    .factor = 2,
    .cap = 2,
    .stable_after = 10,
    .reconnect_spread = 0.25,
};

/* The Netty "linkd" reconnect handler's. */
const struct backoff_policy backoff_linkd = {
    .size = sizeof(struct backoff_policy),
    .jitter = BACKOFF_PROPORTIONAL,
    .base = 0.2,
    .factor = 2,
    .cap = 10,
    .spread = 0.2,
};

/* The table-driven TCP client's, on an edge box. */
const struct backoff_policy backoff_edge = {
    .size = sizeof(struct backoff_policy),
    .jitter = BACKOFF_PROPORTIONAL,
    .base = 1,
    .factor = 2,
    .cap = 60,
    .spread = 0.3,
};

/* gRPC's, as in its "Connection Backoff Protocol" (doc/connection-backoff.md). */
const struct backoff_policy backoff_grpc = {
    .size = sizeof(struct backoff_policy),
    .jitter = BACKOFF_PROPORTIONAL,
    .base = 1,
    .factor = 1.6,
    .cap = 120,
    .spread = 0.2,
};

/* The adaptive heartbeat's, once it has given a peer up. */
const struct backoff_policy backoff_heartbeat = {
    .size = sizeof(struct backoff_policy),
    .jitter = BACKOFF_PROPORTIONAL,
    .base = 1,
    .factor = 2,
    .cap = 60,
    .spread = 0.3,
};

/* The SignalR retry policy's: never under a tenth of the first delay. */
const struct backoff_policy backoff_signalr = {
    .size = sizeof(struct backoff_policy),
    .jitter = BACKOFF_PROPORTIONAL,
    .base = 1,
    .factor = 2,
    .cap = 60,
    .floor = 0.1,
    .spread = 0.2,
};

/* The whole of a policy: what an older caller's smaller struct does not have is the default's. */
struct backoff_policy backoff__whole(const struct backoff_policy *policy)
{
    struct backoff_policy whole = backoff_default;

    memcpy(&whole, policy, policy->size < sizeof whole ? policy->size : sizeof whole);
    return whole;
}

/* min(cap, base * factor^(attempt - 1)) by squaring, so that 32 rounds are the most, even with a factor that is
 * barely above 1. A power that overflows is infinite, and so over the cap. */
static double grow(const struct backoff_policy *policy, unsigned attempt)
{
    double delay = policy->base;
    double power = policy->factor;

    for (unsigned left = attempt - 1; left > 0 && delay < policy->cap; left >>= 1) {
        if (left & 1)
            delay *= power;
        power *= power;
    }
    return delay < policy->cap ? delay : policy->cap;
}

/* Centred on the draw, 2 * draw - 1 is exact at both ends, and rounding never leads out of the promised range. */
static double spread_out(const struct backoff_policy *policy, double delay, double draw)
{
    switch (policy->jitter) {
    case BACKOFF_NONE:
        break;
    case BACKOFF_PROPORTIONAL:
        return delay * (1 + policy->spread * (2 * draw - 1));
    case BACKOFF_HALF:
        return delay / 2 + delay / 2 * draw;
    case BACKOFF_FULL:
        return delay * draw;
    }
    return delay;
}

/* The comparisons are false for what is not a number, which becomes 0: a retry too soon shows, one that never
 * comes does not. */
static double make_safe(double delay)
{
    if (delay > TEN_YEARS)
        return TEN_YEARS;
    return delay > 0 ? delay : 0;
}

double backoff_delay(const struct backoff_policy *policy, const struct backoff_history *history, double draw)
{
    const struct backoff_policy whole = backoff__whole(policy);
    struct backoff_history seen = *history;
    double delay;

    if (seen.attempt == 0)
        seen.attempt = 1;
    if (whole.max_attempts != 0 && seen.attempt >= whole.max_attempts)
        return BACKOFF_STOP;
    if (whole.delay != NULL) {
        delay = whole.delay(policy, &seen, draw);
        return delay == BACKOFF_STOP ? delay : make_safe(delay);
    }
    delay = spread_out(&whole, grow(&whole, seen.attempt), draw);
    return make_safe(delay > whole.floor ? delay : whole.floor);
}

/* A member and what it may be; what is not a number is within no range. */
struct range {
    const char *name;
    double value, low, high;
    bool above; /* `low` itself is outside */
};

static bool holds(const struct range *range)
{
    return (range->above ? range->value > range->low : range->value >= range->low) && range->value <= range->high;
}

/* The first member that is out of its range is the one that is told. */
static int check_ranges(const struct range *ranges, size_t count, char *text, size_t n)
{
    for (const struct range *range = ranges; range < ranges + count; range++)
        if (!holds(range)) {
            snprintf(text, n, "%s is %.10g; it must be %s %.10g, at most %.10g", range->name, range->value,
                range->above ? "above" : "at least", range->low, range->high);
            return LINKPOOL_EINVAL;
        }
    return 0;
}

static int check_formula(const struct backoff_policy *policy, char *text, size_t n)
{
    const struct range ranges[] = {
        {"jitter", (double)policy->jitter, BACKOFF_NONE, BACKOFF_FULL, false},
        {"base", policy->base, 0, TEN_YEARS, true},
        {"factor", policy->factor, 1, DBL_MAX, false},
        {"cap", policy->cap, policy->base, TEN_YEARS, false},
        {"floor", policy->floor, 0, policy->cap, false},
        {"spread", policy->spread, 0, 1, false},
    };

    return check_ranges(ranges, sizeof ranges / sizeof *ranges, text, n);
}

static int check_times(const struct backoff_policy *policy, char *text, size_t n)
{
    const struct range ranges[] = {
        {"stable_after", policy->stable_after, 0, TEN_YEARS, false},
        {"reconnect_spread", policy->reconnect_spread, 0, TEN_YEARS, false},
    };

    return check_ranges(ranges, sizeof ranges / sizeof *ranges, text, n);
}

int backoff_policy_check(const struct backoff_policy *policy, char *text, size_t n)
{
    struct backoff_policy whole;
    int error = 0;

    if (policy->size < sizeof policy->size) {
        snprintf(text, n, "size is %zu; it must be that of struct backoff_policy, %zu", policy->size, sizeof *policy);
        return LINKPOOL_EINVAL;
    }
    whole = backoff__whole(policy);
    if (whole.delay == NULL)
        error = check_formula(&whole, text, n);
    return error != 0 ? error : check_times(&whole, text, n);
}
