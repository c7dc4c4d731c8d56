/* cases_xh.c - the cases XH and XI: backoff, failing fast, what may be repeated; lists of addresses. */
#include "tests/conformance/cases.h"

static struct testing_peer *begin(struct fake_world *world, enum testing_behaviour behaviour)
{
    cases_begin(world);
    cases_gaps(world, 0.2, 2, 10);
    world->host.protocol = &fake_session;
    fake_world_open(world);
    struct testing_peer *peer = fake_echo(world, A);
    testing_peer_behave(peer, behaviour);
    return peer;
}

static void expect_growing_gaps(const struct testing_peer *peer)
{
    cr_assert(ge(uint, testing_peer_attempts(peer), 8));
    for (unsigned i = 0; i + 1 < testing_peer_attempts(peer); i++) {
        double gap = testing_peer_attempt_at(peer, i + 1) - testing_peer_attempt_at(peer, i);
        cr_assert(epsilon_eq(dbl, gap, fmin(10, 0.2 * (1 << i)), 1e-3), "gap %u", i);
    }
}

Test(cases, XH1_a_peer_that_accepts_and_drops_sees_growing_gaps)
{
    static const enum testing_behaviour behaviours[] = {TESTING_ACCEPT_AND_CLOSE, TESTING_ACCEPT_AND_RESET};

    for (int i = 0; i < 2; i++) {
        struct fake_world world;
        struct fake_user user = {0};
        struct testing_peer *peer = begin(&world, behaviours[i]);
        cases_wait(&world, &user, A);
        fake_run(&world, 50);
        expect_growing_gaps(peer);
        fake_world_end(&world);
    }
}

Test(cases, XH3_a_peer_that_closes_in_the_handshake_sees_growing_gaps)
{
    struct fake_world world;
    struct fake_user user = {0};

    cases_begin(&world);
    cases_gaps(&world, 0.2, 2, 10);
    world.host.protocol = &cases_greeted;
    fake_world_open(&world);
    struct testing_peer *peer = fake_peer(&world, A, TESTING_ACCEPT);
    testing_peer_greet(peer, "G", 1);
    testing_peer_serve(peer, testing_echo, NULL);
    testing_peer_cut_after(peer, 1, LINK_CLOSED_BY_PEER); /* it was greeted, and heard no H */
    cases_wait(&world, &user, A);
    fake_run(&world, 50);
    expect_growing_gaps(peer);
    cr_assert(eq(uint, cases_seen(LINK_READY), 0));
    fake_world_end(&world);
}

Test(cases, XH4_what_is_kept_up_comes_back_without_demand)
{
    for (int robin = 0; robin < 2; robin++) {
        struct fake_world world;
        cases_begin(&world);
        world.host.protocol = &cases_shared;
        world.host.min_links = !robin;
        fake_world_open(&world);
        struct testing_peer *peer = fake_echo(&world, A);
        struct pool_target *target = cases_target(&world, robin ? &pool_round_robin : &pool_pick_first, 1);
        if (robin)
            pool_target_start(target);
        fake_run(&world, 20);
        cases_say(peer, 'G', 255);
        fake_run(&world, 1);
        cr_assert(eq(uint, testing_peer_accepted(peer), 2));
        cr_assert(eq(int, pool_target_state(target), LINK_READY));
        fake_world_end(&world);
    }
}

Test(cases, XH5_recovery_takes_a_backoff_at_most_and_no_other_hosts_success_counts)
{
    struct fake_world world;
    struct fake_user user = {0};

    struct testing_peer *peer = begin(&world, TESTING_REFUSE);
    fake_echo(&world, B);
    cases_wait(&world, &user, A);
    fake_run(&world, 3.1); /* attempts at 0, 0.2, 0.6, 1.4, 3 */
    unsigned failures = fake_host_stats(fake_host(&world, A)).failures;
    cr_assert(eq(uint, failures, 5));
    struct fake_user other = {0};
    fake_hold(&world, &other, B);
    cr_assert(eq(uint, fake_host_stats(fake_host(&world, A)).failures, failures));
    testing_peer_behave(peer, TESTING_ACCEPT);
    double up = testing_now(world.t);
    fake_run(&world, 3.2);
    cr_assert(eq(int, user.status, POOL_READY));
    cr_assert(le(dbl, user.told_at - up, 3.2));
    fake_world_end(&world);
}

