/* testing_clock.c - virtual time: what runs when, in which order, and what may be done from inside. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <string.h>

#include "linkpool/error.h"
#include "linkpool/testing.h"

struct script { /* a test's own state: what ran, as letters, and when */
    struct testing *t;
    struct driver *driver, *other;
    char log[64];
    double at;
    unsigned n, most;
    uint64_t turn;
};

static void note(struct script *s, char what)
{
    size_t n = strlen(s->log);

    if (n + 1 < sizeof s->log)
        s->log[n] = what;
    s->at = testing_now(s->t);
    s->n++;
}

static void on_a(void *data)
{
    note(data, 'a');
}

static void on_b(void *data)
{
    note(data, 'b');
}

static void on_alarm(struct driver *driver)
{
    note(driver->owner, 'A');
}

static void on_later(struct driver *driver)
{
    struct script *s = driver->owner;

    note(s, 'L');
    s->turn = driver->turn;
    if (s->n < s->most)
        driver->ops->later(driver);
}

static struct driver *drive(struct script *s)
{
    struct driver *driver = testing_driver(s->t);

    driver->owner = s;
    driver->on_alarm = on_alarm;
    driver->on_later = on_later;
    return driver;
}

static struct script begin(uint64_t seed)
{
    return (struct script){.t = testing_new(seed)};
}

Test(testing_clock, timers_run_in_order_of_time_then_of_the_calls)
{
    struct script s = begin(1);
    double start = testing_now(s.t);

    testing_at(s.t, start + 2, on_b, &s);
    testing_at(s.t, start + 1, on_a, &s);
    testing_at(s.t, start + 2, on_a, &s);
    cr_assert(testing_run_for(s.t, 1.5));
    cr_assert(eq(str, s.log, "a"));
    cr_assert(eq(dbl, s.at, start + 1));
    cr_assert(eq(dbl, testing_now(s.t), start + 1.5));
    testing_run_for(s.t, 10);
    cr_assert(eq(str, s.log, "aba"));
    cr_assert(eq(dbl, testing_now(s.t), start + 11.5));
    testing_free(s.t);
}

Test(testing_clock, many_timers_come_out_sorted)
{
    struct script s = begin(7);
    double last = 0;

    for (int i = 0; i < 5000; i++)
        testing_at(s.t, testing_now(s.t) + (double)(testing_random(s.t) % 1000) / 10, on_a, &s);
    while (testing_turn(s.t)) {
        cr_assert(ge(dbl, s.at, last));
        last = s.at;
    }
    cr_assert(eq(uint, s.n, 5000));
    testing_free(s.t);
}

Test(testing_clock, a_timer_that_is_not_a_time_is_refused)
{
    struct script s = begin(1);

    cr_assert(eq(int, testing_at(s.t, NAN, on_a, &s), LINKPOOL_EINVAL));
    cr_assert(eq(int, testing_at(s.t, INFINITY, on_a, &s), LINKPOOL_EINVAL));
    cr_assert(not(testing_turn(s.t)));
    testing_free(s.t);
}

Test(testing_clock, cancelled_timers_do_not_run)
{
    struct script s = begin(1);

    for (int i = 0; i < 100; i++) {
        testing_at(s.t, testing_now(s.t) + (i * 37) % 100, on_a, &s);
        testing_at(s.t, testing_now(s.t) + (i * 53) % 100, on_b, &s);
    }
    cr_assert(eq(uint, testing_at_cancel(s.t, on_a, &s), 100));
    cr_assert(eq(uint, testing_at_cancel(s.t, on_a, &s), 0));
    testing_run_for(s.t, 100);
    cr_assert(eq(uint, s.n, 100));
    cr_assert(zero(ptr, strchr(s.log, 'a')));
    testing_free(s.t);
}

Test(testing_clock, an_alarm_rings_once_when_due_and_the_latest_call_counts)
{
    struct script s = begin(1);
    struct driver *driver = drive(&s);
    double start = testing_now(s.t);

    driver->ops->alarm(driver, start + 1);
    driver->ops->alarm(driver, start + 5);
    testing_run_for(s.t, 4.9);
    cr_assert(eq(str, s.log, ""));
    testing_run_for(s.t, 100);
    cr_assert(eq(str, s.log, "A"));
    cr_assert(eq(dbl, s.at, start + 5));
    driver->ops->alarm(driver, start);
    driver->ops->alarm(driver, INFINITY);
    cr_assert(not(testing_turn(s.t)));
    driver_free(driver);
    testing_free(s.t);
}

static void on_alarm_again(struct driver *driver)
{
    struct script *s = driver->owner;

    note(s, 'A');
    if (driver->now < s->most)
        driver->ops->alarm(driver, s->most);
}

Test(testing_clock, early_alarms_come_before_their_time_and_reach_it_in_the_end)
{
    unsigned early = 0;

    for (uint64_t seed = 0; seed < 100; seed++) {
        struct script s = begin(seed);
        struct driver *driver = drive(&s);
        driver->on_alarm = on_alarm_again;
        s.most = 1010;
        testing_early_alarms(s.t, true);
        driver->ops->alarm(driver, s.most);
        testing_run_for(s.t, 20);
        early += s.n - 1;
        cr_assert(eq(dbl, s.at, 1010));
        driver_free(driver);
        testing_free(s.t);
    }
    cr_assert(lt(uint, 20, early));
}

