/* r.c - REFERENCE's R: the retry policy that is the user's to give. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#include "tests/fakes/owner.h"
#include "tests/fakes/world.h"

/* ---- R1 ---- */

static struct backoff_history asked[8];
static unsigned n_asked;

static double half_a_second_more_each_time(
    const struct backoff_policy *policy, const struct backoff_history *history, double draw)
{
    cr_assert(eq(ptr, policy->data, (void *)&asked));
    cr_assert(ge(dbl, draw, 0));
    cr_assert(lt(dbl, draw, 1));
    asked[n_asked++] = *history;
    return history->attempt < 5 ? 0.5 * history->attempt : BACKOFF_STOP;
}

static void begin_with(struct fake_owner *owner, enum testing_behaviour behaviour,
    double (*delay)(const struct backoff_policy *, const struct backoff_history *, double))
{
    fake_owner_begin(owner, behaviour);
    owner->backoff.delay = delay;
    owner->backoff.data = &asked;
}

Test(conformance, R1_the_policy_is_a_function_of_attempts_time_and_the_last_reason)
{
    static const double delays[] = {0.5, 1, 1.5, 2};
    static const double elapsed[] = {0, 0.5, 1.5, 6, 8}; /* the fourth, a time-out, took its 3 seconds */
    struct fake_owner owner;

    begin_with(&owner, TESTING_REFUSE, half_a_second_more_each_time);
    fake_owner_start(&owner);
    fake_owner_run(&owner, 2);
    testing_peer_behave(owner.peer, TESTING_BLACK_HOLE);
    fake_owner_run(&owner, 5);
    testing_peer_behave(owner.peer, TESTING_UNREACHABLE);
    fake_owner_run(&owner, 100);
    cr_assert(eq(uint, n_asked, 5));
    for (unsigned i = 0; i < 5; i++) {
        cr_assert(eq(uint, asked[i].attempt, i + 1));
        cr_assert(epsilon_eq(dbl, asked[i].elapsed, elapsed[i], 1e-9), "call %u", i);
        cr_assert(epsilon_eq(dbl, asked[i].last_delay, i ? delays[i - 1] : 0, 1e-9));
    }
    for (unsigned i = 0; i < 4; i++)
        cr_assert(eq(dbl, fake_owner_told(&owner, "reconnect", i)->delay, delays[i]));
    cr_assert(eq(int, asked[0].reason, LINK_REFUSED));
    cr_assert(eq(int, asked[2].reason, LINK_REFUSED));
    cr_assert(eq(int, asked[3].reason, LINK_TIMED_OUT));
    cr_assert(eq(int, asked[4].reason, LINK_UNREACHABLE));
    cr_assert(eq(int, link_state(owner.link), LINK_OFFLINE));
    fake_owner_end(&owner);
}

/* ---- R2 ---- */

static void measure(const struct backoff_policy *policy, double draw, const double *gaps, unsigned n)
{
    struct fake_owner owner;

    fake_owner_begin(&owner, TESTING_REFUSE);
    owner.options.backoff = policy;
    fake_owner_draw(&owner, draw);
    fake_owner_start(&owner);
    fake_owner_run(&owner, 600);
    for (unsigned i = 0; i < n; i++)
        cr_assert(epsilon_eq(dbl, fake_gap(owner.peer, i), gaps[i], 1e-6), "gap %u", i);
    fake_owner_end(&owner);
}

Test(conformance, R2_waits_double_to_the_cap_spread_by_a_fifth_and_never_fall_under_a_tenth)
{
    static const double middle[] = {1, 2, 4, 8, 16, 32, 60, 60}, low[] = {0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 48, 48},
                        high[] = {1.2, 2.4, 4.8, 9.6, 19.2, 38.4, 72, 72}, usual_gaps[] = {2, 4, 8, 16, 30, 30},
                        wide_gaps[] = {0.1, 0.1, 0.2, 0.4, 0.8, 1.6, 3, 3};
    struct backoff_policy usual = backoff_signalr, wide = backoff_signalr;

    measure(&backoff_signalr, 0.5, middle, 8);
    measure(&backoff_signalr, 0, low, 8);
    measure(&backoff_signalr, 0x1.fffffffffffffp-1, high, 8);
    usual.base = 2;
    usual.cap = 30;
    usual.floor = 0.2;
    measure(&usual, 0.5, usual_gaps, 6);
    wide.spread = 0.95; /* a twentieth of 1 s is drawn: the floor holds */
    measure(&wide, 0, wide_gaps, 8);
}

