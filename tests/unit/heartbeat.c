/* heartbeat.c - the arithmetic of heartbeats, and what may be set. */
#include "linkpool/heartbeat.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "linkpool/error.h"

static const struct heartbeat_policy adapting = {
    .size = sizeof(struct heartbeat_policy), .interval = 30, .timeout = 5, .misses = 4, .min = 10, .max = 90};

static double adapted(double base, double round_trip, unsigned streak)
{
    struct heartbeat_policy policy = adapting;

    policy.interval = base;
    return heartbeat_interval(
        &policy, &(struct heartbeat_history){.probes = 1, .round_trip = round_trip, .streak = streak});
}

Test(heartbeat, a_plain_interval_is_always_the_same)
{
    struct heartbeat_history history = {.probes = 9, .streak = 500, .round_trip = 3};

    cr_assert(eq(dbl, heartbeat_interval(&heartbeat_default, &history), 15));
    cr_assert(eq(dbl, heartbeat_interval(&heartbeat_default, &(struct heartbeat_history){0}), 15));
    cr_assert(eq(dbl, heartbeat_interval(&heartbeat_none, &history), INFINITY));
}

Test(heartbeat, a_watched_link_is_asked_again_after_the_watch_interval)
{
    struct heartbeat_history missed = {.probes = 1, .misses = 1, .eased = 3};

    cr_assert(eq(dbl, heartbeat_interval(&heartbeat_default, &missed), 0));
    cr_assert(eq(dbl, heartbeat_interval(&heartbeat_adaptive, &missed), 5)); /* not eased: it may be dead */
    cr_assert(eq(dbl, heartbeat_interval(&heartbeat_none, &missed), INFINITY));
}

Test(heartbeat, the_first_interval_that_adapts_is_the_shortest)
{
    cr_assert(eq(dbl, heartbeat_interval(&adapting, &(struct heartbeat_history){0}), 10));
}

Test(heartbeat, a_long_round_trip_makes_it_shorter_and_a_streak_longer_in_whole_steps)
{
    cr_assert(eq(dbl, adapted(30, 0.0999, 9), 30));
    cr_assert(eq(dbl, adapted(30, 0.1, 0), 29));
    cr_assert(eq(dbl, adapted(30, 0.2999, 0), 28));
    cr_assert(eq(dbl, adapted(30, 1.5, 0), 15));
    cr_assert(eq(dbl, adapted(30, 4, 0), 15));
    cr_assert(eq(dbl, adapted(30, 0, 10), 31));
    cr_assert(eq(dbl, adapted(30, 0, 199), 49));
    cr_assert(eq(dbl, adapted(30, 0, 200), 50));
    cr_assert(eq(dbl, adapted(30, 0, UINT_MAX), 50));
    cr_assert(eq(dbl, adapted(30, 0.55, 25), 27));
}

Test(heartbeat, what_adapts_stays_within_its_bounds)
{
    cr_assert(eq(dbl, adapted(15, 2, 0), 10));
    cr_assert(eq(dbl, adapted(11, 0.1, 0), 10));
    cr_assert(eq(dbl, adapted(80, 0, 300), 90));
    cr_assert(eq(dbl, adapted(500, 2, 0), 90));
}

Test(heartbeat, each_complaint_doubles_up_to_sixty_four_times)
{
    static const double times[] = {1, 2, 4, 8, 16, 32, 64, 64, 64};

    for (unsigned eased = 0; eased < sizeof times / sizeof *times; eased++) {
        struct heartbeat_history history = {.eased = eased};
        cr_assert(eq(dbl, heartbeat_interval(&heartbeat_default, &history), 15 * times[eased]));
    }
    cr_assert(eq(dbl, heartbeat_interval(&heartbeat_default, &(struct heartbeat_history){.eased = UINT_MAX}), 960));
    cr_assert(eq(dbl, heartbeat_interval(&heartbeat_none, &(struct heartbeat_history){.eased = 2}), INFINITY));
}

/* When a peer that died right after its sign of life is given up. */
static double found_in(const struct heartbeat_policy *policy, struct heartbeat_history history)
{
    double at = heartbeat_interval(policy, &history) + policy->timeout;

    while (++history.misses < policy->misses)
        at += heartbeat_interval(policy, &history) + policy->timeout;
    return at;
}

Test(heartbeat, the_presets_find_a_dead_peer_in_the_time_they_say)
{
    struct heartbeat_policy longest = heartbeat_adaptive;

    cr_assert(eq(dbl, found_in(&heartbeat_default, (struct heartbeat_history){0}), 25));
    cr_assert(eq(dbl, found_in(&heartbeat_edge, (struct heartbeat_history){0}), 45));
    longest.interval = 500;
    cr_assert(eq(dbl, found_in(&longest, (struct heartbeat_history){.probes = 1}), 90 + 4 * 5 + 3 * 5));
}

