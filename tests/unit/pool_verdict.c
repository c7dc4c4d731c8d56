/* pool_verdict.c - what a host's failures mean: one verdict, one probe, and what costs nothing. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "tests/fakes/world.h"

static const char a[] = "10.0.0.1:80", b[] = "10.0.0.2:80";
static const char *const both[] = {a, b};

/* Backoff 0.5, 1, 2, 4, 4, ... without jitter. */
static struct testing_peer *begin(struct fake_world *world, enum testing_behaviour behaviour)
{
    fake_world_begin(world);
    world->backoff.jitter = BACKOFF_NONE;
    world->backoff.base = 0.5;
    world->backoff.factor = 2;
    world->backoff.cap = 4;
    fake_world_open(world);
    struct testing_peer *peer = fake_peer(world, a, behaviour);
    testing_peer_serve(peer, testing_echo, NULL);
    return peer;
}

static void expect_gaps(const struct testing_peer *peer, unsigned from, const double *gaps, unsigned n)
{
    cr_assert(eq(uint, testing_peer_attempts(peer), from + n));
    for (unsigned i = 0; i < n; i++)
        cr_assert(epsilon_eq(
            dbl, testing_peer_attempt_at(peer, from + i) - testing_peer_attempt_at(peer, from + i - 1), gaps[i], 1e-6));
}

/* ---- one verdict ---- */

Test(pool_verdict, a_host_is_probed_once_a_backoff_however_many_wait)
{
    static const double gaps[] = {0.5, 1, 2, 4, 4};
    struct fake_user users[5] = {0};
    struct fake_world world;

    struct testing_peer *peer = begin(&world, TESTING_REFUSE);
    for (int i = 0; i < 5; i++) {
        users[i].lease = (struct pool_lease){.flags = POOL_WAIT_FOR_READY, .timeout = INFINITY};
        fake_ask(&world, &users[i], a);
    }
    fake_run(&world, 0.1);
    cr_assert(eq(uint, testing_peer_attempts(peer), 5)); /* together: one event */
    cr_assert(eq(uint, fake_host_stats(fake_host(&world, a)).failures, 1));
    fake_run(&world, 12);
    expect_gaps(peer, 5, gaps, 5);
    cr_assert(eq(uint, world.told, 0));

    testing_peer_behave(peer, TESTING_ACCEPT);
    fake_run(&world, 4);
    cr_assert(eq(uint, world.told, 5)); /* the probe's success opens the host to all */
    cr_assert(eq(uint, testing_peer_accepted(peer), 5));
    fake_world_end(&world);
}

Test(pool_verdict, links_that_die_together_are_one_event)
{
    struct fake_user users[10] = {0}, waiter = {.lease = {.flags = POOL_WAIT_FOR_READY, .timeout = INFINITY}};
    struct fake_world world;

    struct testing_peer *peer = begin(&world, TESTING_ACCEPT);
    for (int i = 0; i < 10; i++)
        fake_hold(&world, &users[i], a);
    for (int i = 0; i < 10; i++)
        fake_give_back(&users[i]);
    testing_peer_behave(peer, TESTING_REFUSE);
    testing_peer_cut(peer, LINK_RESET); /* young: each is a failure */
    fake_settle(&world);
    struct pool_host *host = fake_host(&world, a);
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_RESET], 10));
    cr_assert(eq(uint, fake_host_stats(host).failures, 1));
    const struct link *kept = pool_host_next_link(host, NULL); /* the probe; the other nine are gone */
    cr_assert(eq(int, link_state(kept), LINK_BACKOFF));
    cr_assert(eq(ptr, (void *)pool_host_next_link(host, kept), NULL));
    cr_assert(eq(int, pool_host_state(host), LINK_BACKOFF));
    double died = testing_now(world.t);
    fake_ask(&world, &waiter, a);
    fake_run(&world, 0.6);
    cr_assert(eq(uint, testing_peer_attempts(peer), 11));
    cr_assert(epsilon_eq(dbl, testing_peer_attempt_at(peer, 10) - died, 0.5, 1e-5));
    fake_world_end(&world);
}

