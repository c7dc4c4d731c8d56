/* backoff.c - what the delays of a policy promise: their values, their bounds, and that no input escapes these. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <limits.h>
#include <linkpool/backoff.h>
#include <linkpool/error.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define TEN_YEARS    (10 * 365.25 * 86400)
#define BELOW_1      (1 - 0x1p-53) /* the last double below 1 */

static const double draws[] = {0, 0x1p-1074, 0.25, 0.5, 0.75, BELOW_1};
static const unsigned attempts[] = {0, 1, 2, 3, 7, 31, 32, 33, 64, 1024, 1075, 65536, 1u << 31, UINT_MAX - 1, UINT_MAX};

static const struct backoff_policy *const presets[] = {
    &backoff_default, &backoff_linkd, &backoff_edge, &backoff_grpc, &backoff_heartbeat, &backoff_signalr};

/* Base 1, factor 2, cap 60, and no jitter. */
static struct backoff_policy plain(void)
{
    struct backoff_policy policy = backoff_edge;

    policy.jitter = BACKOFF_NONE;
    return policy;
}

static double delay_of(const struct backoff_policy *policy, unsigned attempt, double draw)
{
    return backoff_delay(policy, &(struct backoff_history){.attempt = attempt}, draw);
}

static void expect_range(const struct backoff_policy *policy, unsigned attempt, double low, double high)
{
    cr_expect(epsilon_eq(dbl, delay_of(policy, attempt, 0), low, 1e-9), "attempt %u", attempt);
    cr_expect(epsilon_eq(dbl, delay_of(policy, attempt, 0.5), (low + high) / 2, 1e-9), "attempt %u", attempt);
    cr_expect(epsilon_eq(dbl, delay_of(policy, attempt, BELOW_1), high, 1e-9), "attempt %u", attempt);
}

Test(backoff, grows_by_the_factor_up_to_the_cap_and_stays_there)
{
    static const double delays[] = {1, 2, 4, 8, 16, 32, 60, 60, 60};
    struct backoff_policy policy = plain();

    for (unsigned i = 0; i < COUNT(delays); i++)
        cr_assert(eq(dbl, delay_of(&policy, i + 1, 0.9), delays[i]));
}

Test(backoff, never_exceeds_the_cap_nor_shrinks_without_jitter)
{
    static const double factors[] = {1, 1.0001, 1.6, 2, 1e300};
    struct backoff_policy policy = plain();

    for (size_t i = 0; i < COUNT(factors); i++) {
        double last = 0;

        policy.factor = factors[i];
        for (unsigned attempt = 1; attempt <= 1000000; attempt++) {
            double delay = delay_of(&policy, attempt, 0.5);
            if (!(delay >= last && delay <= 60))
                cr_fatal("factor %g, attempt %u: %.17g after %.17g", factors[i], attempt, delay, last);
            last = delay;
        }
    }
    cr_assert(eq(dbl, delay_of(&policy, UINT_MAX, 0.5), 60));
}

Test(backoff, takes_attempt_0_as_the_first)
{
    struct backoff_policy policy = plain();

    policy.base = 3;
    cr_assert(eq(dbl, delay_of(&policy, 0, 0.5), 3));
}

Test(backoff, a_factor_of_1_repeats_the_base_for_ever)
{
    struct backoff_policy policy = plain();

    policy.factor = 1;
    for (size_t i = 0; i < COUNT(attempts); i++)
        cr_assert(eq(dbl, delay_of(&policy, attempts[i], 0.5), 1));
}

/* A loop over the attempts would take an hour here. */
Test(backoff, costs_the_same_at_any_attempt, .timeout = 20)
{
    struct backoff_policy policy = plain();

    policy.factor = 1 + 1e-9;
    for (int i = 0; i < 1000; i++)
        cr_assert(epsilon_eq(dbl, delay_of(&policy, 4000000001u, 0.5), exp(4), 1e-4));
    policy.factor = nextafter(1, 2);
    for (int i = 0; i < 1000; i++)
        cr_assert(epsilon_eq(dbl, delay_of(&policy, UINT_MAX, 0.5), 1, 1e-5));
}

Test(backoff, each_jitter_has_its_range)
{
    struct backoff_policy policy = plain();

    policy.spread = 0.25;
    expect_range(&policy, 4, 8, 8);
    policy.jitter = BACKOFF_PROPORTIONAL;
    expect_range(&policy, 4, 6, 10);
    policy.jitter = BACKOFF_HALF;
    expect_range(&policy, 4, 4, 8);
    policy.jitter = BACKOFF_FULL;
    expect_range(&policy, 4, 0, 8);
}

