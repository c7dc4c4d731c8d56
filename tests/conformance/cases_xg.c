/* cases_xg.c - the cases XG: idle links are culled, and no more than they; lifetimes. */
#include "tests/conformance/cases.h"

static struct testing_peer *begin(struct fake_world *world, double idle_timeout, unsigned min_links)
{
    cases_begin(world);
    cases_gaps(world, 0.2, 2, 10);
    world->host.idle_timeout = idle_timeout;
    world->host.min_links = min_links;
    fake_world_open(world);
    return fake_echo(world, A);
}

/* n links at once: all are used, and come back. */
static void burst(struct fake_world *world, size_t n)
{
    static struct fake_user users[100];

    memset(users, 0, sizeof users);
    cases_ask(world, users, n, A);
    fake_run(world, 0.1);
    for (size_t i = 0; i < n; i++)
        cr_assert(eq(int, users[i].status, POOL_READY));
    for (size_t i = 0; i < n; i++)
        fake_give_back(&users[i]);
}

Test(cases, XG1_without_traffic_the_last_idle_link_goes_by_itself)
{
    struct fake_world world;

    begin(&world, 10, 0);
    burst(&world, 7);
    fake_run(&world, 10);
    cr_assert(eq(uint, fake_stats(&world).links, 0));
    cr_assert(eq(uint, testing_open_descriptors(world.t), 0));
    fake_world_end(&world);
    begin(&world, 10, 3);
    pool_host(world.pool, A);
    burst(&world, 7);
    fake_run(&world, 100);
    cr_assert(eq(uint, fake_stats(&world).links, 3)); /* the floor, where there is one */
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_IDLE_TIMEOUT], 4));
    fake_world_end(&world);
}

Test(cases, XG2_with_no_surplus_none_is_closed)
{
    struct fake_world world;

    begin(&world, 10, 5);
    pool_host(world.pool, A);
    for (int i = 0; i < 100; i++) {
        burst(&world, 1 + (size_t)i % 5);
        fake_run(&world, 10);
        cr_assert(eq(uint, fake_stats(&world).links, 5));
    }
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_IDLE_TIMEOUT], 0));
    fake_world_end(&world);
}

Test(cases, XG4_one_use_a_second_keeps_one_of_ten)
{
    struct fake_world world;

    begin(&world, 10, 0);
    burst(&world, 10);
    for (int i = 0; i < 11; i++) {
        cases_use(&world, A);
        fake_run(&world, 1);
    }
    cr_assert(eq(uint, fake_stats(&world).links, 1));
    fake_world_end(&world);
}

Test(cases, XG5_a_floor_absorbs_a_burst_and_acquire_closes_nothing)
{
    struct fake_world world;
    struct fake_user users[5] = {0};

    struct testing_peer *peer = begin(&world, 10, 5);
    pool_host(world.pool, A);
    fake_run(&world, 1);
    for (int round = 0; round < 10; round++) {
        fake_run(&world, 20);
        uint64_t closes = testing_calls(world.t, TESTING_CLOSE);
        for (int i = 0; i < 5; i++)
            cr_assert(eq(int, fake_ask(&world, &users[i], A), POOL_READY));
        cr_assert(eq(u64, testing_calls(world.t, TESTING_CLOSE), closes));
        for (int i = 0; i < 5; i++)
            fake_give_back(&users[i]);
    }
    cr_assert(eq(uint, testing_peer_accepted(peer), 5));
    fake_world_end(&world);
}

Test(cases, XG6_a_link_lives_hardly_longer_than_its_time)
{
    for (double timeout = 0.01; timeout < 20000; timeout *= 10) {
        struct fake_world world;
        begin(&world, timeout, 0);
        burst(&world, 3);
        fake_run(&world, timeout * 0.999);
        cr_assert(eq(uint, fake_stats(&world).links, 3));
        fake_run(&world, timeout * 0.002);
        cr_assert(eq(uint, fake_stats(&world).links, 0));
        fake_world_end(&world);
    }
}

Test(cases, XG8_what_is_culled_is_closed)
{
    struct fake_world world;
    struct testing_peer *peer = begin(&world, 10, 0);

    for (int i = 0; i < 20; i++) {
        burst(&world, 10);
        fake_run(&world, 11);
        cr_assert(eq(uint, testing_open_descriptors(world.t), 0));
        cr_assert(eq(uint, testing_peer_open(peer), 0));
    }
    cr_assert(eq(u64, testing_calls(world.t, TESTING_CLOSE), 200));
    fake_world_end(&world);
}

Test(cases, XG9_bursts_within_the_idle_time_connect_once)
{
    struct fake_world world;
    struct testing_peer *peer = begin(&world, 55, 0);

    for (int i = 0; i < 100; i++) {
        burst(&world, 20);
        fake_run(&world, 10);
    }
    cr_assert(eq(uint, testing_peer_attempts(peer), 20));
    fake_world_end(&world);
}

Test(cases, XG10_by_default_idle_links_are_swept)
{
    struct fake_world world;

    cases_open(&world);
    fake_echo(&world, A);
    burst(&world, 3);
    fake_run(&world, 56);
    cr_assert(eq(uint, fake_stats(&world).links, 0));
    fake_world_end(&world);
}