Test(pool_verdict, what_came_up_after_a_failure_ends_as_another_though_it_had_begun_before)
{
    struct fake_user users[2] = {0};
    struct fake_world world;

    struct testing_peer *peer = begin(&world, TESTING_ACCEPT);
    fake_hold(&world, &users[0], a);
    struct pool_host *host = users[0].lease.host;
    testing_peer_delay(peer, 0.1, 0);
    fake_ask(&world, &users[1], a);
    fake_settle(&world);
    testing_peer_cut(peer, LINK_RESET); /* young, while the second is under way */
    fake_give_back(&users[0]);
    fake_settle(&world);
    cr_assert(eq(uint, fake_host_stats(host).failures, 1));
    fake_run(&world, 1);
    cr_assert(eq(int, users[1].status, POOL_READY));
    cr_assert(eq(uint, testing_peer_attempts(peer), 2));
    testing_peer_cut(peer, LINK_RESET); /* young as well, but a second later: another event */
    fake_give_back(&users[1]);
    fake_settle(&world);
    cr_assert(eq(uint, fake_host_stats(host).failures, 2));
    fake_world_end(&world);
}

Test(pool_verdict, what_came_up_after_a_failure_and_lasts_proves_the_host)
{
    struct fake_user users[2] = {0};
    struct fake_world world;

    struct testing_peer *peer = begin(&world, TESTING_ACCEPT);
    fake_hold(&world, &users[0], a);
    testing_peer_delay(peer, 0.1, 0);
    fake_ask(&world, &users[1], a);
    fake_settle(&world);
    testing_peer_cut(peer, LINK_RESET);
    fake_give_back(&users[0]);
    fake_run(&world, 9);
    cr_assert(eq(uint, fake_host_stats(users[1].lease.host).failures, 1));
    fake_run(&world, 2);
    cr_assert(eq(uint, fake_host_stats(users[1].lease.host).failures, 0));
    fake_world_end(&world);
}

Test(pool_verdict, what_began_before_the_last_failure_belongs_to_it)
{
    struct fake_user users[2] = {0}, patient = {.lease = {.flags = POOL_WAIT_FOR_READY, .timeout = INFINITY}};
    struct fake_world world;

    struct testing_peer *peer = begin(&world, TESTING_ACCEPT);
    for (int i = 0; i < 2; i++)
        fake_hold(&world, &users[i], a);
    struct pool_host *host = users[0].lease.host;
    fake_give_back(&users[0]);
    testing_conn_cut(testing_peer_conn(peer, 0), LINK_RESET);
    fake_settle(&world);
    fake_ask(&world, &patient, a);
    fake_run(&world, 1);
    cr_assert(eq(int, patient.status, POOL_READY)); /* a probe's */
    cr_assert(eq(uint, fake_host_stats(host).failures, 1));
    fake_give_back(&users[1]);
    testing_conn_cut(testing_peer_conn(peer, 0), LINK_RESET); /* as old as the first */
    fake_settle(&world);
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_RESET], 2));
    cr_assert(eq(uint, fake_host_stats(host).failures, 1));
    fake_world_end(&world);
}

Test(pool_verdict, a_host_with_a_ready_link_is_never_failing)
{
    struct fake_user holder = {0}, waiter = {0};
    struct fake_world world;

    struct testing_peer *peer = begin(&world, TESTING_ACCEPT);
    fake_hold(&world, &holder, a);
    testing_peer_behave(peer, TESTING_REFUSE);
    cr_assert(eq(int, fake_ask(&world, &waiter, a), POOL_PENDING));
    fake_run(&world, 3);
    cr_assert(ge(uint, testing_peer_attempts(peer), 2));
    cr_assert(eq(int, pool_host_state(holder.lease.host), LINK_READY));
    cr_assert(eq(uint, waiter.done, 0));
    fake_give_back(&holder);
    fake_settle(&world);
    cr_assert(eq(int, waiter.status, POOL_READY));
    fake_world_end(&world);
}