Test(backoff, jitter_comes_after_the_cap)
{
    struct backoff_policy policy = plain();

    policy.jitter = BACKOFF_PROPORTIONAL;
    policy.spread = 1;
    expect_range(&policy, 100, 0, 120);
}

Test(backoff, the_floor_comes_after_the_jitter)
{
    struct backoff_policy policy = plain();

    policy.floor = 0.5;
    cr_assert(eq(dbl, delay_of(&policy, 1, 0), 1));
    policy.jitter = BACKOFF_FULL;
    cr_assert(eq(dbl, delay_of(&policy, 1, 0), 0.5));
    cr_assert(eq(dbl, delay_of(&policy, 1, 0.25), 0.5));
    cr_assert(eq(dbl, delay_of(&policy, 1, 0.75), 0.75));
    policy.jitter = BACKOFF_PROPORTIONAL;
    policy.spread = 0.95;
    cr_assert(eq(dbl, delay_of(&policy, 1, 0), 0.5));
    cr_assert(eq(dbl, delay_of(&policy, 2, 0.5), 2));
}

static void expect_within_bounds(const struct backoff_policy *policy)
{
    double high = fmin(policy->cap * (1 + policy->spread), TEN_YEARS);

    cr_assert(zero(int, backoff_policy_check(policy, NULL, 0)));
    for (size_t i = 0; i < COUNT(attempts); i++)
        for (size_t j = 0; j < COUNT(draws); j++) {
            double delay = delay_of(policy, attempts[i], draws[j]);
            if (!(delay >= policy->floor && delay <= high))
                cr_fatal("base %g, attempt %u, draw %g: %.17g", policy->base, attempts[i], draws[j], delay);
        }
}

Test(backoff, stays_between_floor_and_spread_cap_with_any_policy_that_passes)
{
    static const double bases[] = {0x1p-1074, 1e-300, 1e-9, 0.2, 1, TEN_YEARS};
    static const double factors[] = {1, 1 + 0x1p-52, 1.6, 2, 1e300, 1.7976931348623157e308};
    static const double spreads[] = {0, 0.2, 0.3, 1};

    for (int jitter = BACKOFF_NONE; jitter <= BACKOFF_FULL; jitter++)
        for (size_t i = 0; i < COUNT(bases) * COUNT(factors) * COUNT(spreads); i++) {
            struct backoff_policy policy = {
                .size = sizeof policy, .jitter = (enum backoff_jitter)jitter, .base = bases[i % COUNT(bases)]};
            policy.factor = factors[i / COUNT(bases) % COUNT(factors)];
            policy.spread = spreads[i / COUNT(bases) / COUNT(factors)];
            policy.cap = policy.base;
            expect_within_bounds(&policy);
            policy.cap = TEN_YEARS;
            expect_within_bounds(&policy);
            policy.floor = TEN_YEARS;
            expect_within_bounds(&policy);
        }
}

Test(backoff, answers_a_finite_time_even_with_a_policy_or_draw_that_cannot_be_used)
{
    static const double odd[] = {NAN, INFINITY, -INFINITY, -1, 0, 0x1p-1074, 1.7976931348623157e308};
    const size_t n = COUNT(odd);

    for (int jitter = BACKOFF_NONE; jitter <= BACKOFF_FULL + 1; jitter++)
        for (size_t i = 0; i < n * n * n * n * n; i++) {
            struct backoff_policy policy = {.size = sizeof policy, .jitter = (enum backoff_jitter)jitter, .spread = 1};
            policy.base = odd[i % n];
            policy.factor = odd[i / n % n];
            policy.cap = odd[i / n / n % n];
            policy.floor = odd[i / n / n / n % n];
            double delay = delay_of(&policy, UINT_MAX, odd[i / n / n / n / n]);
            if (!(delay >= 0 && delay <= TEN_YEARS))
                cr_fatal("jitter %d, combination %zu: %g", jitter, i, delay);
        }
}

