/* cases_t_connect.c - the cases T1 to T18: nothing before it is wanted, READY after the handshake alone, backoff. */
#include "tests/conformance/cases.h"

/* A world whose links shake hands, with one target of n addresses. */
static struct pool_target *begin(struct fake_world *world, const struct protocol *protocol, size_t n)
{
    cases_begin(world);
    cases_gaps(world, 0.2, 2, 10);
    world->host.protocol = protocol;
    world->host.connect_timeout = 0.1;
    fake_world_open(world);
    return cases_target(world, &pool_pick_first, n);
}

Test(cases, T1_connecting_and_then_ready)
{
    struct fake_world world;
    struct pool_target *target = begin(&world, &fake_session, 1);

    fake_echo(&world, A);
    cr_assert(eq(int, pool_target_state(target), LINK_IDLE));
    pool_target_start(target);
    fake_run(&world, 0.05);
    cr_assert(eq(str, (char *)cases_states(), "connecting ready"));
    cr_assert(eq(str, (char *)cases_links(), "connecting handshaking ready"));
    fake_world_end(&world);
}

Test(cases, T2_a_close_before_any_byte_is_a_failure)
{
    struct fake_world world;
    struct pool_target *target = begin(&world, &cases_greeted, 1);

    fake_peer(&world, A, TESTING_ACCEPT_AND_CLOSE);
    pool_target_start(target);
    fake_run(&world, 0.05);
    cr_assert(eq(str, (char *)cases_states(), "connecting backoff"));
    cr_assert(eq(uint, cases_seen(LINK_READY), 0));
    cr_assert(eq(int, fake_host_stats(pool_target_host(target, 0)).last_reason, LINK_CLOSED_BY_PEER));
    fake_world_end(&world);
}

Test(cases, T3_half_a_handshake_is_not_ready)
{
    struct fake_world world;
    struct pool_target *target = begin(&world, &cases_greeted, 1);

    testing_peer_greet(fake_peer(&world, A, TESTING_ACCEPT_AND_CLOSE), "G", 1);
    pool_target_start(target);
    fake_run(&world, 0.05);
    cr_assert(eq(str, (char *)cases_states(), "connecting backoff"));
    cr_assert(eq(uint, cases_seen(LINK_READY), 0));
    fake_world_end(&world);
}

Test(cases, T4_a_silent_peer_has_until_the_connect_deadline)
{
    struct fake_world world;
    struct pool_target *target = begin(&world, &fake_session, 1);

    fake_peer(&world, A, TESTING_SILENT);
    pool_target_start(target);
    fake_run(&world, 0.099);
    cr_assert(eq(int, pool_target_state(target), LINK_CONNECTING));
    fake_run(&world, 0.002);
    cr_assert(eq(str, (char *)cases_states(), "connecting backoff"));
    cr_assert(eq(int, fake_host_stats(pool_target_host(target, 0)).last_reason, LINK_TIMED_OUT));
    fake_world_end(&world);
}

Test(cases, T5_a_lost_link_rests_until_the_next_connect)
{
    struct fake_world world;
    struct pool_target *target = begin(&world, &fake_session, 1);
    struct testing_peer *peer = fake_echo(&world, A);

    pool_target_start(target);
    fake_run(&world, 1);
    testing_peer_cut(peer, LINK_CLOSED_BY_PEER);
    fake_run(&world, 1);
    cr_assert(eq(str, (char *)cases_states(), "connecting ready idle"));
    testing_peer_delay(peer, 1, 0);
    pool_target_start(target);
    fake_run(&world, 0.01);
    cr_assert(eq(str, (char *)cases_states(), "connecting ready idle connecting"));
    fake_world_end(&world);
}