Test(pool_verdict, the_verdict_stands_while_the_probe_is_under_way)
{
    struct fake_user first = {0}, hasty = {0};
    struct fake_world world;

    struct testing_peer *peer = begin(&world, TESTING_REFUSE);
    fake_ask(&world, &first, a);
    fake_settle(&world);
    testing_peer_behave(peer, TESTING_BLACK_HOLE);
    cr_assert(eq(int, fake_ask(&world, &hasty, a), LINKPOOL_EUNAVAILABLE)); /* asks for the probe */
    fake_run(&world, 1);
    cr_assert(eq(uint, fake_stats(&world).connecting, 1));
    cr_assert(eq(int, pool_host_state(fake_host(&world, a)), LINK_BACKOFF));
    cr_assert(eq(int, fake_ask(&world, &hasty, a), LINKPOOL_EUNAVAILABLE));
    cr_assert(eq(int, hasty.lease.reason, LINK_REFUSED)); /* the stored cause */
    fake_world_end(&world);
}

Test(pool_verdict, the_failure_of_the_last_attempt_under_way_is_the_verdict)
{
    struct fake_user users[2] = {0};
    struct fake_world world;

    struct testing_peer *peer = begin(&world, TESTING_REFUSE);
    testing_peer_delay(peer, 0.2, 0);
    fake_ask(&world, &users[0], a);
    fake_run(&world, 0.1);
    testing_peer_delay(peer, 0.5, 0);
    fake_ask(&world, &users[1], a);
    fake_run(&world, 0.2); /* the first attempt has failed, the second is under way */
    cr_assert(eq(uint, fake_stats(&world).connecting, 1));
    cr_assert(eq(uint, world.told, 0));
    cr_assert(eq(int, pool_host_state(fake_host(&world, a)), LINK_CONNECTING));
    fake_run(&world, 0.4);
    cr_assert(eq(uint, world.told, 2));
    cr_assert(eq(int, users[0].status, LINKPOOL_EUNAVAILABLE));
    cr_assert(eq(int, users[0].lease.reason, LINK_REFUSED));
    cr_assert(eq(int, users[0].lease.system_errno, ECONNREFUSED));
    fake_world_end(&world);
}

Test(pool_verdict, without_a_channel_within_connect_timeout_an_attempt_has_failed)
{
    struct fake_user user = {0};
    struct fake_world world;

    begin(&world, TESTING_BLACK_HOLE);
    double asked = testing_now(world.t);
    fake_ask(&world, &user, a);
    fake_run(&world, 4);
    cr_assert(eq(int, user.status, LINKPOOL_EUNAVAILABLE));
    cr_assert(eq(int, user.lease.reason, LINK_TIMED_OUT));
    cr_assert(epsilon_eq(dbl, user.told_at - asked, 3, 1e-6));
    fake_world_end(&world);
}

/* ---- asked for, and forgotten ---- */

Test(pool_verdict, a_verdict_nobody_asks_about_is_forgotten)
{
    struct fake_user user = {0};
    struct fake_world world;

    struct testing_peer *peer = begin(&world, TESTING_REFUSE);
    fake_ask(&world, &user, a);
    fake_run(&world, 0.4);
    struct pool_host *host = fake_host(&world, a);
    cr_assert(eq(int, pool_host_state(host), LINK_BACKOFF));
    cr_assert(epsilon_eq(dbl, fake_host_stats(host).retry_in, 0.1, 1e-6));
    fake_run(&world, 20);
    cr_assert(eq(int, pool_host_state(host), LINK_IDLE));
    cr_assert(eq(uint, testing_peer_attempts(peer), 1));
    cr_assert(eq(int, fake_ask(&world, &user, a), POOL_PENDING)); /* and tried at once */
    fake_settle(&world);
    cr_assert(eq(uint, testing_peer_attempts(peer), 2));
    fake_world_end(&world);
}

Test(pool_verdict, one_probe_follows_each_time_somebody_has_asked)
{
    struct fake_user user = {0};
    struct fake_world world;

    struct testing_peer *peer = begin(&world, TESTING_REFUSE);
    fake_ask(&world, &user, a);
    fake_settle(&world);
    for (unsigned i = 1; i <= 3; i++) {
        cr_assert(eq(int, fake_ask(&world, &user, a), LINKPOOL_EUNAVAILABLE));
        fake_run(&world, 0.5 * (1 << (i - 1)) + 0.01);
        cr_assert(eq(uint, testing_peer_attempts(peer), i + 1));
    }
    fake_run(&world, 60);
    cr_assert(eq(uint, testing_peer_attempts(peer), 4));
    fake_world_end(&world);
}