Test(heartbeat, the_presets_can_be_used)
{
    const struct heartbeat_policy *presets[] = {
        &heartbeat_default, &heartbeat_none, &heartbeat_adaptive, &heartbeat_edge};

    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        cr_assert(eq(int, heartbeat_policy_check(presets[i], NULL, 0), 0));
        cr_assert(eq(sz, presets[i]->size, sizeof(struct heartbeat_policy)));
    }
}

static void expect_refusal(struct heartbeat_policy policy, const char *words)
{
    char text[160] = "";

    cr_assert(eq(int, heartbeat_policy_check(&policy, text, sizeof text), LINKPOOL_EINVAL), "%s", words);
    cr_assert(ne(ptr, strstr(text, words), NULL), "%s: %s", words, text);
    cr_assert(eq(int, heartbeat_policy_check(&policy, NULL, 0), LINKPOOL_EINVAL));
}

#define REFUSED(member, value, words)                                                                                  \
    do {                                                                                                               \
        struct heartbeat_policy policy = adapting;                                                                     \
        policy.member = (value);                                                                                       \
        expect_refusal(policy, (words));                                                                               \
    } while (0)

Test(heartbeat, check_names_the_member_its_value_and_its_range)
{
    REFUSED(interval, -1, "interval is -1; it is 0, or from");
    REFUSED(interval, NAN, "interval is ");
    REFUSED(interval, INFINITY, "interval is inf");
    REFUSED(timeout, 0, "timeout is 0; it is from");
    REFUSED(timeout, NAN, "timeout is ");
    REFUSED(misses, 0, "misses is 0; it is from 1");
    REFUSED(watch_interval, -2, "watch_interval is -2; it is 0, or from");
    REFUSED(min, 0, "min is 0; it is from");
    REFUSED(min, -3, "min is -3");
    REFUSED(min, 91, "min is 91; it is at most max, 90");
    REFUSED(jitter, -0.1, "jitter is -0.1; it is from 0 to 0.5");
    REFUSED(jitter, 0.6, "jitter is 0.6; it is from 0 to 0.5");
    REFUSED(jitter, NAN, "jitter is ");
    REFUSED(max, 0, "max is 0; it is from");
    REFUSED(max, 1e10, "max is 1e+10");
    REFUSED(max, NAN, "max is ");
}

Test(heartbeat, check_takes_the_bounds_of_each_range)
{
    struct heartbeat_policy policy = adapting;

    policy.interval = policy.watch_interval = 0;
    policy.misses = UINT_MAX;
    policy.min = policy.max = 7;
    cr_assert(eq(int, heartbeat_policy_check(&policy, NULL, 0), 0));
    policy.min = policy.max = 0;
    cr_assert(eq(int, heartbeat_policy_check(&policy, NULL, 0), 0));
}

/* A policy of an older caller: on the heap, so that a read beyond its size is seen. */
static struct heartbeat_policy *older(const struct heartbeat_policy *whole, size_t size)
{
    struct heartbeat_policy *policy = malloc(size);

    memcpy(policy, whole, size);
    memcpy(policy, &size, sizeof size);
    return policy;
}

Test(heartbeat, what_an_older_callers_policy_lacks_is_the_defaults)
{
    struct heartbeat_policy whole = adapting;
    struct heartbeat_history missed = {.probes = 1, .misses = 1};

    whole.interval = 7;
    whole.watch_interval = whole.min = whole.max = NAN;
    struct heartbeat_policy *policy = older(&whole, offsetof(struct heartbeat_policy, watch_interval));
    cr_assert(eq(int, heartbeat_policy_check(policy, NULL, 0), 0));
    cr_assert(eq(dbl, heartbeat_interval(policy, &(struct heartbeat_history){0}), 7));
    cr_assert(eq(dbl, heartbeat_interval(policy, &missed), 0));
    free(policy);
    whole.timeout = 0;
    policy = older(&whole, offsetof(struct heartbeat_policy, watch_interval));
    cr_assert(eq(int, heartbeat_policy_check(policy, NULL, 0), LINKPOOL_EINVAL));
    free(policy);
    policy = older(&whole, sizeof(size_t));
    cr_assert(eq(int, heartbeat_policy_check(policy, NULL, 0), 0));
    cr_assert(eq(dbl, heartbeat_interval(policy, &(struct heartbeat_history){0}), 15));
    free(policy);
}

Test(heartbeat, what_only_a_newer_caller_knows_is_not_read)
{
    struct {
        struct heartbeat_policy known;
        double unknown[4];
    } newer = {adapting, {NAN, NAN, NAN, NAN}};

    newer.known.size = sizeof newer;
    cr_assert(eq(int, heartbeat_policy_check(&newer.known, NULL, 0), 0));
    cr_assert(eq(dbl, heartbeat_interval(&newer.known, &(struct heartbeat_history){0}), 10));
}