Test(backoff, stops_at_the_failure_that_uses_the_attempts_up)
{
    struct backoff_policy policy = plain();

    policy.max_attempts = 3;
    cr_assert(eq(dbl, delay_of(&policy, 1, 0.5), 1));
    cr_assert(eq(dbl, delay_of(&policy, 2, 0.5), 2));
    cr_assert(eq(dbl, delay_of(&policy, 3, 0.5), BACKOFF_STOP));
    cr_assert(eq(dbl, delay_of(&policy, UINT_MAX, 0.5), BACKOFF_STOP));
    policy.max_attempts = 1;
    cr_assert(eq(dbl, delay_of(&policy, 0, 0.5), BACKOFF_STOP));
    policy.max_attempts = UINT_MAX;
    cr_assert(eq(dbl, delay_of(&policy, UINT_MAX - 1, 0.5), 60));
    cr_assert(eq(dbl, delay_of(&policy, UINT_MAX, 0.5), BACKOFF_STOP));
}

/* What a user's rule was given, and what it is to answer. */
static struct {
    const struct backoff_policy *policy;
    struct backoff_history history;
    double draw, answer;
    int calls;
} rule;

static double answer_as_told(const struct backoff_policy *policy, const struct backoff_history *history, double draw)
{
    rule.policy = policy;
    rule.history = *history;
    rule.draw = draw;
    rule.calls++;
    return rule.answer;
}

Test(backoff, the_users_rule_is_given_what_the_caller_gave)
{
    const struct backoff_history history = {.attempt = 4, .elapsed = 7.5, .last_delay = 2.5, .reason = 6};
    struct backoff_policy policy = plain();

    policy.delay = answer_as_told;
    policy.floor = 5;
    rule.answer = 0.125;
    cr_assert(eq(dbl, backoff_delay(&policy, &history, 0.75), 0.125));
    cr_assert(eq(ptr, (void *)rule.policy, &policy));
    cr_assert(eq(uint, rule.history.attempt, 4));
    cr_assert(eq(dbl, rule.history.elapsed, 7.5));
    cr_assert(eq(dbl, rule.history.last_delay, 2.5));
    cr_assert(eq(int, rule.history.reason, 6));
    cr_assert(eq(dbl, rule.draw, 0.75));
    delay_of(&policy, 0, 0.5);
    cr_assert(eq(uint, rule.history.attempt, 1));
    cr_assert(eq(int, rule.calls, 2));
}

Test(backoff, the_users_answer_is_made_safe)
{
    static const struct {
        double answer, delay;
    } cases[] = {
        {BACKOFF_STOP, BACKOFF_STOP},
        {-1 + 0x1p-53, 0},
        {-1 - 0x1p-52, 0},
        {-INFINITY, 0},
        {-0x1p-1074, 0},
        {0, 0},
        {NAN, 0},
        {3600, 3600},
        {TEN_YEARS, TEN_YEARS},
        {TEN_YEARS + 1, TEN_YEARS},
        {INFINITY, TEN_YEARS},
    };
    struct backoff_policy policy = plain();

    policy.delay = answer_as_told;
    for (size_t i = 0; i < COUNT(cases); i++) {
        rule.answer = cases[i].answer;
        cr_assert(eq(dbl, delay_of(&policy, 1, 0.5), cases[i].delay), "answer %g", cases[i].answer);
    }
}

Test(backoff, the_limit_of_attempts_holds_before_the_users_rule)
{
    struct backoff_policy policy = plain();

    policy.delay = answer_as_told;
    policy.max_attempts = 2;
    rule.answer = 9;
    cr_assert(eq(dbl, delay_of(&policy, 1, 0.5), 9));
    cr_assert(eq(dbl, delay_of(&policy, 2, 0.5), BACKOFF_STOP));
    cr_assert(eq(int, rule.calls, 1));
}

/* A policy of an older caller: on the heap, so that a read beyond its size is seen. */
static struct backoff_policy *older(const struct backoff_policy *whole, size_t size)
{
    struct backoff_policy *policy = malloc(size);

    memcpy(policy, whole, size);
    memcpy(policy, &size, sizeof size);
    return policy;
}

Test(backoff, what_an_older_callers_policy_lacks_is_the_defaults)
{
    struct backoff_policy whole = plain();
    struct backoff_policy *policy;

    whole.delay = answer_as_told;
    whole.max_attempts = 1;
    whole.stable_after = NAN;
    policy = older(&whole, offsetof(struct backoff_policy, max_attempts));
    cr_assert(zero(int, backoff_policy_check(policy, NULL, 0)));
    cr_assert(eq(dbl, delay_of(policy, 3, 0.5), 4));
    cr_assert(zero(int, rule.calls));
    free(policy);
    policy = older(&whole, sizeof(size_t));
    cr_assert(zero(int, backoff_policy_check(policy, NULL, 0)));
    cr_assert(eq(dbl, delay_of(policy, 9, 0), 1));
    free(policy);
}