Test(cases, XH6_failing_is_told_until_ready_and_fails_fast_all_the_while)
{
    struct fake_world world;
    struct fake_user waits = {0}, fast = {0};

    struct testing_peer *peer = begin(&world, TESTING_SILENT); /* each attempt is under way for 3 s */
    struct pool_target *target = cases_target(&world, &pool_pick_first, 1);
    cases_wait(&world, &waits, "db");
    fake_run(&world, 3.01);
    for (int i = 0; i < 20; i++) {
        fake_run(&world, 0.5);
        cr_assert(eq(int, pool_target_state(target), LINK_BACKOFF));
        cr_assert(eq(int, fake_ask(&world, &fast, "db"), LINKPOOL_EUNAVAILABLE));
    }
    cr_assert(ge(uint, testing_peer_attempts(peer), 3));
    fake_world_end(&world);
}

Test(cases, XH7_the_backoff_has_a_cap_and_is_forgotten_after_stable_seconds)
{
    struct fake_world world;
    struct fake_user user = {0};

    cases_begin(&world);
    cases_gaps(&world, 0.2, 2, 10);
    world.backoff.stable_after = 5;
    fake_world_open(&world);
    struct testing_peer *peer = fake_peer(&world, A, TESTING_REFUSE);
    cases_wait(&world, &user, A);
    fake_run(&world, 200);
    unsigned n = testing_peer_attempts(peer);
    for (unsigned i = n - 5; i + 1 < n; i++)
        cr_assert(epsilon_eq(dbl, testing_peer_attempt_at(peer, i + 1) - testing_peer_attempt_at(peer, i), 10, 1e-3));
    testing_peer_behave(peer, TESTING_ACCEPT);
    for (int i = 0; i < 1001 && user.status == POOL_PENDING; i++)
        fake_run(&world, 0.01);
    cr_assert(eq(int, user.status, POOL_READY));
    fake_run(&world, 4.9);
    cr_assert(lt(uint, 5, fake_host_stats(fake_host(&world, A)).failures));
    fake_run(&world, 0.2);
    cr_assert(eq(uint, fake_host_stats(fake_host(&world, A)).failures, 0));
    fake_world_end(&world);
}

Test(cases, XH8_a_lease_in_backoff_pays_no_wait_unless_it_wants_to)
{
    struct fake_world world;
    struct fake_user first = {0}, fast = {0}, waits = {0};

    begin(&world, TESTING_REFUSE);
    fake_ask(&world, &first, A);
    fake_settle(&world);
    cr_assert(eq(int, fake_ask(&world, &fast, A), LINKPOOL_EUNAVAILABLE));
    cr_assert(eq(int, fast.lease.reason, LINK_REFUSED));
    cr_assert(eq(int, fast.lease.system_errno, ECONNREFUSED));
    cr_assert(eq(int, cases_wait(&world, &waits, A), POOL_PENDING));
    fake_world_end(&world);
}

/* Uses an idle link that dies under the request; answers what its lease said. */
static enum pool_fate die_under(struct fake_world *world, struct testing_peer *peer, bool sent, bool answered)
{
    struct fake_user user = {0};
    char byte;

    cases_use(world, A);
    fake_hold(world, &user, A);
    testing_peer_serve(peer, answered ? testing_echo : NULL, NULL);
    if (sent)
        fake_send(&user, "q");
    fake_settle(world);
    if (answered)
        cases_read(&user);
    testing_peer_cut(peer, LINK_RESET);
    fake_settle(world);
    cr_assert(eq(long, channel_read(user.lease.channel, &byte, 1), LINKPOOL_ELOST));
    cr_assert(user.lease.reused);
    cr_assert(eq(u64, user.lease.bytes_sent, sent));
    enum pool_fate fate = user.lease.fate;
    pool_release(&user.lease, POOL_DISCARD);
    testing_peer_serve(peer, testing_echo, NULL);
    return fate;
}

