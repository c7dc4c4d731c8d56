/* cases_xl.c - the cases XL and XM: memory of idle links and empty hosts; balance. */
#include "tests/conformance/cases.h"

Test(cases, XL2_an_idle_link_keeps_no_more_than_a_new_one)
{
    static char bytes[65536];
    struct fake_world world;
    struct fake_user user = {0};
    struct iovec part = {bytes, sizeof bytes};

    cases_peer(&world, 1);
    cases_use(&world, A);
    size_t before = testing_bytes(world.t);
    for (int i = 0; i < 20; i++) {
        fake_hold(&world, &user, A);
        cr_assert(eq(long, channel_writev(user.lease.channel, &part, 1), sizeof bytes));
        for (size_t n = 0; n < sizeof bytes;) {
            fake_settle(&world);
            ssize_t got = channel_read(user.lease.channel, bytes, sizeof bytes - n);
            cr_assert(lt(long, 0, got));
            n += (size_t)got;
        }
        fake_give_back(&user);
    }
    cr_assert(eq(uint, fake_stats(&world).idle, 1));
    cr_assert(eq(sz, testing_bytes(world.t), before));
    fake_world_end(&world);
}

Test(cases, XL3_a_host_nobody_needs_is_forgotten)
{
    struct fake_world world;
    char address[40];
    size_t most = 0;

    cases_peer(&world, 1);
    for (int i = 0; i < 3000; i++) {
        snprintf(address, sizeof address, "10.1.%d.%d:80", i / 250, i % 250 + 1);
        struct testing_peer *peer = fake_echo(&world, address);
        cases_use(&world, address);
        testing_peer_free(peer);
        fake_run(&world, 10);
        if (i == 1000)
            most = testing_bytes(world.t);
    }
    cr_assert(le(uint, fake_stats(&world).hosts, 300 / 10 + 10));
    cr_assert(le(sz, testing_bytes(world.t), most + most / 4));
    fake_run(&world, 400);
    cr_assert(eq(uint, fake_stats(&world).hosts, 0));
    fake_world_end(&world);
}

Test(cases, XL4_an_idle_link_costs_256_bytes_and_its_place)
{
    static struct fake_user users[2048];
    struct fake_world world;
    size_t at[2];

    for (unsigned i = 0; i < 2; i++) {
        unsigned n = i ? 2048 : 1024;
        cases_begin(&world);
        world.host.max_links = world.options.max_links = world.options.max_line = 4096;
        fake_world_open(&world);
        fake_echo(&world, A);
        memset(users, 0, sizeof users);
        cases_ask(&world, users, n, A);
        fake_run(&world, 1);
        for (unsigned k = 0; k < n; k++)
            fake_give_back(&users[k]);
        cr_assert(eq(uint, fake_stats(&world).idle, n));
        at[i] = testing_bytes(world.t);
        fake_world_end(&world);
    }
    cr_assert(le(sz, (at[1] - at[0]) / 1024, 256 + 16));
}

/* ---- balance ---- */

Test(cases, XM1_links_are_used_in_turn_where_that_is_wanted)
{
    for (int spread = 0; spread < 2; spread++) {
        struct fake_world world;
        struct fake_user users[4] = {0};
        unsigned used[16] = {0}, most = 0;
        cases_begin(&world);
        world.host.spread_links = spread;
        fake_world_open(&world);
        fake_echo(&world, A);
        cases_ask(&world, users, 4, A);
        fake_settle(&world);
        for (int i = 0; i < 4; i++)
            fake_give_back(&users[i]);
        for (int i = 0; i < 400; i++) {
            fake_hold(&world, &users[0], A);
            unsigned n = ++used[cases_link_id(&users[0]) % 16];
            most = n > most ? n : most;
            fake_give_back(&users[0]);
        }
        cr_assert(eq(uint, most, spread ? 100 : 400));
        fake_world_end(&world);
    }
}

Test(cases, XM3_round_robin_begins_anywhere)
{
    unsigned first[4] = {0};

    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct fake_world world;
        fake_world_begin_with(&world, seed);
        fake_world_open(&world);
        struct testing_peer *peers[4];
        for (int i = 0; i < 4; i++)
            peers[i] = fake_echo(&world, cases_abc[i]);
        pool_target_start(cases_target(&world, &pool_round_robin, 4));
        fake_run(&world, 0.1);
        cases_use(&world, "db");
        for (int i = 0; i < 4; i++)
            first[i] += testing_peer_bytes(peers[i]) == 1;
        fake_world_end(&world);
    }
    for (int i = 0; i < 4; i++) {
        cr_assert(ge(uint, first[i], 25), "host %d: %u of 200", i, first[i]);
        cr_assert(le(uint, first[i], 75), "host %d: %u of 200", i, first[i]);
    }
}

Test(cases, XM4_a_host_that_goes_down_as_it_is_chosen_costs_no_lease)
{
    struct fake_world world;
    struct testing_peer *peers[4];
    struct fake_user users[4] = {0};

    cases_peer(&world, 4);
    for (int i = 1; i < 4; i++)
        peers[i] = fake_echo(&world, cases_abc[i]);
    struct pool_target *target = cases_target(&world, &pool_round_robin, 4);
    CASES_LIST(target, B, C, D);
    pool_target_start(target);
    for (int i = 0; i < 3; i++)
        testing_peer_delay(peers[1 + i], 0.1, 0);
    cases_ask(&world, users, 4, "db"); /* each of them has been chosen for somebody */
    fake_run(&world, 0.05);
    testing_peer_behave(peers[1], TESTING_REFUSE);
    pool_host_drain(fake_host(&world, C), 0);
    fake_run(&world, 1);
    for (int i = 0; i < 4; i++) {
        cr_assert(eq(int, users[i].status, POOL_READY), "user %d", i);
        cr_assert(eq(str, (char *)pool_host_address(users[i].lease.host), D));
    }
    fake_world_end(&world);
}

/* pick_first goes by the list's order; who wants another gives a picker, which has a draw of its own to begin with. */
static int pick_shuffled(const struct pool_pick *pick, const struct pool_lease *lease, uint64_t draw)
{
    size_t *first = pick->state;

    (void)lease;
    if (draw)
        *first = draw % pick->n;
    for (size_t i = 0; i < pick->n; i++)
        if (pick->can(pick->hosts[(*first + i) % pick->n]) != POOL_HOST_DOWN)
            return (int)((*first + i) % pick->n);
    return POOL_PICK_DOWN;
}

Test(cases, XM5_the_order_of_the_list_need_not_be_the_order_of_load)
{
    static const struct pool_picker shuffled = {
        .size = sizeof shuffled, .name = "shuffled", .state_size = sizeof(size_t), .pick = pick_shuffled};
    unsigned first[4] = {0};

    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct fake_world world;
        struct testing_peer *peers[4];
        fake_world_begin_with(&world, seed);
        fake_world_open(&world);
        for (int i = 0; i < 4; i++)
            peers[i] = fake_echo(&world, cases_abc[i]);
        cases_target(&world, &shuffled, 4);
        cases_use(&world, "db");
        for (int i = 0; i < 4; i++)
            first[i] += testing_peer_bytes(peers[i]) == 1;
        fake_world_end(&world);
    }
    for (int i = 0; i < 4; i++) {
        cr_assert(ge(uint, first[i], 25), "host %d: %u of 200", i, first[i]);
        cr_assert(le(uint, first[i], 75), "host %d: %u of 200", i, first[i]);
    }
}