Test(pool_verdict, when_the_last_verdict_falls_those_in_line_fail_unless_they_wait_for_ready)
{
    struct fake_user hasty = {0}, patient = {.lease.flags = POOL_WAIT_FOR_READY};
    struct fake_world world;

    begin(&world, TESTING_REFUSE);
    fake_peer(&world, b, TESTING_BLACK_HOLE);
    fake_target(&world, "db", &pool_round_robin, both, 2);
    double asked = testing_now(world.t);
    cr_assert(eq(int, fake_ask(&world, &hasty, "db"), POOL_PENDING));
    cr_assert(eq(int, fake_ask(&world, &patient, "db"), POOL_PENDING));
    fake_run(&world, 2.9);
    cr_assert(eq(uint, world.told, 0)); /* one host is not down yet */
    fake_run(&world, 0.2);
    cr_assert(eq(int, hasty.status, LINKPOOL_EUNAVAILABLE));
    cr_assert(eq(uint, patient.done, 0));
    fake_run(&world, 3);
    cr_assert(eq(int, patient.status, LINKPOOL_ETIMEDOUT));
    cr_assert(epsilon_eq(dbl, patient.told_at - asked, 5, 1e-6));
    fake_world_end(&world);
}

/* ---- retries used up ---- */

static struct testing_peer *begin_with_two_attempts(struct fake_world *world)
{
    fake_world_begin(world);
    world->backoff.max_attempts = 2;
    fake_world_open(world);
    return fake_peer(world, a, TESTING_REFUSE);
}

Test(pool_verdict, offline_is_left_by_an_explicit_start_alone)
{
    struct fake_user patient = {.lease = {.flags = POOL_WAIT_FOR_READY, .timeout = INFINITY}};
    struct fake_world world;

    struct testing_peer *peer = begin_with_two_attempts(&world);
    fake_ask(&world, &patient, a);
    fake_run(&world, 60);
    struct pool_host *host = fake_host(&world, a);
    cr_assert(eq(int, pool_host_state(host), LINK_OFFLINE));
    cr_assert(eq(uint, testing_peer_attempts(peer), 2));
    testing_peer_behave(peer, TESTING_ACCEPT);
    struct fake_user hasty = {0};
    cr_assert(eq(int, fake_ask(&world, &hasty, a), LINKPOOL_EUNAVAILABLE));
    pool_reset_backoff(world.pool);
    fake_run(&world, 60);
    cr_assert(eq(int, pool_host_state(host), LINK_OFFLINE));
    cr_assert(eq(uint, testing_peer_attempts(peer), 2));

    cr_assert(eq(int, pool_host_start(host), 0));
    fake_settle(&world);
    cr_assert(eq(int, patient.status, POOL_READY));
    cr_assert(eq(uint, testing_peer_attempts(peer), 3));
    fake_world_end(&world);
}

Test(pool_verdict, the_start_of_a_target_brings_its_hosts_back_from_offline)
{
    const struct pool_picker *const pickers[] = {&pool_pick_first, &pool_round_robin};

    for (int i = 0; i < 2; i++) {
        struct fake_user patient = {.lease = {.flags = POOL_WAIT_FOR_READY, .timeout = INFINITY}};
        struct fake_world world;
        struct testing_peer *peer = begin_with_two_attempts(&world);
        struct pool_target *target = fake_target(&world, "db", pickers[i], both, 1);
        fake_ask(&world, &patient, "db");
        fake_run(&world, 60);
        cr_assert(eq(int, pool_target_state(target), LINK_OFFLINE));
        testing_peer_behave(peer, TESTING_ACCEPT);
        cr_assert(eq(int, pool_target_start(target), 0));
        fake_settle(&world);
        cr_assert(eq(int, patient.status, POOL_READY));
        fake_world_end(&world);
    }
}