/* ---- R3 ---- */

static double stop_at_once(const struct backoff_policy *policy, const struct backoff_history *history, double draw)
{
    (void)policy, (void)history, (void)draw;
    return BACKOFF_STOP;
}

Test(conformance, R3_stop_ends_offline_and_the_owner_is_told)
{
    struct fake_owner owner;

    begin_with(&owner, TESTING_REFUSE, stop_at_once);
    fake_owner_start(&owner);
    fake_owner_run(&owner, 10000);
    cr_assert(eq(int, link_state(owner.link), LINK_OFFLINE));
    cr_assert(eq(str, (char *)fake_owner_story(&owner), "connecting stopped"));
    cr_assert(eq(int, owner.told[1].reason, LINK_REFUSED));
    cr_assert(eq(uint, testing_peer_attempts(owner.peer), 1));

    testing_peer_behave(owner.peer, TESTING_ACCEPT);
    cr_assert(eq(int, link_start(owner.link), 0));
    fake_owner_run(&owner, 1);
    cr_assert(eq(int, link_state(owner.link), LINK_READY));
    testing_peer_cut(owner.peer, LINK_CLOSED_BY_PEER); /* a loss is a failure too */
    fake_owner_run(&owner, 1);
    cr_assert(eq(int, link_state(owner.link), LINK_OFFLINE));
    cr_assert(
        eq(str, (char *)fake_owner_story(&owner), "connecting stopped connecting connected disconnected stopped"));
    fake_owner_end(&owner);
}

Test(conformance, R3_after_stop_another_host_of_the_target_serves)
{
    static const char *const addresses[] = {"10.0.0.1:80", "10.0.0.2:80"};
    struct fake_world world;
    struct fake_user users[10] = {0};

    fake_world_begin(&world);
    world.backoff.delay = stop_at_once;
    fake_world_open(&world);
    struct testing_peer *off = fake_peer(&world, addresses[0], TESTING_REFUSE);
    fake_echo(&world, addresses[1]);
    struct pool_target *target = fake_target(&world, "db", &pool_pick_first, addresses, 2);
    for (int i = 0; i < 10; i++) {
        fake_hold(&world, &users[i], "db");
        cr_assert(eq(str, (char *)pool_host_address(users[i].lease.host), (char *)addresses[1]));
        fake_give_back(&users[i]);
        fake_run(&world, 20);
    }
    cr_assert(eq(int, pool_host_state(pool_target_host(target, 0)), LINK_OFFLINE));
    cr_assert(eq(uint, testing_peer_attempts(off), 1));
    fake_world_end(&world);
}

/* ---- R4 ---- */

static enum link_reason reconnecting[8];
static uint64_t reconnected[8];
static unsigned n_reconnecting, n_reconnected;

static void note_why(struct fake_owner *owner, const struct fake_told *told)
{
    if (!strcmp(told->what, "reconnect"))
        reconnecting[n_reconnecting++] = link_last_reason(owner->link, NULL, NULL);
    if (!strcmp(told->what, "connected"))
        reconnected[n_reconnected++] = fake_link_stats(owner->link).connection;
}

