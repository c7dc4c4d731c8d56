/* cases_xc.c - the cases XC2 to XC13: who waits, who leaves the line, and wake-ups that must not be lost. */
#include "tests/conformance/cases.h"

#include <ev.h>

Test(cases, XC2_a_waiter_who_leaves_at_any_stage_leaves_no_entry)
{
    static const double at[] = {0, 0.05, 0.15, 0.25};

    for (int i = 0; i < 4; i++) {
        struct fake_world world;
        struct fake_user user = {0};
        cases_begin(&world);
        world.host.protocol = &fake_session;
        world.host.max_links = 1;
        fake_world_open(&world);
        testing_peer_delay(fake_echo(&world, A), 0.1, 0.1);
        fake_ask(&world, &user, A);
        fake_run(&world, at[i]);
        if (user.status == POOL_READY)
            pool_release(&user.lease, POOL_DISCARD);
        else
            cr_assert(eq(int, pool_cancel(&user.lease), 0));
        fake_run(&world, 10);
        cr_assert(eq(uint, fake_stats(&world).connecting, 0));
        cr_assert(eq(uint, fake_stats(&world).waiting, 0));
        cr_assert(le(uint, fake_stats(&world).links, 1));
        fake_hold(&world, &user, A);
        fake_world_end(&world);
    }
}

Test(cases, XC3_those_who_left_the_line_swallow_nothing)
{
    struct fake_world world;
    struct fake_user holders[2] = {0}, users[5] = {0};

    cases_peer(&world, 2);
    cases_ask(&world, holders, 2, A);
    fake_settle(&world);
    cases_ask(&world, users, 5, A);
    for (int i = 0; i < 5; i += 2)
        cr_assert(eq(int, pool_cancel(&users[i].lease), 0));
    for (int i = 0; i < 2; i++)
        fake_give_back(&holders[i]);
    fake_settle(&world);
    for (int i = 0; i < 5; i++) {
        cr_assert(eq(uint, users[i].done, i % 2));
        cr_assert(eq(int, users[i].lease.channel != NULL, i % 2));
    }
    fake_world_end(&world);
}

Test(cases, XC5_the_wait_ends_at_its_deadline_however_often_the_link_was_free)
{
    struct fake_world world;
    struct fake_user users[30] = {0}, last = {.lease.timeout = 1};

    cases_peer(&world, 1);
    fake_hold(&world, &users[0], A);
    double from = testing_now(world.t);
    cases_ask(&world, users + 1, 29, A);
    fake_ask(&world, &last, A);
    for (int i = 0; i < 20; i++) { /* each of those before it is served, and the link is free 20 times */
        fake_run(&world, 0.1);
        fake_give_back(&users[i]);
        fake_settle(&world);
        cr_assert(eq(int, users[i + 1].status, POOL_READY));
    }
    cr_assert(eq(int, last.status, LINKPOOL_ETIMEDOUT));
    cr_assert(epsilon_eq(dbl, last.told_at - from, 1, 1e-6));
    fake_world_end(&world);
}

Test(cases, XC6_alarms_that_ring_early_make_no_wait_longer_or_shorter)
{
    struct fake_world world;
    struct fake_user users[20] = {0}, holder = {0};

    cases_peer(&world, 1);
    testing_early_alarms(world.t, true);
    fake_hold(&world, &holder, A);
    double from = testing_now(world.t);
    for (int i = 0; i < 20; i++) {
        users[i].lease.timeout = 0.1 * (i + 1);
        fake_ask(&world, &users[i], A);
    }
    fake_run(&world, 3);
    for (int i = 0; i < 20; i++) {
        cr_assert(eq(int, users[i].status, LINKPOOL_ETIMEDOUT));
        cr_assert(epsilon_eq(dbl, users[i].told_at - from, 0.1 * (i + 1), 1e-6));
    }
    fake_world_end(&world);
}

static void ignore(struct pool_lease *lease)
{
    (void)lease;
}

/* Waits, and fails, in a pool made by whichever function: on real time 1 ms. */
Test(cases, XC7_whatever_made_it_the_pool_can_be_exhausted)
{
    struct pool_options options;
    struct pool_lease lease = {.done = ignore, .timeout = 0.001}, more = {.done = ignore, .timeout = 0.001};
    struct fake_world world;
    struct fake_user users[4] = {0};

    struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
    pool_options_init(&options);
    options.max_links = options.max_line = 1;
    struct pool *pool = pool_new(loop, &options);
    cr_assert(ne(ptr, pool, NULL));
    cr_assert(eq(int, pool_acquire(pool, "unix:@nobody-listens-here-at-all", &lease), POOL_PENDING));
    cr_assert(eq(int, pool_acquire(pool, "unix:@nobody-listens-here-at-all", &more), LINKPOOL_EFULL));
    while (lease.status == POOL_PENDING)
        ev_run(loop, EVRUN_ONCE);
    cr_assert(lt(int, lease.status, 0));
    pool_free(pool);
    ev_loop_destroy(loop);
    cases_peer(&world, 1);
    struct pool_host *host = pool_host(world.pool, A);
    struct pool_target *target = cases_target(&world, &pool_round_robin, 1);
    fake_hold(&world, &users[0], A);
    fake_ask(&world, &users[1], A);
    fake_ask_host(&world, &users[2], host);
    fake_ask_target(&world, &users[3], target);
    fake_run(&world, 6);
    cr_assert(eq(uint, cases_count(users, 4, LINKPOOL_ETIMEDOUT), 3));
    fake_world_end(&world);
}

