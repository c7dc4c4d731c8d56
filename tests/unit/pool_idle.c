/* pool_idle.c - links between leases: which is used next, how long they stay, which are kept up. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "tests/fakes/world.h"

static const char a[] = "10.0.0.1:80", b[] = "10.0.0.2:80";
static const char *const both[] = {a, b};

static struct testing_peer *open_world(struct fake_world *world)
{
    fake_world_open(world);
    return fake_echo(world, a);
}

/* Three links, given back a second apart: links[0] is the coldest. */
static void give_back_three(struct fake_world *world, const struct link *links[3])
{
    struct fake_user users[3] = {0};

    for (int i = 0; i < 3; i++) {
        fake_hold(world, &users[i], a);
        links[i] = channel_link(users[i].lease.channel);
    }
    for (int i = 0; i < 3; i++) {
        fake_give_back(&users[i]);
        fake_run(world, 1);
    }
}

/* ---- which is next ---- */

Test(pool_idle, the_link_used_last_is_used_next)
{
    const struct link *links[3];
    struct fake_user users[3] = {0};
    struct fake_world world;

    fake_world_begin(&world);
    open_world(&world);
    give_back_three(&world, links);
    for (int i = 0; i < 3; i++) {
        cr_assert(eq(int, fake_ask(&world, &users[i], a), POOL_READY));
        cr_assert(eq(ptr, (void *)channel_link(users[i].lease.channel), (void *)links[2 - i]));
    }
    fake_world_end(&world);
}

Test(pool_idle, spread_links_takes_the_longest_idle_one)
{
    const struct link *links[3];
    struct fake_user user = {0};
    struct fake_world world;

    fake_world_begin(&world);
    world.host.spread_links = true;
    open_world(&world);
    give_back_three(&world, links);
    for (int i = 0; i < 7; i++) {
        cr_assert(eq(int, fake_ask(&world, &user, a), POOL_READY));
        cr_assert(eq(ptr, (void *)channel_link(user.lease.channel), (void *)links[i % 3]));
        fake_give_back(&user);
        fake_settle(&world);
    }
    fake_world_end(&world);
}

/* ---- how long ---- */

Test(pool_idle, the_surplus_falls_quiet_and_closes)
{
    const struct link *links[3];
    struct fake_user user = {0};
    struct fake_world world;

    fake_world_begin(&world);
    struct testing_peer *peer = open_world(&world);
    give_back_three(&world, links); /* quiet since 3, 2 and 1 seconds */
    for (int i = 0; i < 51; i++) {
        cr_assert(eq(int, fake_ask(&world, &user, a), POOL_READY));
        fake_give_back(&user);
        fake_run(&world, 1);
    }
    fake_run(&world, 0.9);
    cr_assert(eq(uint, testing_peer_open(peer), 3));
    fake_run(&world, 0.2);
    cr_assert(eq(uint, testing_peer_open(peer), 2));
    fake_run(&world, 1);
    cr_assert(eq(uint, testing_peer_open(peer), 1));
    cr_assert(eq(int, fake_ask(&world, &user, a), POOL_READY));
    cr_assert(eq(ptr, (void *)channel_link(user.lease.channel), (void *)links[2]));
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_IDLE_TIMEOUT], 2));
    fake_world_end(&world);
}

Test(pool_idle, an_idle_timeout_of_0_is_for_ever)
{
    const struct link *links[3];
    struct fake_world world;

    fake_world_begin(&world);
    world.host.idle_timeout = 0;
    struct testing_peer *peer = open_world(&world);
    give_back_three(&world, links);
    fake_run(&world, 1e6);
    cr_assert(eq(uint, testing_peer_open(peer), 3));
    fake_world_end(&world);
}

Test(pool_idle, a_held_link_is_not_quiet)
{
    struct fake_user user = {0};
    struct fake_world world;

    fake_world_begin(&world);
    struct testing_peer *peer = open_world(&world);
    fake_hold(&world, &user, a);
    fake_run(&world, 1000);
    cr_assert(eq(uint, testing_peer_open(peer), 1));
    fake_give_back(&user);
    fake_run(&world, 54.9);
    cr_assert(eq(uint, testing_peer_open(peer), 1));
    fake_run(&world, 0.2);
    cr_assert(eq(uint, testing_peer_open(peer), 0));
    fake_world_end(&world);
}

Test(pool_idle, max_age_ends_links_up_to_a_tenth_earlier_each_at_its_own_time)
{
    enum {
        N = 40
    };
    struct fake_user users[N] = {0};
    struct fake_world world;
    unsigned early;

    fake_world_begin(&world);
    world.host.idle_timeout = 0;
    world.host.max_age = 1000;
    struct testing_peer *peer = open_world(&world);
    for (int i = 0; i < N; i++)
        fake_hold(&world, &users[i], a);
    for (int i = 0; i < N; i++)
        fake_give_back(&users[i]);
    fake_run(&world, 899.9);
    cr_assert(eq(uint, testing_peer_open(peer), N));
    fake_run(&world, 50.1);
    early = N - testing_peer_open(peer);
    cr_assert(lt(uint, N / 4, early)); /* half of them on average */
    cr_assert(lt(uint, early, N - N / 4));
    fake_run(&world, 50.1);
    cr_assert(eq(uint, testing_peer_open(peer), 0));
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_TOO_OLD], N));
    fake_world_end(&world);
}

