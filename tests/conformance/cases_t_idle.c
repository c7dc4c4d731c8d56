/* cases_t_idle.c - the cases T105 to T113: links that fall quiet. */
#include "tests/conformance/cases.h"

static struct testing_peer *begin_idle(struct fake_world *world, double idle_timeout)
{
    cases_begin(world);
    world->host.idle_timeout = idle_timeout;
    fake_world_open(world);
    cases_target(world, &pool_pick_first, 1);
    return fake_echo(world, A);
}

Test(cases, T105_ready_idle_and_ready_again)
{
    struct fake_world world;

    begin_idle(&world, 1);
    cases_use(&world, "db");
    fake_run(&world, 1.2);
    cr_assert(eq(str, (char *)cases_states(), "connecting ready idle"));
    cases_use(&world, "db");
    cr_assert(eq(str, (char *)cases_states(), "connecting ready idle connecting ready"));
    fake_world_end(&world);
}

Test(cases, T106_idle_has_no_connection)
{
    struct fake_world world;
    struct testing_peer *peer = begin_idle(&world, 0.01);

    cases_use(&world, "db");
    fake_run(&world, 0.02);
    cr_assert(eq(uint, testing_peer_open(peer), 0));
    cr_assert(eq(uint, testing_open_descriptors(world.t), 0));
    fake_world_end(&world);
}

Test(cases, T107_a_timeout_of_0_keeps_it_ready)
{
    struct fake_world world;

    begin_idle(&world, 0);
    cases_use(&world, "db");
    fake_run(&world, 1e6);
    cr_assert(eq(str, (char *)cases_states(), "connecting ready"));
    fake_world_end(&world);
}

Test(cases, T108_not_idle_while_somebody_waits_or_holds)
{
    struct fake_world world;
    struct fake_user user = {.lease.timeout = INFINITY};
    struct testing_peer *peer = begin_idle(&world, 1);

    testing_peer_delay(peer, 2, 0);
    fake_ask(&world, &user, "db");
    fake_run(&world, 10);
    cr_assert(eq(int, user.status, POOL_READY));
    cr_assert(eq(str, (char *)cases_states(), "connecting ready"));
    fake_give_back(&user);
    fake_run(&world, 1.1);
    cr_assert(eq(str, (char *)cases_states(), "connecting ready idle"));
    fake_world_end(&world);
}

Test(cases, T109_a_use_each_half_of_the_time_keeps_it_up)
{
    struct fake_world world;
    struct testing_peer *peer = begin_idle(&world, 1);

    for (int i = 0; i < 100; i++) {
        cases_use(&world, "db");
        fake_run(&world, 0.5);
    }
    cr_assert(eq(uint, testing_peer_accepted(peer), 1));
    fake_world_end(&world);
}

Test(cases, T110_an_idle_target_serves_by_the_list_it_has_by_then)
{
    struct fake_world world;

    begin_idle(&world, 1);
    struct testing_peer *other = fake_echo(&world, B);
    cases_use(&world, "db");
    fake_run(&world, 2);
    CASES_LIST(pool_next_target(world.pool, NULL), B);
    cases_use(&world, "db");
    cr_assert(eq(u64, testing_peer_bytes(other), 1));
    fake_world_end(&world);
}

Test(cases, T112_a_lease_cancelled_at_once_is_never_told_and_counted_once)
{
    struct fake_world world;
    struct fake_user first = {0}, user = {0};

    cases_peer(&world, 1);
    fake_hold(&world, &first, A);
    fake_ask(&world, &user, A);
    cr_assert(eq(int, pool_cancel(&user.lease), 0));
    cr_assert(eq(int, pool_cancel(&user.lease), LINKPOOL_ESTATE));
    cr_assert(eq(int, pool_release(&user.lease, POOL_REUSE), LINKPOOL_ESTATE));
    fake_give_back(&first);
    fake_settle(&world);
    cr_assert(eq(uint, user.done, 0));
    cr_assert(eq(u64, fake_stats(&world).cancelled, 1));
    cr_assert(eq(uint, fake_stats(&world).leased, 0));
    cr_assert(eq(uint, fake_stats(&world).waiting, 0));
    fake_world_end(&world);
}

static struct fake_world *the_world;

static void ask_now(void *user)
{
    fake_ask(the_world, user, A);
}

/* The timer and the use in one instant: whichever comes first, no link ends under its lease. */
Test(cases, T113_the_timer_and_a_use_at_the_same_instant)
{
    for (int i = -1; i <= 1; i++) {
        struct fake_world world;
        struct fake_user user = {0};
        begin_idle(&world, 1);
        the_world = &world;
        cases_use(&world, A);
        testing_at(world.t, testing_now(world.t) + 1 + i * 1e-9, ask_now, &user);
        fake_run(&world, 1.1);
        cr_assert(eq(int, user.status, POOL_READY));
        fake_exchange(&world, &user);
        cr_assert(eq(uint, fake_stats(&world).leased, 1));
        cr_assert(eq(uint, fake_stats(&world).links, 1));
        fake_world_end(&world);
    }
}
