/* pool_bounds.c - the bounds of a pool: each exactly reached, and never passed. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "tests/fakes/world.h"

static const char a[] = "10.0.0.1:80", b[] = "10.0.0.2:80", c[] = "10.0.0.3:80";
static const char *const both[] = {a, b};

Test(pool_bounds, a_line_holds_so_many_leases)
{
    for (unsigned bound = 1; bound <= 3; bound++) {
        struct fake_user holder = {0}, users[3] = {0}, over = {0};
        struct fake_world world;
        fake_world_begin(&world);
        world.host.max_links = 1;
        world.options.max_line = bound;
        fake_world_open(&world);
        fake_echo(&world, a);
        fake_hold(&world, &holder, a);
        for (unsigned i = 0; i < bound; i++)
            cr_assert(eq(int, fake_ask(&world, &users[i], a), POOL_PENDING));
        cr_assert(eq(int, fake_ask(&world, &over, a), LINKPOOL_EFULL));
        cr_assert(eq(int, over.lease.bound, POOL_BOUND_LINE));
        cr_assert(eq(int, pool_cancel(&users[0].lease), 0));
        cr_assert(eq(int, fake_ask(&world, &over, a), POOL_PENDING));
        cr_assert(eq(uint, fake_stats(&world).waiting, bound));
        cr_assert(eq(u64, fake_stats(&world).full, 1));
        fake_world_end(&world);
    }
}

Test(pool_bounds, a_targets_line_has_a_bound_and_a_time_of_its_own)
{
    struct fake_user users[3] = {0};
    struct pool_target_options options;
    struct fake_world world;

    fake_world_begin(&world);
    fake_world_open(&world);
    pool_target_options_init(&options);
    options.max_line = 2;
    options.wait_timeout = 0.25;
    struct pool_target *target = pool_target_add(world.pool, "later", &options); /* no list yet: all wait */
    double asked = testing_now(world.t);
    cr_assert(eq(int, fake_ask_target(&world, &users[0], target), POOL_PENDING));
    cr_assert(eq(int, fake_ask_target(&world, &users[1], target), POOL_PENDING));
    cr_assert(eq(int, fake_ask_target(&world, &users[2], target), LINKPOOL_EFULL));
    cr_assert(eq(int, users[2].lease.bound, POOL_BOUND_LINE));
    fake_run(&world, 1);
    cr_assert(epsilon_eq(dbl, users[1].told_at - asked, 0.25, 1e-9));
    cr_assert(eq(int, users[1].status, LINKPOOL_ETIMEDOUT));
    fake_world_end(&world);
}

Test(pool_bounds, a_pool_holds_so_many_waiting_leases)
{
    for (unsigned bound = 1; bound <= 3; bound++) {
        struct fake_user users[4] = {0};
        struct fake_world world;
        fake_world_begin(&world);
        world.options.max_waiting = bound;
        fake_world_open(&world);
        fake_echo(&world, a);
        fake_echo(&world, b);
        for (unsigned i = 0; i < bound; i++)
            cr_assert(eq(int, fake_ask(&world, &users[i], both[i % 2]), POOL_PENDING));
        cr_assert(eq(int, fake_ask(&world, &users[bound], both[bound % 2]), LINKPOOL_EFULL));
        cr_assert(eq(int, users[bound].lease.bound, POOL_BOUND_POOL_WAITING));
        fake_settle(&world); /* those who waited have theirs */
        cr_assert(eq(int, fake_ask(&world, &users[bound], both[bound % 2]), POOL_PENDING));
        fake_world_end(&world);
    }
}

Test(pool_bounds, a_pool_knows_so_many_hosts)
{
    static const char *const addresses[] = {a, b, c, "10.0.0.4:80"};

    for (unsigned bound = 1; bound <= 3; bound++) {
        struct fake_user users[4] = {0};
        struct fake_world world;
        fake_world_begin(&world);
        world.options.max_hosts = bound;
        fake_world_open(&world);
        for (unsigned i = 0; i < bound; i++)
            cr_assert(eq(int, fake_ask(&world, &users[i], addresses[i]), POOL_PENDING));
        cr_assert(eq(int, fake_ask(&world, &users[bound], addresses[bound]), LINKPOOL_EFULL));
        cr_assert(eq(int, users[bound].lease.bound, POOL_BOUND_HOSTS));
        cr_assert(eq(uint, fake_stats(&world).hosts, bound));
        fake_world_end(&world);
    }
}

/* Runs turn by turn until nothing more happens, and asserts that no more sockets than so many existed. */
static void run_below(struct fake_world *world, unsigned bound)
{
    double end = testing_now(world->t) + 1;

    while (testing_now(world->t) < end && testing_turn(world->t))
        cr_assert(le(uint, testing_open_descriptors(world->t), bound));
}

Test(pool_bounds, a_host_has_so_many_sockets)
{
    for (unsigned bound = 1; bound <= 3; bound++) {
        struct fake_user users[6] = {0};
        struct fake_world world;
        fake_world_begin(&world);
        world.host.max_links = bound;
        fake_world_open(&world);
        testing_peer_delay(fake_echo(&world, a), 0.01, 0);
        for (int i = 0; i < 6; i++)
            fake_ask(&world, &users[i], a);
        run_below(&world, bound);
        cr_assert(eq(uint, testing_open_descriptors(world.t), bound));
        cr_assert(eq(uint, world.told, bound));
        fake_world_end(&world);
    }
}

Test(pool_bounds, a_pool_has_so_many_sockets_of_all_hosts)
{
    static const char *const addresses[] = {a, b, c};

    for (unsigned bound = 1; bound <= 3; bound++) {
        struct fake_user users[6] = {0};
        struct fake_world world;
        fake_world_begin(&world);
        world.options.max_links = bound;
        fake_world_open(&world);
        for (int i = 0; i < 3; i++)
            testing_peer_delay(fake_echo(&world, addresses[i]), 0.01, 0);
        for (int i = 0; i < 6; i++)
            fake_ask(&world, &users[i], addresses[i % 3]);
        run_below(&world, bound);
        cr_assert(eq(uint, testing_open_descriptors(world.t), bound));
        cr_assert(eq(uint, world.told, bound));
        fake_world_end(&world);
    }
}

Test(pool_bounds, bounds_are_each_pools_own)
{
    struct fake_user users[2][2] = {0};
    struct fake_world world, other;

    fake_world_begin(&world);
    world.options.max_links = 1;
    world.options.max_waiting = 2;
    fake_world_open(&world);
    fake_echo(&world, a);
    other = world; /* a second pool in the same world */
    fake_world_open(&other);
    for (int i = 0; i < 2; i++) {
        cr_assert(eq(int, fake_ask(&world, &users[0][i], a), POOL_PENDING));
        cr_assert(eq(int, fake_ask(&other, &users[1][i], a), POOL_PENDING));
    }
    fake_settle(&world);
    cr_assert(eq(uint, testing_open_descriptors(world.t), 2));
    cr_assert(eq(uint, fake_stats(&world).links, 1));
    cr_assert(eq(uint, fake_stats(&other).links, 1));
    pool_free(other.pool);
    cr_assert(eq(uint, users[1][0].closed, 1));
    cr_assert(eq(uint, users[0][0].closed, 0));
    fake_exchange(&world, &users[0][0]);
    fake_world_end(&world);
}