Test(pool_idle, age_ends_no_link_under_a_lease)
{
    struct fake_user user = {0};
    struct fake_world world;

    fake_world_begin(&world);
    world.host.max_age = 10;
    struct testing_peer *peer = open_world(&world);
    fake_hold(&world, &user, a);
    fake_run(&world, 100);
    fake_exchange(&world, &user);
    cr_assert(eq(uint, testing_peer_open(peer), 1));
    fake_give_back(&user);
    fake_settle(&world);
    cr_assert(eq(uint, testing_peer_open(peer), 0));
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_TOO_OLD], 1));
    fake_world_end(&world);
}

Test(pool_idle, a_link_is_replaced_after_max_uses)
{
    for (unsigned bound = 1; bound <= 3; bound++) {
        struct fake_user user = {0};
        struct fake_world world;
        fake_world_begin(&world);
        world.host.max_uses = bound;
        struct testing_peer *peer = open_world(&world);
        for (unsigned i = 0; i < 6; i++) {
            fake_hold(&world, &user, a);
            cr_assert(eq(uint, testing_peer_accepted(peer), i / bound + 1));
            fake_give_back(&user);
        }
        cr_assert(eq(u64, fake_stats(&world).ends[LINK_USED_UP], 6 / bound));
        fake_world_end(&world);
    }
}

/* ---- kept up ---- */

static struct testing_peer *begin_kept_up(struct fake_world *world, unsigned min_links)
{
    fake_world_begin(world);
    world->host.min_links = min_links;
    return open_world(world);
}

Test(pool_idle, min_links_come_up_without_use_and_stay)
{
    for (unsigned bound = 1; bound <= 3; bound++) {
        struct fake_world world;
        struct testing_peer *peer = begin_kept_up(&world, bound);
        struct pool_host *host = pool_host(world.pool, a);
        fake_run(&world, 0.25); /* the first after a draw */
        cr_assert(eq(uint, testing_peer_open(peer), bound));
        fake_run(&world, 10000); /* exempt from idle_timeout */
        cr_assert(eq(uint, testing_peer_open(peer), bound));
        cr_assert(eq(uint, testing_peer_accepted(peer), bound));
        pool_host_drop(host); /* no longer pinned: they fall quiet */
        fake_run(&world, 120);
        cr_assert(eq(uint, testing_peer_open(peer), 0));
        fake_world_end(&world);
    }
}

Test(pool_idle, min_links_are_kept_up_for_as_long_as_the_host_is_in_a_target)
{
    struct fake_world world;

    struct testing_peer *peer = begin_kept_up(&world, 2);
    struct pool_target *target = fake_target(&world, "db", &pool_pick_first, both, 1);
    fake_run(&world, 0.25);                          /* the first after a draw */
    cr_assert(eq(uint, testing_peer_open(peer), 2)); /* without use */
    fake_run(&world, 1000);
    cr_assert(eq(uint, testing_peer_open(peer), 2));
    cr_assert(eq(uint, testing_peer_accepted(peer), 2));
    pool_target_remove(target);
    fake_settle(&world);
    cr_assert(eq(uint, testing_peer_open(peer), 0));
    fake_run(&world, 100);
    cr_assert(eq(uint, testing_peer_accepted(peer), 2));
    fake_world_end(&world);
}

Test(pool_idle, what_is_above_min_links_falls_quiet)
{
    const struct link *links[3];
    struct fake_world world;

    struct testing_peer *peer = begin_kept_up(&world, 1);
    pool_host(world.pool, a);
    give_back_three(&world, links);
    cr_assert(eq(uint, testing_peer_open(peer), 3));
    fake_run(&world, 60);
    cr_assert(eq(uint, testing_peer_open(peer), 1));
    fake_world_end(&world);
}

Test(pool_idle, min_links_are_replaced_when_they_are_too_old)
{
    struct fake_world world;

    fake_world_begin(&world);
    world.host.min_links = 2;
    world.host.max_age = 100;
    struct testing_peer *peer = open_world(&world);
    pool_host(world.pool, a);
    fake_run(&world, 500);
    cr_assert(eq(uint, testing_peer_open(peer), 2));
    cr_assert(ge(uint, testing_peer_accepted(peer), 8));
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_TOO_OLD], testing_peer_accepted(peer) - 2));
    fake_world_end(&world);
}