static struct testing_peer *begin_raw(struct fake_world *world)
{
    cases_begin(world);
    cases_gaps(world, 0.2, 2, 10);
    fake_world_open(world);
    return fake_echo(world, A);
}

Test(cases, XH9_nothing_is_sent_twice_by_the_pool)
{
    struct fake_world world;
    struct testing_peer *peer = begin_raw(&world);

    cr_assert(eq(int, die_under(&world, peer, true, false), POOL_SENT_NO_ANSWER));
    fake_run(&world, 10);
    cr_assert(eq(u64, testing_peer_bytes(peer), 2)); /* the first use, and the one that died */
    cr_assert(eq(int, die_under(&world, peer, true, true), POOL_PARTIAL));
    fake_world_end(&world);
}

Test(cases, XH10_what_may_safely_be_repeated_is_said_to_be_so)
{
    struct fake_world world;
    struct testing_peer *peer = begin_raw(&world);

    cr_assert(eq(int, die_under(&world, peer, false, false), POOL_NOT_SENT));
    cases_use(&world, A); /* a used link is at hand, which would do for others */
    struct fake_user retry = {.lease.flags = POOL_FRESH};
    fake_hold(&world, &retry, A);
    cr_assert(not(retry.lease.reused));
    fake_exchange(&world, &retry);
    fake_world_end(&world);
}

Test(cases, XH11_the_failure_of_one_link_ends_one)
{
    struct fake_world world;
    struct fake_user users[5] = {0};
    struct testing_peer *peer = begin_raw(&world);

    cases_ask(&world, users, 5, A);
    fake_run(&world, 1);
    for (int i = 0; i < 5; i++) {
        fake_exchange(&world, &users[i]);
        fake_give_back(&users[i]);
    }
    testing_conn_reset(testing_peer_conn(peer, 2));
    fake_run(&world, 1);
    cr_assert(eq(uint, fake_stats(&world).idle, 4));
    cr_assert(eq(uint, testing_peer_open(peer), 4));
    cr_assert(eq(int, fake_host_stats(fake_host(&world, A)).state, LINK_READY));
    fake_world_end(&world);
}

Test(cases, XH14_one_probe_goes_first)
{
    struct fake_world world;
    struct fake_user users[50] = {0};

    struct testing_peer *peer = begin(&world, TESTING_REFUSE);
    for (int i = 0; i < 50; i++)
        cases_wait(&world, &users[i], A);
    fake_run(&world, 0.1);
    unsigned before = testing_peer_attempts(peer);
    testing_peer_behave(peer, TESTING_ACCEPT);
    testing_peer_delay(peer, 0.05, 0);
    fake_run(&world, 0.14);
    cr_assert(eq(uint, testing_peer_attempts(peer), before + 1)); /* on its way, and alone */
    fake_run(&world, 1);
    cr_assert(eq(uint, cases_count(users, 50, POOL_READY), 50));
    fake_world_end(&world);
}

Test(cases, XH15_a_host_fails_and_recovers_as_often_as_it_must)
{
    struct fake_world world;
    struct testing_peer *peer = begin_raw(&world);
    struct fake_user user = {0};

    for (int i = 0; i < 3; i++) {
        cases_use(&world, A);
        fake_run(&world, 1);
        testing_peer_behave(peer, TESTING_REFUSE);
        testing_peer_cut(peer, LINK_CLOSED_BY_PEER);
        fake_settle(&world);
        cr_assert(not(cases_try(&world, A)));
        cr_assert(eq(int, fake_ask(&world, &user, A), LINKPOOL_EUNAVAILABLE));
        testing_peer_behave(peer, TESTING_ACCEPT);
        fake_run(&world, 11);
    }
    fake_world_end(&world);
}