Test(testing_clock, the_end_of_a_turn_comes_after_alarms_and_the_users_timers)
{
    struct script s = begin(1);
    struct driver *driver = drive(&s);
    double when = testing_now(s.t) + 1;

    testing_at(s.t, when, on_a, &s);
    driver->ops->alarm(driver, when);
    testing_turn(s.t);
    cr_assert(eq(str, s.log, "Aa"));
    driver->ops->later(driver);
    driver->ops->later(driver);
    testing_at(s.t, when, on_a, &s);
    driver->ops->alarm(driver, when);
    testing_turn(s.t);
    cr_assert(eq(str, s.log, "AaAaL"));
    cr_assert(not(testing_turn(s.t)));
    driver_free(driver);
    testing_free(s.t);
}

Test(testing_clock, later_within_later_runs_after_the_next_poll_which_does_not_wait)
{
    struct script s = begin(1);
    struct driver *driver = drive(&s);
    double start = testing_now(s.t);
    uint64_t turn = driver->turn;

    s.most = 3;
    driver->ops->later(driver);
    testing_at(s.t, start + 9, on_a, &s);
    for (unsigned i = 1; i <= 3; i++) {
        cr_assert(testing_turn(s.t));
        cr_assert(eq(uint, s.n, i));
        cr_assert(eq(u64, s.turn, turn + i));
        cr_assert(eq(dbl, driver->now, start));
    }
    testing_turn(s.t);
    cr_assert(eq(str, s.log, "LLLa"));
    cr_assert(eq(dbl, driver->now, start + 9));
    driver_free(driver);
    testing_free(s.t);
}

static void on_later_spin(struct driver *driver)
{
    driver->ops->later(driver);
}

Test(testing_clock, a_scenario_that_spins_is_given_up)
{
    struct script s = begin(1);
    struct driver *driver = drive(&s);

    driver->on_later = on_later_spin;
    cr_assert(not(testing_stuck(s.t)));
    driver->ops->later(driver);
    cr_assert(not(testing_run_for(s.t, 1)));
    cr_assert(testing_stuck(s.t));
    driver_free(driver);
    testing_free(s.t);
}

static void on_later_free(struct driver *driver)
{
    struct script *s = driver->owner;

    note(s, 'F');
    driver_free(driver);
    s->driver = NULL;
}

static void free_both(void *data)
{
    struct script *s = data;

    note(s, 'f');
    driver_free(s->driver);
    driver_free(s->other);
}

Test(testing_clock, drivers_may_go_inside_callbacks)
{
    struct script s = begin(1);

    s.driver = drive(&s);
    s.driver->on_later = on_later_free;
    s.driver->ops->later(s.driver);
    s.driver->ops->alarm(s.driver, testing_now(s.t) + 1);
    testing_run_for(s.t, 5);
    cr_assert(eq(str, s.log, "F"));
    s.driver = drive(&s);
    s.other = drive(&s);
    s.driver->ops->later(s.driver);
    s.other->ops->later(s.other);
    s.other->ops->alarm(s.other, testing_now(s.t) + 1);
    testing_at(s.t, testing_now(s.t), free_both, &s);
    testing_run_for(s.t, 5);
    cr_assert(eq(str, s.log, "Ff"));
    testing_free(s.t);
}

static void free_world(void *data)
{
    struct script *s = data;

    note(s, 'w');
    testing_free(s->t);
}

Test(testing_clock, a_world_may_be_freed_inside_a_callback)
{
    struct script s = begin(1);

    drive(&s);
    testing_at(s.t, testing_now(s.t) + 1, free_world, &s);
    testing_at(s.t, testing_now(s.t) + 1, on_a, &s);
    testing_at(s.t, testing_now(s.t) + 2, on_a, &s);
    cr_assert(not(testing_run_for(s.t, 5)));
    cr_assert(eq(str, s.log, "w"));
}

static bool twice(void *data)
{
    return ((struct script *)data)->n >= 2;
}

Test(testing_clock, runs_until_what_is_waited_for)
{
    struct script s = begin(1);
    double start = testing_now(s.t);

    for (int i = 1; i <= 3; i++)
        testing_at(s.t, start + i, on_a, &s);
    cr_assert(testing_run_until(s.t, twice, &s, 10));
    cr_assert(eq(dbl, testing_now(s.t), start + 2));
    s.n = 0;
    cr_assert(not(testing_run_until(s.t, twice, &s, 10)));
    cr_assert(eq(dbl, testing_now(s.t), start + 12));
    cr_assert(not(testing_run_until(s.t, twice, &s, INFINITY)));
    testing_free(s.t);
}

Test(testing_clock, the_same_seed_draws_the_same)
{
    struct testing *a = testing_new(5), *b = testing_new(5), *c = testing_new(6);

    testing_env(a)->random(testing_env(a)->data); /* the library's draws are apart from the test's */
    for (int i = 0; i < 10; i++) {
        uint64_t bits = testing_random(a);
        cr_assert(eq(u64, bits, testing_random(b)));
        cr_assert(ne(u64, bits, testing_random(c)));
    }
    testing_free(a);
    testing_free(b);
    testing_free(c);
}

Test(testing_clock, all_drivers_share_the_time)
{
    struct script s = begin(1);
    struct driver *a = drive(&s), *b = drive(&s);

    testing_run_for(s.t, 3);
    cr_assert(eq(dbl, a->now, testing_now(s.t)));
    cr_assert(eq(dbl, b->now, testing_now(s.t)));
    driver_free(a);
    testing_free(s.t); /* takes b with it */
}