Test(conformance, R4_the_owner_is_told_reconnecting_reconnected_and_closed_and_why)
{
    struct fake_owner owner;

    fake_owner_begin(&owner, TESTING_ACCEPT);
    fake_owner_gaps(&owner, 1, 2, 60);
    owner.then = note_why;
    fake_owner_start(&owner);
    fake_owner_until(&owner, LINK_READY, 1);
    fake_owner_settle(&owner);
    testing_peer_behave(owner.peer, TESTING_REFUSE);
    testing_peer_cut(owner.peer, LINK_RESET);
    fake_owner_run(&owner, 1.5); /* an attempt in vain meanwhile */
    testing_peer_behave(owner.peer, TESTING_ACCEPT);
    fake_owner_until(&owner, LINK_READY, 10);
    fake_owner_settle(&owner);
    link_stop(owner.link);
    fake_owner_settle(&owner);
    cr_assert(eq(str, (char *)fake_owner_story(&owner),
        "connecting connected disconnected reconnect connecting reconnect connecting connected disconnected stopped"));
    cr_assert(eq(int, fake_owner_told(&owner, "disconnected", 0)->reason, LINK_RESET));
    cr_assert(eq(uint, n_reconnecting, 2));
    cr_assert(eq(int, reconnecting[0], LINK_RESET));
    cr_assert(eq(int, reconnecting[1], LINK_REFUSED));
    cr_assert(eq(uint, n_reconnected, 2));
    cr_assert(ne(u64, reconnected[0], 0));
    cr_assert(lt(u64, reconnected[0], reconnected[1])); /* a new id, of the same link */
    cr_assert(eq(int, fake_owner_told(&owner, "stopped", 0)->reason, LINK_STOPPED));
    fake_owner_end(&owner);
}

Test(conformance, R4_an_owner_whose_policy_gives_up_is_told_closed_with_the_reason)
{
    struct fake_owner owner;

    begin_with(&owner, TESTING_ACCEPT, stop_at_once);
    fake_owner_start(&owner);
    fake_owner_until(&owner, LINK_READY, 1);
    fake_owner_settle(&owner);
    testing_peer_cut(owner.peer, LINK_CLOSED_BY_PEER);
    fake_owner_run(&owner, 1);
    cr_assert(eq(str, (char *)fake_owner_story(&owner), "connecting connected disconnected stopped"));
    cr_assert(eq(int, fake_owner_told(&owner, "disconnected", 0)->reason, LINK_CLOSED_BY_PEER));
    cr_assert(eq(int, fake_owner_told(&owner, "stopped", 0)->reason, LINK_CLOSED_BY_PEER));
    fake_owner_end(&owner);
}

/* ---- R6 ---- */

Test(conformance, R6_the_very_first_connect_is_retried_by_the_policy_or_fails_at_once)
{
    struct fake_owner owner;

    for (int fail_first = 0; fail_first <= 1; fail_first++) {
        fake_owner_begin(&owner, TESTING_REFUSE);
        owner.options.fail_first = fail_first;
        fake_owner_start(&owner);
        fake_owner_run(&owner, 100);
        cr_assert(eq(int, link_state(owner.link), fail_first ? LINK_OFFLINE : LINK_BACKOFF));
        cr_assert(eq(uint, fake_owner_count(&owner, "stopped"), fail_first));
        if (fail_first)
            cr_assert(eq(uint, testing_peer_attempts(owner.peer), 1));
        else
            cr_assert(ge(uint, testing_peer_attempts(owner.peer), 5));
        fake_owner_end(&owner);
    }
}

Test(conformance, R6_once_it_was_ready_a_loss_is_retried_all_the_same)
{
    struct fake_owner owner;

    fake_owner_begin(&owner, TESTING_ACCEPT);
    owner.options.fail_first = true;
    fake_owner_start(&owner);
    fake_owner_until(&owner, LINK_READY, 1);
    testing_peer_behave(owner.peer, TESTING_REFUSE);
    testing_peer_cut(owner.peer, LINK_RESET);
    fake_owner_run(&owner, 100);
    cr_assert(eq(int, link_state(owner.link), LINK_BACKOFF));
    testing_peer_behave(owner.peer, TESTING_ACCEPT);
    fake_owner_until(&owner, LINK_READY, 100);
    fake_owner_end(&owner);
}