Test(cases, T6_one_pass_over_two_that_fail_is_one_failure)
{
    struct fake_world world;
    struct fake_user user = {0};

    begin(&world, &fake_session, 2);
    struct testing_peer *a = fake_peer(&world, A, TESTING_ACCEPT_AND_CLOSE);
    struct testing_peer *b = fake_peer(&world, B, TESTING_ACCEPT_AND_CLOSE);
    fake_ask(&world, &user, "db");
    fake_run(&world, 0.05);
    cr_assert(eq(str, (char *)cases_states(), "connecting backoff"));
    cr_assert(eq(uint, testing_peer_attempts(a), 1));
    cr_assert(eq(uint, testing_peer_attempts(b), 1));
    cr_assert(eq(int, user.status, LINKPOOL_EUNAVAILABLE));
    fake_world_end(&world);
}

Test(cases, T7_the_second_address_serves_without_a_failure_between)
{
    struct fake_world world;

    begin(&world, &fake_session, 2);
    fake_peer(&world, A, TESTING_ACCEPT_AND_CLOSE);
    fake_echo(&world, B);
    cr_assert(cases_try(&world, "db"));
    cr_assert(eq(str, (char *)cases_states(), "connecting ready"));
    fake_world_end(&world);
}

Test(cases, T9_accepting_alone_resets_no_backoff)
{
    struct fake_world world;
    struct fake_user user = {0};

    begin(&world, &fake_session, 1);
    struct testing_peer *peer = fake_peer(&world, A, TESTING_ACCEPT_AND_CLOSE);
    cases_wait(&world, &user, "db");
    fake_run(&world, 2);
    for (unsigned i = 0; i < 3; i++) {
        double gap = testing_peer_attempt_at(peer, i + 1) - testing_peer_attempt_at(peer, i);
        cr_assert(epsilon_eq(dbl, gap, 0.2 * (1 << i), 1e-4), "gap %u", i);
    }
    fake_world_end(&world);
}

Test(cases, T10_without_addresses_a_use_waits_for_its_deadline)
{
    struct fake_world world;
    struct fake_user user = {.lease.timeout = 0.5};

    cases_open(&world);
    struct pool_target *target = cases_unknown(&world, "db");
    cr_assert(eq(int, pool_target_start(target), 0));
    cr_assert(eq(int, fake_ask(&world, &user, "db"), POOL_PENDING));
    fake_run(&world, 0.499);
    cr_assert(eq(int, pool_target_state(target), LINK_CONNECTING));
    cr_assert(eq(uint, user.done, 0));
    fake_run(&world, 0.002);
    cr_assert(eq(int, user.status, LINKPOOL_ETIMEDOUT));
    fake_world_end(&world);
}

Test(cases, T11_a_server_that_comes_up_is_found_when_the_backoff_ends)
{
    struct fake_world world;
    struct fake_user user = {0};

    cases_begin(&world);
    cases_gaps(&world, 0.1, 2, 10);
    fake_world_open(&world);
    struct testing_peer *peer = fake_peer(&world, A, TESTING_REFUSE);
    double from = testing_now(world.t);
    cases_wait(&world, &user, A);
    fake_run(&world, 0.01);
    testing_peer_behave(peer, TESTING_ACCEPT);
    fake_run(&world, 1);
    cr_assert(eq(int, user.status, POOL_READY));
    cr_assert(ge(dbl, user.told_at - from, 0.1));
    cr_assert(le(dbl, user.told_at - from, 0.11));
    fake_world_end(&world);
}

Test(cases, T13_a_reset_of_the_backoff_tries_now)
{
    for (int reset = 0; reset < 2; reset++) {
        struct fake_world world;
        struct fake_user user = {0};
        cases_begin(&world);
        cases_gaps(&world, 1, 2, 10);
        fake_world_open(&world);
        struct testing_peer *peer = fake_peer(&world, A, TESTING_REFUSE);
        cases_wait(&world, &user, A);
        fake_run(&world, 0.1);
        testing_peer_behave(peer, TESTING_ACCEPT);
        if (reset)
            pool_reset_backoff(world.pool);
        fake_run(&world, 0.1);
        cr_assert(eq(int, user.status, reset ? POOL_READY : POOL_PENDING));
        fake_world_end(&world);
    }
}