Test(backoff, what_only_a_newer_caller_knows_is_not_read)
{
    struct {
        struct backoff_policy known;
        double unknown[4];
    } newer = {plain(), {NAN, NAN, NAN, NAN}};

    newer.known.size = sizeof newer;
    cr_assert(zero(int, backoff_policy_check(&newer.known, NULL, 0)));
    cr_assert(eq(dbl, delay_of(&newer.known, 5, 0.5), 16));
}

static void expect_refused(const struct backoff_policy *policy, const char *why)
{
    char text[128] = "";

    cr_expect(eq(int, backoff_policy_check(policy, text, sizeof text), LINKPOOL_EINVAL));
    cr_expect(eq(str, text, (char *)why));
}

/* Sets the one member to the value, checks, and puts it back. */
#define EXPECT_REFUSED(policy, member, value, why)                                                                     \
    do {                                                                                                               \
        struct backoff_policy changed = (policy);                                                                      \
        changed.member = (value);                                                                                      \
        expect_refused(&changed, (why));                                                                               \
    } while (0)

Test(backoff, check_names_the_member_its_value_and_its_range)
{
    struct backoff_policy good = plain();

    EXPECT_REFUSED(good, jitter, (enum backoff_jitter)4, "jitter is 4; it must be at least 0, at most 3");
    EXPECT_REFUSED(good, base, 0, "base is 0; it must be above 0, at most 315576000");
    EXPECT_REFUSED(good, base, -0.5, "base is -0.5; it must be above 0, at most 315576000");
    EXPECT_REFUSED(good, base, TEN_YEARS + 1, "base is 315576001; it must be above 0, at most 315576000");
    EXPECT_REFUSED(good, factor, 0.5, "factor is 0.5; it must be at least 1, at most 1.797693135e+308");
    EXPECT_REFUSED(good, factor, INFINITY, "factor is inf; it must be at least 1, at most 1.797693135e+308");
    EXPECT_REFUSED(good, cap, 0.5, "cap is 0.5; it must be at least 1, at most 315576000");
    EXPECT_REFUSED(good, cap, INFINITY, "cap is inf; it must be at least 1, at most 315576000");
    EXPECT_REFUSED(good, floor, -1, "floor is -1; it must be at least 0, at most 60");
    EXPECT_REFUSED(good, floor, 61, "floor is 61; it must be at least 0, at most 60");
    EXPECT_REFUSED(good, spread, 1.5, "spread is 1.5; it must be at least 0, at most 1");
    EXPECT_REFUSED(good, spread, -0.1, "spread is -0.1; it must be at least 0, at most 1");
    EXPECT_REFUSED(good, stable_after, -1, "stable_after is -1; it must be at least 0, at most 315576000");
    EXPECT_REFUSED(
        good, reconnect_spread, 4e8, "reconnect_spread is 400000000; it must be at least 0, at most 315576000");
}

Test(backoff, check_refuses_what_is_not_a_number)
{
    struct backoff_policy good = plain();

    EXPECT_REFUSED(good, base, (double)NAN, "base is nan; it must be above 0, at most 315576000");
    EXPECT_REFUSED(good, factor, (double)NAN, "factor is nan; it must be at least 1, at most 1.797693135e+308");
    EXPECT_REFUSED(good, cap, (double)NAN, "cap is nan; it must be at least 1, at most 315576000");
    EXPECT_REFUSED(good, floor, (double)NAN, "floor is nan; it must be at least 0, at most 60");
    EXPECT_REFUSED(good, spread, (double)NAN, "spread is nan; it must be at least 0, at most 1");
    EXPECT_REFUSED(good, stable_after, (double)NAN, "stable_after is nan; it must be at least 0, at most 315576000");
    EXPECT_REFUSED(
        good, reconnect_spread, (double)NAN, "reconnect_spread is nan; it must be at least 0, at most 315576000");
}

Test(backoff, check_refuses_a_policy_without_a_size)
{
    struct backoff_policy policy = plain();
    char why[128];

    snprintf(why, sizeof why, "size is 0; it must be that of struct backoff_policy, %zu", sizeof policy);
    EXPECT_REFUSED(policy, size, 0, why);
    policy.size = sizeof(size_t) - 1;
    cr_assert(eq(int, backoff_policy_check(&policy, NULL, 0), LINKPOOL_EINVAL));
}