Test(pool_idle, min_links_come_back_spread_after_an_end_that_was_not_ours)
{
    static const enum link_reason ends[] = {LINK_RESET, LINK_CLOSED_BY_PEER};

    for (int i = 0; i < 2; i++) {
        struct fake_world world;
        struct testing_peer *peer = begin_kept_up(&world, 2);
        pool_host(world.pool, a);
        fake_run(&world, 11);
        double lost = testing_now(world.t);
        testing_peer_cut(peer, ends[i]);
        fake_run(&world, 0.26);
        cr_assert(eq(uint, testing_peer_open(peer), 2));
        cr_assert(lt(dbl, lost + 0.001, testing_peer_attempt_at(peer, 2)));
        fake_world_end(&world);
    }
}

Test(pool_idle, where_a_link_died_young_the_first_lasts_a_backoff_before_the_others_are_kept_up)
{
    struct fake_world world;

    struct testing_peer *peer = begin_kept_up(&world, 4);
    struct pool_host *host = pool_host(world.pool, a);
    fake_run(&world, 1);
    cr_assert(eq(uint, testing_peer_attempts(peer), 4));
    for (unsigned death = 1; death <= 8; death++) {
        testing_peer_cut(peer, LINK_RESET); /* a second old at most: again and again */
        fake_run(&world, 0.001);
        cr_assert(eq(uint, fake_host_stats(host).failures, death));
        double wait = fake_host_stats(host).retry_in;
        unsigned before = testing_peer_attempts(peer);
        fake_run(&world, wait + 0.9 * wait); /* the probe came up, and has lasted for most of it */
        cr_assert(eq(uint, testing_peer_attempts(peer), before + 1));
        cr_assert(eq(uint, testing_peer_open(peer), 1));
    }
    fake_run(&world, 2.1); /* it lasts */
    cr_assert(eq(uint, testing_peer_open(peer), 4));
    fake_world_end(&world);
}

Test(pool_idle, where_a_link_died_young_those_who_wait_are_served_at_once)
{
    struct fake_user users[3] = {0};
    struct fake_world world;

    struct testing_peer *peer = begin_kept_up(&world, 4);
    pool_host(world.pool, a);
    fake_run(&world, 1);
    testing_peer_cut(peer, LINK_RESET);
    fake_run(&world, 0.001);
    for (int i = 0; i < 3; i++) {
        users[i].lease = (struct pool_lease){.flags = POOL_WAIT_FOR_READY};
        fake_ask(&world, &users[i], a);
    }
    fake_run(&world, 0.21); /* the first backoff */
    cr_assert(eq(uint, world.told, 3));
    fake_world_end(&world);
}

Test(pool_idle, min_links_are_probed_for_without_anybody_asking)
{
    struct fake_world world;

    struct testing_peer *peer = begin_kept_up(&world, 1);
    testing_peer_behave(peer, TESTING_REFUSE);
    pool_host(world.pool, a);
    fake_run(&world, 60);
    cr_assert(ge(uint, testing_peer_attempts(peer), 30)); /* at most 2 s apart */
    testing_peer_behave(peer, TESTING_ACCEPT);
    fake_run(&world, 2.1);
    cr_assert(eq(uint, testing_peer_open(peer), 1));
    fake_world_end(&world);
}

Test(pool_idle, round_robin_keeps_one_link_a_host_up_while_its_target_is_used)
{
    struct testing_peer *peers[2];
    struct fake_user user = {0};
    struct fake_world world;

    fake_world_begin(&world);
    peers[0] = open_world(&world);
    peers[1] = fake_echo(&world, b);
    fake_target(&world, "db", &pool_round_robin, both, 2);
    fake_hold(&world, &user, "db");
    fake_give_back(&user);
    fake_run(&world, 20);
    testing_peer_cut(peers[0], LINK_CLOSED_BY_PEER);
    testing_peer_cut(peers[1], LINK_CLOSED_BY_PEER);
    fake_run(&world, 0.3);
    for (int i = 0; i < 2; i++)
        cr_assert(eq(uint, testing_peer_open(peers[i]), 1)); /* they came back */
    fake_run(&world, 36);                                    /* the last use is more than idle_timeout ago */
    for (int i = 0; i < 2; i++)
        testing_peer_cut(peers[i], LINK_CLOSED_BY_PEER);
    fake_run(&world, 100);
    for (int i = 0; i < 2; i++) {
        cr_assert(eq(uint, testing_peer_accepted(peers[i]), 2));
        cr_assert(eq(uint, testing_peer_open(peers[i]), 0));
    }
    fake_world_end(&world);
}

Test(pool_idle, pick_first_keeps_nothing_up)
{
    struct fake_user user = {0};
    struct fake_world world;

    fake_world_begin(&world);
    struct testing_peer *peer = open_world(&world);
    fake_target(&world, "db", &pool_pick_first, both, 1);
    fake_hold(&world, &user, "db");
    fake_give_back(&user);
    fake_run(&world, 11);
    testing_peer_cut(peer, LINK_CLOSED_BY_PEER);
    fake_run(&world, 10);
    cr_assert(eq(uint, testing_peer_accepted(peer), 1));
    fake_world_end(&world);
}
