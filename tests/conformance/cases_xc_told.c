/* cases_xc_told.c - the cases XC14 to XC25: what those who wait are told, and when. */
#include "tests/conformance/cases.h"

Test(cases, XC14_it_is_told_apart_whether_the_line_or_the_connect_took_the_time)
{
    struct fake_world world;
    struct fake_user holder = {0}, line = {.lease.timeout = 1}, connects = {.lease.timeout = 1};

    cases_peer(&world, 1);
    fake_peer(&world, B, TESTING_BLACK_HOLE);
    fake_hold(&world, &holder, A);
    fake_ask(&world, &line, A);
    fake_ask(&world, &connects, B);
    fake_run(&world, 2);
    cr_assert(eq(int, line.lease.stage, POOL_STAGE_LINE));
    cr_assert(eq(int, connects.lease.stage, POOL_STAGE_CONNECT));
    fake_world_end(&world);
}

Test(cases, XC15_two_users_of_a_pool_have_one_limit)
{
    struct fake_world world;
    struct fake_user users[10] = {0};

    cases_peer(&world, 3);
    cases_target(&world, &pool_round_robin, 1);
    fake_target(&world, "other", &pool_pick_first, cases_abc, 1);
    for (int i = 0; i < 10; i++)
        fake_ask(&world, &users[i], i % 2 ? "db" : "other");
    fake_run(&world, 1);
    cr_assert(eq(uint, cases_count(users, 10, POOL_READY), 3));
    cr_assert(eq(uint, fake_stats(&world).links, 3));
    fake_world_end(&world);
}

Test(cases, XC16_a_timeout_in_line_says_nothing_against_the_host)
{
    struct fake_world world;
    struct fake_user holder = {0}, users[5] = {0};

    cases_peer(&world, 1);
    fake_hold(&world, &holder, A);
    for (int i = 0; i < 5; i++) {
        users[i].lease.timeout = 0.1;
        fake_ask(&world, &users[i], A);
    }
    fake_run(&world, 1);
    cr_assert(eq(uint, cases_count(users, 5, LINKPOOL_ETIMEDOUT), 5));
    struct pool_host_stats stats = fake_host_stats(holder.lease.host);
    cr_assert(eq(uint, stats.failures, 0));
    cr_assert(eq(int, stats.state, LINK_READY));
    cr_assert(eq(u64, stats.failed, 0));
    cr_assert(eq(int, stats.last_reason, LINK_NO_REASON));
    fake_exchange(&world, &holder);
    fake_world_end(&world);
}

Test(cases, XC17_a_maximum_of_0_is_refused_when_it_is_given)
{
    struct fake_world world;
    char why[200];

    cases_begin(&world);
    unsigned *maxima[] = {&world.options.max_links, &world.options.max_hosts, &world.options.max_waiting,
        &world.options.max_line, &world.options.max_connecting, &world.host.max_links, &world.host.max_connecting};
    for (size_t i = 0; i < sizeof maxima / sizeof *maxima; i++) {
        unsigned was = *maxima[i];
        *maxima[i] = 0;
        cr_assert(eq(int, pool_options_check(&world.options, why, sizeof why), LINKPOOL_EINVAL), "%zu", i);
        cr_assert(eq(ptr, pool_new_on(testing_driver(world.t), &world.options), NULL));
        cr_assert(eq(int, errno, EINVAL));
        *maxima[i] = was;
    }
    fake_world_end(&world);
}

Test(cases, XC18_from_a_release_to_the_callback_is_a_turn)
{
    struct fake_world world;
    struct fake_user holder = {0}, user = {0};

    cases_peer(&world, 1);
    fake_hold(&world, &holder, A);
    fake_ask(&world, &user, A);
    fake_run(&world, 1);
    double from = testing_now(world.t);
    fake_give_back(&holder);
    fake_turn(&world);
    cr_assert(eq(int, user.status, POOL_READY));
    cr_assert(eq(dbl, user.told_at, from));
    fake_world_end(&world);
}