/* ---- forgiven ---- */

Test(pool_verdict, reset_backoff_forgets_failures_and_tries_now)
{
    struct fake_user patient = {.lease = {.flags = POOL_WAIT_FOR_READY, .timeout = INFINITY}};
    struct fake_world world;

    struct testing_peer *peer = begin(&world, TESTING_REFUSE);
    fake_ask(&world, &patient, a);
    fake_run(&world, 4); /* the next try is 3.5 s away */
    cr_assert(eq(uint, testing_peer_attempts(peer), 4));
    pool_reset_backoff(world.pool);
    cr_assert(eq(uint, fake_host_stats(fake_host(&world, a)).failures, 0));
    fake_settle(&world);
    cr_assert(eq(uint, testing_peer_attempts(peer), 5));
    fake_run(&world, 0.51); /* and its backoff begins anew */
    cr_assert(eq(uint, testing_peer_attempts(peer), 6));
    fake_world_end(&world);
}

Test(pool_verdict, a_count_goes_back_to_none_once_ready_has_lasted)
{
    struct fake_user patient = {.lease = {.flags = POOL_WAIT_FOR_READY, .timeout = INFINITY}};
    struct fake_world world;

    struct testing_peer *peer = begin(&world, TESTING_REFUSE);
    fake_ask(&world, &patient, a);
    fake_run(&world, 2);
    testing_peer_behave(peer, TESTING_ACCEPT);
    fake_run(&world, 1.5);
    cr_assert(eq(int, patient.status, POOL_READY));
    double ready = patient.told_at;
    fake_run(&world, ready + 9.9 - testing_now(world.t));
    cr_assert(eq(uint, fake_host_stats(patient.lease.host).failures, 3));
    fake_run(&world, 0.2);
    cr_assert(eq(uint, fake_host_stats(patient.lease.host).failures, 0));
    fake_world_end(&world);
}

Test(pool_verdict, a_peer_that_accepts_and_closes_sees_growing_gaps)
{
    static const double gaps[] = {0.5, 1, 2, 4};
    struct fake_user user = {.lease = {.flags = POOL_WAIT_FOR_READY, .timeout = INFINITY}};
    struct fake_world world;
    char bytes[8];

    struct testing_peer *peer = begin(&world, TESTING_ACCEPT_AND_CLOSE);
    for (int i = 0; i < 5; i++) {
        fake_ask(&world, &user, a);
        fake_run(&world, i ? gaps[i - 1] + 1e-4 : 1e-4);
        cr_assert(eq(int, user.status, POOL_READY));
        cr_assert(eq(long, channel_read(user.lease.channel, bytes, sizeof bytes), 0));
        fake_give_back(&user);
    }
    cr_assert(eq(uint, testing_peer_accepted(peer), 5));
    for (unsigned i = 1; i < 5; i++) {
        double gap = testing_peer_attempt_at(peer, i) - testing_peer_attempt_at(peer, i - 1);
        cr_assert(epsilon_eq(dbl, gap, gaps[i - 1], 1e-3));
    }
    fake_world_end(&world);
}

/* ---- losses, and quiet ends ---- */

Test(pool_verdict, after_a_loss_the_next_attempt_is_spread_and_leases_wait)
{
    enum {
        N = 20
    };
    struct fake_user users[N] = {0};
    struct testing_peer *peers[N];
    struct fake_world world;
    double least = INFINITY, most = 0;
    char address[32];

    begin(&world, TESTING_ACCEPT);
    for (int i = 0; i < N; i++) {
        snprintf(address, sizeof address, "10.0.3.%d:80", i);
        peers[i] = fake_echo(&world, address);
        fake_hold(&world, &users[i], address);
        fake_give_back(&users[i]);
    }
    fake_run(&world, 11);
    for (int i = 0; i < N; i++)
        testing_peer_cut(peers[i], LINK_RESET);
    fake_settle(&world);
    double lost = testing_now(world.t);
    for (int i = 0; i < N; i++) {
        cr_assert(eq(int, pool_host_state(users[i].lease.host), LINK_IDLE)); /* no verdict */
        cr_assert(eq(int, fake_ask_host(&world, &users[i], users[i].lease.host), POOL_PENDING));
    }
    fake_run(&world, 0.26);
    for (int i = 0; i < N; i++) {
        cr_assert(eq(int, users[i].status, POOL_READY));
        cr_assert(eq(uint, testing_peer_attempts(peers[i]), 2));
        double waited = testing_peer_attempt_at(peers[i], 1) - lost;
        least = waited < least ? waited : least;
        most = waited > most ? waited : most;
    }
    cr_assert(le(dbl, most, 0.25));
    cr_assert(lt(dbl, 0.15, most)); /* twenty draws: each of these fails once in thousands of seeds */
    cr_assert(lt(dbl, least, 0.1));
    fake_world_end(&world);
}

