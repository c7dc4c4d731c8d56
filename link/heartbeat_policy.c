/* heartbeat_policy.c - the policies of the heartbeat, and their arithmetic. */
#include "linkpool/heartbeat.h"

#include <limits.h>
#include <math.h>

#include "link/heartbeat.h"
#include "link/options.h"

const struct heartbeat_policy heartbeat_default = {
    .size = sizeof(struct heartbeat_policy), .interval = 15, .timeout = 5, .misses = 2, .jitter = 0.1};

const struct heartbeat_policy heartbeat_none = {.size = sizeof(struct heartbeat_policy), .timeout = 5, .misses = 2};

const struct heartbeat_policy heartbeat_adaptive = {.size = sizeof(struct heartbeat_policy),
    .interval = 30,
    .timeout = 5,
    .misses = 4,
    .watch_interval = 5,
    .min = 10,
    .max = 90};

const struct heartbeat_policy heartbeat_edge = {
    .size = sizeof(struct heartbeat_policy), .interval = 15, .timeout = 15, .misses = 2};

static double adapted(const struct heartbeat_policy *policy, const struct heartbeat_history *history)
{
    unsigned sooner = history->round_trip < 1.5 ? (unsigned)(history->round_trip * 1000) / 100 : 15;
    unsigned later = history->streak < 200 ? history->streak / 10 : 20;
    double interval = policy->interval - sooner + later;

    if (interval < policy->min)
        return policy->min;
    return interval < policy->max ? interval : policy->max;
}

struct heartbeat_policy link__heartbeat_whole(const struct heartbeat_policy *given)
{
    struct heartbeat_policy policy = heartbeat_default;

    link__take(&policy, given, sizeof policy);
    return policy;
}

double heartbeat_interval(const struct heartbeat_policy *given, const struct heartbeat_history *history)
{
    const struct heartbeat_policy policy = link__heartbeat_whole(given);
    unsigned eased = history->eased < HEARTBEAT_EASED ? history->eased : HEARTBEAT_EASED;
    double interval = policy.interval;

    if (policy.interval <= 0)
        return (double)INFINITY;
    if (history->misses)
        return policy.watch_interval;
    if (policy.max > 0)
        interval = history->probes ? adapted(&policy, history) : policy.min;
    return interval * (1u << eased);
}

int heartbeat_policy_check(const struct heartbeat_policy *given, char *text, size_t n)
{
    const struct heartbeat_policy policy = link__heartbeat_whole(given);
    struct link_check to = {text, n};
    int error;

    if ((error = link__check_time(to, "interval", policy.interval, true)) ||
        (error = link__check_time(to, "timeout", policy.timeout, false)) ||
        (error = link__check_count(to, "misses", policy.misses, 1, UINT_MAX)) ||
        (error = link__check_time(to, "watch_interval", policy.watch_interval, true)))
        return error;
    if (!(policy.jitter >= 0 && policy.jitter <= 0.5))
        return link__refuse(to, "jitter is %g; it is from 0 to 0.5", policy.jitter);
    if (policy.min == 0 && policy.max == 0)
        return 0;
    if ((error = link__check_time(to, "min", policy.min, false)) ||
        (error = link__check_time(to, "max", policy.max, false)))
        return error;
    return policy.min <= policy.max ? 0 : link__refuse(to, "min is %g; it is at most max, %g", policy.min, policy.max);
}