Test(cases, XC19_who_waits_costs_no_turns)
{
    struct fake_world world;
    struct fake_user holder = {0}, user = {0};

    cases_begin(&world);
    world.host.max_links = 1;
    struct driver *driver = testing_driver(world.t);
    world.pool = pool_new_on(driver, &world.options);
    fake_echo(&world, A);
    fake_hold(&world, &holder, A);
    fake_ask(&world, &user, A);
    fake_settle(&world);
    uint64_t before = driver->turn;
    fake_run(&world, 4.9);
    cr_assert(le(u64, driver->turn, before + 2));
    cr_assert(eq(int, user.status, POOL_PENDING));
    fake_world_end(&world);
}

Test(cases, XC20_a_link_that_comes_too_late_goes_to_the_next)
{
    for (int waits = 0; waits < 2; waits++) {
        struct fake_world world;
        struct fake_user user = {.lease.timeout = 0.1}, next = {0};
        testing_peer_delay(cases_peer(&world, 1), 0.2, 0);
        fake_ask(&world, &user, A);
        if (waits)
            fake_ask(&world, &next, A);
        fake_run(&world, 0.15);
        cr_assert(eq(int, user.status, LINKPOOL_ETIMEDOUT));
        fake_run(&world, 0.1);
        cr_assert(eq(int, fake_stats(&world).idle, !waits));
        cr_assert(eq(int, next.done, waits));
        fake_world_end(&world);
    }
}

Test(cases, XC21_a_black_hole_keeps_nobody_elses_place)
{
    struct fake_world world;
    struct fake_user users[50] = {0};

    cases_begin(&world);
    world.options.max_connecting = 8;
    fake_world_open(&world);
    fake_peer(&world, B, TESTING_BLACK_HOLE);
    fake_echo(&world, A);
    cases_ask(&world, users, 50, B);
    fake_settle(&world);
    cr_assert(le(uint, fake_stats(&world).connecting, 4));
    double from = testing_now(world.t);
    cases_use(&world, A);
    cr_assert(lt(dbl, testing_now(world.t) - from, 0.01));
    fake_run(&world, 3.01);
    cr_assert(eq(uint, cases_count(users, 50, LINKPOOL_EUNAVAILABLE), 50));
    cr_assert(eq(uint, fake_stats(&world).connecting, 0));
    fake_world_end(&world);
}

Test(cases, XC22_a_broken_link_given_back_makes_way_for_a_new_one)
{
    struct fake_world world;
    struct fake_user holder = {0}, user = {0};

    struct testing_peer *peer = cases_peer(&world, 1);
    fake_hold(&world, &holder, A);
    fake_ask(&world, &user, A);
    fake_run(&world, 1);
    pool_release(&holder.lease, POOL_DISCARD);
    fake_settle(&world);
    cr_assert(eq(int, user.status, POOL_READY));
    cr_assert(not(user.lease.reused));
    cr_assert(eq(uint, testing_peer_accepted(peer), 2));
    fake_world_end(&world);
}

Test(cases, XC23_after_an_outage_the_line_is_served_without_anybody_asking_anew)
{
    struct fake_world world;
    struct fake_user users[20] = {0};

    struct testing_peer *peer = cases_peer(&world, 20);
    testing_peer_behave(peer, TESTING_REFUSE);
    for (int i = 0; i < 20; i++)
        cases_wait(&world, &users[i], A);
    fake_run(&world, 100); /* ten times the longest backoff */
    testing_peer_behave(peer, TESTING_ACCEPT);
    fake_run(&world, 10.01);
    cr_assert(eq(uint, cases_count(users, 20, POOL_READY), 20));
    fake_world_end(&world);
}

Test(cases, XC25_when_the_connect_fails_those_in_line_are_told_at_once)
{
    struct fake_world world;
    struct fake_user users[2] = {0};

    struct testing_peer *peer = cases_peer(&world, 1);
    testing_peer_behave(peer, TESTING_REFUSE);
    testing_peer_delay(peer, 0.1, 0);
    double from = testing_now(world.t);
    cases_ask(&world, users, 2, A);
    fake_run(&world, 1);
    for (int i = 0; i < 2; i++) {
        cr_assert(eq(int, users[i].status, LINKPOOL_EUNAVAILABLE));
        cr_assert(epsilon_eq(dbl, users[i].told_at - from, 0.1, 1e-3));
    }
    fake_world_end(&world);
}