Test(pool_verdict, a_loss_costs_nothing_while_another_link_is_ready)
{
    struct fake_user users[2] = {0}, next = {0};
    struct fake_world world;

    struct testing_peer *peer = begin(&world, TESTING_ACCEPT);
    for (int i = 0; i < 2; i++)
        fake_hold(&world, &users[i], a);
    fake_run(&world, 11);
    fake_give_back(&users[1]);
    testing_conn_cut(testing_peer_conn(peer, 1), LINK_RESET);
    fake_settle(&world);
    double asked = testing_now(world.t);
    fake_ask(&world, &next, a);
    fake_settle(&world);
    cr_assert(eq(int, next.status, POOL_READY));
    cr_assert(epsilon_eq(dbl, next.told_at - asked, 0, 1e-9));
    fake_world_end(&world);
}

enum quiet {
    CLOSED_OLD,
    CLOSED_ANSWERED,
    IDLE_TIMED_OUT,
    DISCARDED,
    QUIETS
};

static void end_quietly(struct fake_world *world, struct fake_user *user, struct testing_peer *peer, enum quiet how)
{
    fake_hold(world, user, a);
    if (how == CLOSED_ANSWERED)
        fake_exchange(world, user);
    pool_release(&user->lease, how == DISCARDED ? POOL_DISCARD : POOL_REUSE);
    if (how == CLOSED_OLD)
        fake_run(world, 10.1);
    if (how == CLOSED_OLD || how == CLOSED_ANSWERED)
        testing_peer_cut(peer, LINK_CLOSED_BY_PEER);
    if (how == IDLE_TIMED_OUT)
        fake_run(world, 56);
    fake_settle(world);
}

Test(pool_verdict, quiet_ends_cost_leases_nothing)
{
    for (int how = 0; how < QUIETS; how++) {
        struct fake_user user = {0}, next = {0};
        struct fake_world world;
        struct testing_peer *peer = begin(&world, TESTING_ACCEPT);
        end_quietly(&world, &user, peer, (enum quiet)how);
        struct pool_host *host = fake_host(&world, a);
        cr_assert(eq(uint, fake_stats(&world).links, 0, "%d", how));
        cr_assert(eq(int, pool_host_state(host), LINK_IDLE));
        cr_assert(eq(uint, fake_host_stats(host).failures, 0));
        double asked = testing_now(world.t);
        fake_ask(&world, &next, a);
        fake_settle(&world);
        cr_assert(eq(int, next.status, POOL_READY));
        cr_assert(epsilon_eq(dbl, next.told_at - asked, 0, 1e-9));
        fake_world_end(&world);
    }
}

Test(pool_verdict, an_orderly_close_of_a_young_unanswered_link_is_a_failure)
{
    struct fake_user user = {0};
    struct fake_world world;

    struct testing_peer *peer = begin(&world, TESTING_ACCEPT);
    fake_hold(&world, &user, a);
    fake_give_back(&user);
    testing_peer_cut(peer, LINK_CLOSED_BY_PEER);
    fake_settle(&world);
    cr_assert(eq(int, pool_host_state(fake_host(&world, a)), LINK_BACKOFF));
    cr_assert(eq(int, fake_host_stats(fake_host(&world, a)).last_reason, LINK_CLOSED_BY_PEER));
    fake_world_end(&world);
}