Test(cases, XG11_the_sweep_goes_on_after_whatever_came_between)
{
    struct fake_world world;
    struct testing_peer *peer = begin(&world, 10, 0);

    for (int i = 0; i < 12; i++) {
        burst(&world, 4);
        fake_run(&world, 5);
        switch (i % 4) {
        case 0:
            testing_peer_cut(peer, LINK_CLOSED_BY_PEER);
            break;
        case 1:
            pool_host_recycle(fake_host(&world, A), 0);
            break;
        case 2:
            world.host.idle_timeout = i % 8 == 2 ? 7 : 10;
            pool_host_set_options(fake_host(&world, A), &world.host);
            break;
        default:
            testing_fail_call(world.t, TESTING_CLOSE, 1, EIO, true);
            break;
        }
        fake_run(&world, 6);
        testing_fail_call(world.t, TESTING_CLOSE, 0, 0, false);
        cr_assert(eq(uint, fake_stats(&world).links, 0), "round %d", i);
    }
    fake_world_end(&world);
}

static double closed_at[100];
static unsigned n_closed;

static void on_closed(void *data, struct testing_conn *conn)
{
    (void)conn;
    if (n_closed < 100)
        closed_at[n_closed++] = testing_now(data);
}

Test(cases, XG12_links_born_together_die_spread_out)
{
    struct fake_world world;
    unsigned tenths[10] = {0};

    cases_begin(&world);
    world.host.idle_timeout = 0;
    world.host.max_links = 100;
    world.host.max_age = 1000;
    world.host.first_connecting = world.host.max_connecting = 100;
    fake_world_open(&world);
    struct testing_peer *peer = fake_echo(&world, A);
    testing_peer_on(
        peer, &(struct testing_server){.size = sizeof(struct testing_server), .closed = on_closed, .data = world.t});
    double born = testing_now(world.t);
    burst(&world, 100);
    fake_run(&world, 1001);
    cr_assert(eq(uint, n_closed, 100));
    for (int i = 0; i < 100; i++) {
        int tenth = (int)((closed_at[i] - born - 900) / 10);
        cr_assert(ge(int, tenth, 0));
        cr_assert(le(int, tenth, 10));
        tenths[tenth < 10 ? tenth : 9]++;
    }
    for (int i = 0; i < 10; i++) {
        cr_assert(ge(uint, tenths[i], 1), "tenth %d", i);
        cr_assert(le(uint, tenths[i], 30), "tenth %d", i);
    }
    fake_world_end(&world);
}

Test(cases, XG14_0_is_never_and_the_coldest_goes_first)
{
    struct fake_world world;
    struct fake_user users[3] = {0};
    uint64_t ids[3];

    begin(&world, 0, 0);
    burst(&world, 5);
    fake_run(&world, 1e6);
    cr_assert(eq(uint, fake_stats(&world).links, 5));
    fake_world_end(&world);
    begin(&world, 10, 0);
    cases_ask(&world, users, 3, A);
    fake_settle(&world);
    for (int i = 0; i < 3; i++) { /* back one after another, a second apart */
        ids[i] = cases_link_id(&users[i]);
        fake_give_back(&users[i]);
        fake_run(&world, 1);
    }
    fake_run(&world, 7.5);
    cr_assert(eq(uint, fake_stats(&world).links, 2)); /* those that came back later are not judged by the first */
    for (int i = 0; i < 2; i++) {
        fake_hold(&world, &users[i], A);
        cr_assert(eq(u64, cases_link_id(&users[i]), ids[2 - i]));
    }
    fake_world_end(&world);
}

Test(cases, XG15_idleness_counts_from_the_return)
{
    struct fake_world world;
    struct fake_user user = {0};

    begin(&world, 10, 0);
    fake_hold(&world, &user, A);
    fake_run(&world, 100);
    fake_exchange(&world, &user);
    fake_give_back(&user);
    fake_run(&world, 9.9);
    cr_assert(eq(uint, fake_stats(&world).links, 1));
    fake_run(&world, 0.2);
    cr_assert(eq(uint, fake_stats(&world).links, 0));
    fake_world_end(&world);
}

Test(cases, XG16_a_link_too_old_is_closed_at_its_return_and_never_before)
{
    struct fake_world world;
    struct fake_user user = {0};

    cases_begin(&world);
    world.host.max_age = 10;
    fake_world_open(&world);
    struct testing_peer *peer = fake_echo(&world, A);
    fake_hold(&world, &user, A);
    fake_run(&world, 100);
    fake_exchange(&world, &user);
    cr_assert(eq(uint, testing_peer_open(peer), 1));
    fake_give_back(&user);
    fake_settle(&world);
    cr_assert(eq(uint, testing_peer_open(peer), 0));
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_TOO_OLD], 1));
    fake_world_end(&world);
}

Test(cases, XG17_what_was_culled_is_not_replaced)
{
    struct fake_world world;
    struct testing_peer *peer = begin(&world, 10, 2);

    pool_host(world.pool, A);
    fake_run(&world, 1);
    burst(&world, 6);
    fake_run(&world, 1000);
    cr_assert(eq(uint, fake_stats(&world).links, 2));
    cr_assert(eq(uint, testing_peer_attempts(peer), 6));
    fake_world_end(&world);
}