static struct testing_peer *to_cut;
static unsigned cuts;

static void cut_when_ready(struct pool_lease *lease)
{
    struct fake_user *user = lease->data;
    char byte;

    user->done++;
    user->status = lease->status;
    if (lease->status != POOL_READY || cuts++ >= 3)
        return;
    testing_peer_cut(to_cut, LINK_RESET);
    channel_read(lease->channel, &byte, 1);
    pool_release(lease, POOL_DISCARD); /* fails again inside the callback that told it was ready */
    fake_ask(user->world, user, A);
    lease->done = cut_when_ready;
}

Test(cases, XH17_a_failure_inside_the_ready_callback_does_not_stop_the_retries)
{
    struct fake_world world;
    struct fake_user user = {.lease.timeout = INFINITY, .lease.flags = POOL_WAIT_FOR_READY};

    cases_begin(&world);
    cases_gaps(&world, 0.2, 2, 10);
    world.backoff.stable_after = 5; /* so that each of these deaths is a failure, with a verdict */
    fake_world_open(&world);
    to_cut = fake_echo(&world, A);
    fake_ask(&world, &user, A);
    user.lease.done = cut_when_ready;
    fake_run(&world, 20);
    cr_assert(eq(uint, cuts, 4));
    cr_assert(eq(uint, fake_host_stats(user.lease.host).failures, 0)); /* by now it is proven */
    cr_assert(eq(u64, fake_host_stats(user.lease.host).failed, 3));
    cr_assert(eq(int, user.status, POOL_READY));
    fake_exchange(&world, &user);
    fake_world_end(&world);
}

/* ---- lists ---- */

Test(cases, XI1_links_to_removed_addresses_drain_and_the_others_stay)
{
    struct fake_world world;
    struct fake_user held = {0};

    struct testing_peer *a = begin_raw(&world), *b = fake_echo(&world, B);
    struct pool_target *target = cases_target(&world, &pool_round_robin, 2);
    pool_target_start(target);
    fake_run(&world, 1);
    fake_hold(&world, &held, A);
    CASES_LIST(target, B);
    fake_settle(&world);
    cr_assert(eq(uint, testing_peer_open(a), 1));
    cr_assert(eq(uint, testing_peer_open(b), 1));
    for (int i = 0; i < 4; i++)
        cases_use(&world, "db");
    cr_assert(eq(u64, testing_peer_bytes(b), 4));
    fake_exchange(&world, &held); /* under way on what was removed */
    fake_give_back(&held);
    fake_settle(&world);
    cr_assert(eq(uint, testing_peer_open(a), 0));
    cr_assert(eq(uint, testing_peer_accepted(b), 1));
    fake_world_end(&world);
}

Test(cases, XI3_the_same_list_in_another_order_touches_nothing)
{
    struct fake_world world;

    begin_raw(&world);
    fake_echo(&world, B);
    fake_echo(&world, C);
    struct pool_target *target = cases_target(&world, &pool_round_robin, 3);
    pool_target_start(target);
    fake_run(&world, 1);
    for (int i = 0; i < 30; i++) {
        CASES_LIST(target, cases_abc[i % 3], cases_abc[(i + 1) % 3], cases_abc[(i + 2) % 3]);
        fake_run(&world, 0.1);
    }
    cr_assert(eq(u64, fake_stats(&world).opened, 3));
    cr_assert(eq(uint, fake_stats(&world).links, 3));
    fake_world_end(&world);
}

Test(cases, XI7_the_addresses_of_a_list_are_tried_in_turn)
{
    struct fake_world world;

    testing_peer_behave(begin_raw(&world), TESTING_REFUSE);
    fake_peer(&world, B, TESTING_UNREACHABLE);
    fake_echo(&world, C);
    cases_target(&world, &pool_pick_first, 3);
    cases_use(&world, "db");
    cr_assert(eq(u64, fake_stats(&world).opened, 3));
    fake_world_end(&world);
}