Test(cases, T14_a_reset_forgives_the_attempt_under_way)
{
    struct fake_world world;
    struct fake_user user = {0};

    cases_begin(&world);
    cases_gaps(&world, 5, 2, 60);
    world.host.protocol = &fake_session;
    fake_world_open(&world);
    struct testing_peer *peer = fake_peer(&world, A, TESTING_SILENT);
    cases_wait(&world, &user, A);
    fake_run(&world, 0.1);
    pool_reset_backoff(world.pool);
    testing_peer_cut(peer, LINK_RESET);
    double failed = testing_now(world.t);
    fake_run(&world, 2);
    cr_assert(ge(uint, testing_peer_attempts(peer), 2));
    cr_assert(lt(dbl, testing_peer_attempt_at(peer, 1) - failed, 1));
    fake_world_end(&world);
}

static double for_ever(const struct backoff_policy *policy, const struct backoff_history *history, double draw)
{
    (void)policy, (void)history, (void)draw;
    return INFINITY;
}

Test(cases, T15_an_endless_backoff_ends_by_a_reset)
{
    struct fake_world world;
    struct fake_user user = {0};

    cases_begin(&world);
    world.backoff.delay = for_ever;
    fake_world_open(&world);
    struct testing_peer *peer = fake_peer(&world, A, TESTING_REFUSE);
    cases_wait(&world, &user, A);
    fake_run(&world, 100);
    cr_assert(eq(uint, testing_peer_attempts(peer), 1));
    pool_reset_backoff(world.pool);
    fake_run(&world, 0.01);
    cr_assert(eq(uint, testing_peer_attempts(peer), 2));
    fake_world_end(&world);
}

static unsigned asked;

static double ask_once(const struct backoff_policy *policy, const struct backoff_history *history, double draw)
{
    (void)policy, (void)history, (void)draw;
    asked++;
    return 60;
}

Test(cases, T16_one_pass_asks_once_an_address)
{
    struct fake_world world;
    struct fake_user user = {0};

    cases_begin(&world);
    world.backoff.delay = ask_once;
    world.host.protocol = &fake_session;
    fake_world_open(&world);
    cases_target(&world, &pool_pick_first, 2);
    fake_peer(&world, A, TESTING_ACCEPT_AND_CLOSE);
    fake_peer(&world, B, TESTING_ACCEPT_AND_CLOSE);
    fake_ask(&world, &user, "db");
    fake_run(&world, 50);
    cr_assert(eq(int, user.status, LINKPOOL_EUNAVAILABLE));
    cr_assert(eq(uint, asked, 2));
    cr_assert(eq(u64, fake_stats(&world).opened, 2));
    fake_world_end(&world);
}

Test(cases, T17_a_pool_in_backoff_is_freed_at_once)
{
    struct fake_world world;
    struct fake_user user = {0};

    cases_open(&world);
    fake_peer(&world, A, TESTING_REFUSE);
    cases_wait(&world, &user, A);
    fake_run(&world, 0.01);
    cr_assert(eq(int, fake_host_stats(fake_host(&world, A)).state, LINK_BACKOFF));
    pool_free(world.pool);
    world.pool = NULL;
    cr_assert(eq(int, user.status, LINKPOOL_ECLOSED));
    cr_assert(not(testing_turn(world.t))); /* nothing is left to wait for */
    fake_world_end(&world);
}

/* Ours draws the first delay as well: REFERENCE's G3 has it within a fifth, not exact. */
Test(cases, T18_delays_stay_within_a_fifth_of_the_curve_and_the_cap)
{
    for (unsigned n = 0; n <= 20; n++) {
        double middle = fmin(120, pow(1.6, n)), least = INFINITY, most = 0;
        for (unsigned i = 0; i < 1000; i++) {
            double delay = backoff_delay(&backoff_grpc, &(struct backoff_history){.attempt = n + 1}, i / 1000.0);
            least = fmin(least, delay);
            most = fmax(most, delay);
        }
        cr_assert(epsilon_eq(dbl, least, 0.8 * middle, 1e-9), "attempt %u", n);
        cr_assert(le(dbl, most, 1.2 * middle), "attempt %u", n);
        cr_assert(ge(dbl, most, 1.19 * middle), "attempt %u", n);
    }
}