static struct fake_user *gives_back;

static void release_another(struct pool_lease *lease)
{
    struct fake_user *user = lease->data;

    user->done++;
    user->status = lease->status;
    fake_give_back(gives_back);
}

Test(cases, XC8_a_release_from_inside_a_callback_serves_who_waits)
{
    struct fake_world world;
    struct fake_user holders[2] = {0}, first = {0}, second = {0}, third = {0};

    cases_peer(&world, 2);
    cases_ask(&world, holders, 2, A);
    fake_settle(&world);
    fake_ask(&world, &first, A);
    fake_ask(&world, &second, A);
    fake_ask(&world, &third, A);
    fake_settle(&world); /* the line has been looked at, and waits for a return */
    first.lease.done = release_another;
    gives_back = &holders[1];
    fake_give_back(&holders[0]);
    for (int i = 0; i < 5 && second.status == POOL_PENDING; i++) {
        fake_turn(&world);
        struct pool_stats stats = fake_stats(&world);
        cr_assert(not(stats.waiting && stats.idle), "turn %d", i);
    }
    cr_assert(eq(int, second.status, POOL_READY));
    cr_assert(eq(int, third.status, POOL_PENDING));
    fake_world_end(&world);
}

Test(cases, XC9_a_host_that_is_back_in_service_serves_its_line_at_once)
{
    struct fake_world world;
    struct fake_user users[3] = {0};

    cases_peer(&world, 3);
    cases_target(&world, &pool_pick_first, 1);
    struct pool_host *host = pool_host(world.pool, A);
    pool_host_drain(host, 0);
    fake_settle(&world);
    for (int i = 0; i < 3; i++)
        cr_assert(eq(int, cases_wait(&world, &users[i], "db"), POOL_PENDING));
    fake_run(&world, 10);
    cr_assert(eq(uint, cases_count(users, 3, POOL_PENDING), 3));
    pool_host_start(host);
    fake_settle(&world);
    cr_assert(eq(uint, cases_count(users, 3, POOL_READY), 3));
    fake_world_end(&world);
}

Test(cases, XC10_the_line_is_empty_when_all_have_left)
{
    struct fake_world world;
    struct fake_user holder = {0}, users[10] = {0};

    cases_peer(&world, 1);
    fake_hold(&world, &holder, A);
    cases_ask(&world, users, 10, A);
    cr_assert(eq(uint, fake_host_stats(fake_host(&world, A)).waiting, 10));
    for (int i = 0; i < 10; i++)
        pool_cancel(&users[(i * 7) % 10].lease);
    cr_assert(eq(uint, fake_host_stats(fake_host(&world, A)).waiting, 0));
    cr_assert(eq(uint, fake_stats(&world).waiting, 0));
    cr_assert(eq(u64, fake_stats(&world).cancelled, 10));
    fake_world_end(&world);
}

Test(cases, XC12_a_full_primary_spills_nobody_to_the_backup)
{
    struct fake_world world;
    struct fake_user users[5] = {0};

    cases_peer(&world, 1);
    struct testing_peer *backup = fake_echo(&world, B);
    cases_target(&world, &pool_pick_first, 2);
    cases_ask(&world, users, 5, "db");
    fake_settle(&world);
    for (int i = 0; i < 5; i++) {
        fake_run(&world, 0.1);
        cr_assert(eq(int, users[i].status, POOL_READY));
        fake_give_back(&users[i]);
    }
    cr_assert(eq(uint, testing_peer_attempts(backup), 0));
    fake_world_end(&world);
}

Test(cases, XC13_one_free_place_wakes_one)
{
    static struct fake_user users[1000];
    struct fake_world world;

    cases_peer(&world, 5);
    cases_ask(&world, users, 1000, A);
    fake_settle(&world);
    cr_assert(eq(uint, world.told, 5));
    for (unsigned i = 0; i < 100; i++) {
        fake_give_back(&users[i]);
        fake_run(&world, 0.001);
        cr_assert(eq(uint, world.told, 6 + i));
    }
    fake_world_end(&world);
}