Test(backoff, check_leaves_out_what_the_users_rule_replaces)
{
    struct backoff_policy policy = {.size = sizeof policy, .delay = answer_as_told};

    cr_assert(zero(int, backoff_policy_check(&policy, NULL, 0)));
    EXPECT_REFUSED(policy, stable_after, -2, "stable_after is -2; it must be at least 0, at most 315576000");
}

Test(backoff, check_writes_no_more_than_it_may_and_nothing_when_all_is_well)
{
    struct backoff_policy policy = plain();
    char text[9] = "as it was";

    cr_assert(zero(int, backoff_policy_check(&policy, text, sizeof text)));
    cr_assert(zero(int, memcmp(text, "as it was", sizeof text)));
    policy.base = 0;
    cr_assert(eq(int, backoff_policy_check(&policy, text, 8), LINKPOOL_EINVAL));
    cr_assert(eq(str, text, "base is"));
    cr_assert(eq(chr, text[8], 's'));
    cr_assert(eq(int, backoff_policy_check(&policy, NULL, 0), LINKPOOL_EINVAL));
}

Test(backoff, every_preset_passes_the_check_and_has_no_limit)
{
    for (size_t i = 0; i < COUNT(presets); i++) {
        cr_assert(eq(sz, presets[i]->size, sizeof(struct backoff_policy)));
        cr_assert(zero(uint, presets[i]->max_attempts));
        expect_within_bounds(presets[i]);
    }
}

Test(backoff, the_default_alone_waits_for_stability_and_spreads_reconnects)
{
    cr_assert(eq(dbl, backoff_default.stable_after, 10));
    cr_assert(eq(dbl, backoff_default.reconnect_spread, 0.25));
    for (size_t i = 1; i < COUNT(presets); i++) {
        cr_assert(eq(dbl, presets[i]->stable_after, 0));
        cr_assert(eq(dbl, presets[i]->reconnect_spread, 0));
    }
}

Test(backoff, default_is_half_jitter_of_a_fifth_of_a_second_doubling_to_two)
{
    expect_range(&backoff_default, 1, 0.1, 0.2);
    expect_range(&backoff_default, 2, 0.2, 0.4);
    expect_range(&backoff_default, 3, 0.4, 0.8);
    expect_range(&backoff_default, 4, 0.8, 1.6);
    expect_range(&backoff_default, 5, 1, 2);
    expect_range(&backoff_default, UINT_MAX, 1, 2);
}

Test(backoff, linkd_has_the_values_of_N3)
{
    expect_range(&backoff_linkd, 1, 0.16, 0.24);
    expect_range(&backoff_linkd, 2, 0.32, 0.48);
    expect_range(&backoff_linkd, 3, 0.64, 0.96);
    expect_range(&backoff_linkd, 4, 1.28, 1.92);
    expect_range(&backoff_linkd, 5, 2.56, 3.84);
    expect_range(&backoff_linkd, 6, 5.12, 7.68);
    expect_range(&backoff_linkd, 7, 8, 12);
    expect_range(&backoff_linkd, UINT_MAX, 8, 12);
}

Test(backoff, edge_and_heartbeat_have_the_values_of_S12_and_H8)
{
    static const double delays[] = {1, 2, 4, 8, 16, 32, 60, 60};

    for (unsigned i = 0; i < COUNT(delays); i++) {
        expect_range(&backoff_edge, i + 1, delays[i] * 0.7, delays[i] * 1.3);
        expect_range(&backoff_heartbeat, i + 1, delays[i] * 0.7, delays[i] * 1.3);
    }
}

Test(backoff, grpc_has_the_values_of_G3)
{
    static const double delays[] = {1, 1.6, 2.56, 4.096, 6.5536};

    for (unsigned i = 0; i < COUNT(delays); i++)
        expect_range(&backoff_grpc, i + 1, delays[i] * 0.8, delays[i] * 1.2);
    expect_range(&backoff_grpc, 1000, 96, 144);
}

Test(backoff, signalr_has_the_values_of_R2)
{
    struct backoff_policy wide = backoff_signalr;

    expect_range(&backoff_signalr, 1, 0.8, 1.2);
    expect_range(&backoff_signalr, 2, 1.6, 2.4);
    expect_range(&backoff_signalr, 7, 48, 72);
    wide.spread = 0.95;
    cr_assert(eq(dbl, delay_of(&wide, 1, 0), 0.1));
    cr_assert(eq(dbl, delay_of(&wide, 1, 0.5), 1));
}
