/* pool_shared.c - links that carry several leases at once, in a pool: their room, their leaving, their end. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>

#include "tests/fakes/shared.h"
#include "tests/fakes/world.h"

static const char a[] = "10.0.0.1:80";

/* ---- a protocol that keeps its latest attempt, and has so much room ---- */

static struct link_attempt attempt;
static unsigned room;

static int keep(struct protocol_link *pl)
{
    attempt = protocol_attempt(pl);
    if (room && protocol_set_room(pl, room))
        return LINKPOOL_ELOST;
    return protocol_ready(pl);
}

static struct protocol protocol;

static struct testing_peer *begin(struct fake_world *world, unsigned max_channels, unsigned its_room)
{
    protocol = fake_shared;
    protocol.start = keep;
    protocol.max_channels = max_channels;
    room = its_room;
    fake_world_begin(world);
    world->host.protocol = &protocol;
    world->host.drain_timeout = 7;
    fake_world_open(world);
    return fake_echo(world, a);
}

static void announce(bool (*processed)(const struct protocol_channel *pc))
{
    struct protocol_link *pl = protocol_attempt_link(attempt);

    cr_assert(ne(ptr, pl, NULL));
    cr_assert(eq(int, protocol_going(pl, processed, LINK_NO_REASON, NULL), 0));
}

/* ---- its room ---- */

Test(pool_shared, an_attempt_is_taken_to_serve_the_hosts_last_known_room)
{
    static const unsigned expected[] = {0, 1, 1, 1, 1, 1, 2};

    for (unsigned n = 1; n <= 6; n++) {
        struct fake_user users[6] = {0}, first = {0};
        struct fake_world world;
        struct testing_peer *peer = begin(&world, 1, 5);
        fake_hold(&world, &first, a); /* thought to have room for 1, and has for 5 */
        fake_give_back(&first);
        cr_assert(eq(int, pool_host_recycle(fake_host(&world, a), 0), 0));
        testing_peer_delay(peer, 0.1, 0);
        for (unsigned i = 0; i < n; i++)
            cr_assert(eq(int, fake_ask(&world, &users[i], a), POOL_PENDING));
        fake_run(&world, 0.05);
        cr_assert(eq(uint, testing_peer_attempts(peer) - 1, expected[n]));
        fake_run(&world, 0.1);
        cr_assert(eq(uint, world.told, 1 + n));
        fake_world_end(&world);
    }
}

/* A link up, whose peer then takes nobody any more. */
static struct pool_host *roomless_host(struct fake_world *world)
{
    struct fake_user user = {0};
    struct protocol_link *pl;

    fake_hold(world, &user, a);
    fake_give_back(&user);
    pl = protocol_attempt_link(attempt);
    cr_assert(ne(ptr, pl, NULL));
    cr_assert(eq(int, protocol_set_room(pl, 0), 0));
    return fake_host(world, a);
}

Test(pool_shared, a_link_without_room_that_nobody_holds_is_idle)
{
    struct fake_user waiter = {.lease = {.flags = POOL_WAIT_FOR_READY, .timeout = INFINITY}};
    struct fake_world world;

    begin(&world, 3, 0);
    struct pool_host *host = roomless_host(&world);
    double since = testing_now(world.t), idle_timeout = world.host.idle_timeout;
    cr_assert(eq(uint, fake_host_stats(host).idle, 1));
    fake_run(&world, since + idle_timeout - 0.01 - testing_now(world.t));
    cr_assert(eq(uint, fake_host_stats(host).links[LINK_READY], 1));
    fake_run(&world, 0.02);
    cr_assert(eq(uint, fake_host_stats(host).links[LINK_READY], 0));
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_IDLE_TIMEOUT], 1));
    cr_assert(eq(int, fake_ask(&world, &waiter, a), POOL_PENDING)); /* and then another is opened */
    fake_run(&world, 0.01);
    cr_assert(ne(ptr, waiter.lease.channel, NULL));
    fake_give_back(&waiter);
    fake_world_end(&world);
}

Test(pool_shared, a_link_that_has_room_again_is_as_old_as_it_was)
{
    struct fake_user other = {0};
    struct fake_world world;

    begin(&world, 1, 0);
    struct pool_host *host = roomless_host(&world);
    struct link_attempt first = attempt;
    fake_run(&world, 10);
    fake_hold(&world, &other, a);
    fake_give_back(&other);
    fake_run(&world, 10);
    cr_assert(eq(int, protocol_set_room(protocol_attempt_link(first), 1), 0));
    fake_run(&world, world.host.idle_timeout - 15);
    cr_assert(eq(uint, fake_host_stats(host).idle, 1)); /* of two, the one used since */
    cr_assert(eq(ptr, protocol_attempt_link(first), NULL));
    fake_world_end(&world);
}

Test(pool_shared, a_link_without_room_that_nobody_holds_makes_room)
{
    struct fake_user other = {.lease = {.timeout = INFINITY}};
    struct pool_options options;
    struct fake_world world;

    begin(&world, 3, 0);
    fake_echo(&world, "10.0.0.2:80");
    options = world.options;
    options.max_links = 1;
    cr_assert(eq(int, pool_set_options(world.pool, &options), 0));
    roomless_host(&world);
    cr_assert(eq(int, fake_ask(&world, &other, "10.0.0.2:80"), POOL_PENDING));
    fake_run(&world, 0.01);
    cr_assert(ne(ptr, other.lease.channel, NULL));
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_MADE_ROOM], 1));
    fake_give_back(&other);
    fake_world_end(&world);
}

Test(pool_shared, a_link_without_room_that_nobody_holds_goes_as_its_host_drains)
{
    struct fake_world world;

    begin(&world, 3, 0);
    struct pool_host *host = roomless_host(&world);
    cr_assert(eq(int, pool_host_drain(host, INFINITY), 0));
    cr_assert(eq(uint, fake_host_stats(host).links[LINK_READY], 0));
    fake_world_end(&world);
}

Test(pool_shared, one_without_room_in_a_full_host_gives_way_to_who_waits)
{
    struct fake_user waiter = {.lease = {.timeout = INFINITY}};
    struct fake_world world;

    begin(&world, 3, 0);
    world.host.max_links = 1;
    struct pool_host *host = roomless_host(&world);
    cr_assert(eq(int, pool_host_set_options(host, &world.host), 0));
    cr_assert(eq(int, fake_ask(&world, &waiter, a), POOL_PENDING));
    fake_run(&world, 0.01);
    cr_assert(ne(ptr, waiter.lease.channel, NULL));
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_MADE_ROOM], 1));
    fake_give_back(&waiter);
    fake_world_end(&world);
}

static int begin_without_room(struct protocol_link *pl)
{
    attempt = protocol_attempt(pl);
    return protocol_set_room(pl, 0) ? LINKPOOL_ELOST : protocol_ready(pl);
}

/* One that never took anybody stays: the next would be like it. */
Test(pool_shared, a_link_that_has_room_at_last_serves_those_who_wait)
{
    struct fake_user waiter = {.lease = {.timeout = INFINITY}};
    struct fake_world world;

    struct testing_peer *peer = begin(&world, 3, 0);
    protocol.start = begin_without_room;
    world.host.max_links = 1;
    cr_assert(eq(int, pool_host_set_options(pool_host(world.pool, a), &world.host), 0));
    cr_assert(eq(int, fake_ask(&world, &waiter, a), POOL_PENDING));
    fake_run(&world, 10);
    cr_assert(eq(ptr, waiter.lease.channel, NULL));
    cr_assert(eq(uint, testing_peer_attempts(peer), 1));
    cr_assert(eq(int, protocol_set_room(protocol_attempt_link(attempt), 1), 0));
    fake_run(&world, 0.01);
    cr_assert(ne(ptr, waiter.lease.channel, NULL));
    fake_give_back(&waiter);
    fake_world_end(&world);
}

/* ---- its leaving ---- */

Test(pool_shared, a_leaving_link_takes_no_new_lease_and_lets_those_out_finish)
{
    struct fake_user holder = {0}, next = {0};
    struct fake_world world;

    struct testing_peer *peer = begin(&world, 3, 0);
    fake_hold(&world, &holder, a);
    announce(NULL);
    cr_assert(eq(uint, fake_host_stats(holder.lease.host).links[LINK_DRAINING], 1));
    cr_assert(eq(int, fake_ask(&world, &next, a), POOL_PENDING)); /* though it has room */
    fake_settle(&world);
    cr_assert(eq(int, next.status, POOL_READY));
    cr_assert(ne(ptr, (void *)channel_link(next.lease.channel), (void *)channel_link(holder.lease.channel)));
    fake_run(&world, 5);
    cr_assert(eq(int, channel_send(holder.lease.channel, "q", 1), 0));
    fake_settle(&world);
    cr_assert(eq(u64, holder.lease.bytes_received, 1));
    cr_assert(eq(uint, testing_peer_open(peer), 2));
    fake_give_back(&holder);
    fake_settle(&world);
    cr_assert(eq(uint, testing_peer_open(peer), 1));
    cr_assert(eq(uint, holder.closed, 0));
    fake_world_end(&world);
}

Test(pool_shared, leases_on_a_leaving_link_last_for_drain_timeout)
{
    struct fake_user holder = {0};
    struct fake_world world;

    begin(&world, 3, 0);
    fake_hold(&world, &holder, a);
    double announced = testing_now(world.t);
    announce(NULL);
    fake_run(&world, 6.999);
    cr_assert(eq(uint, holder.closed, 0));
    fake_run(&world, 0.002);
    cr_assert(eq(uint, holder.closed, 1));
    cr_assert(epsilon_eq(dbl, holder.told_at - announced, 7, 1e-6));
    cr_assert(eq(uint, fake_stats(&world).links, 0));
    fake_world_end(&world);
}

static bool none_was(const struct protocol_channel *pc)
{
    (void)pc;
    return false;
}

Test(pool_shared, a_lease_that_the_leaving_peer_denies_ends_as_safe_to_repeat)
{
    struct fake_user holder = {0};
    struct fake_world world;

    begin(&world, 3, 0);
    fake_hold(&world, &holder, a);
    cr_assert(eq(int, channel_send(holder.lease.channel, "q", 1), 0));
    announce(none_was);
    fake_settle(&world);
    cr_assert(eq(uint, holder.closed, 1));
    cr_assert(eq(u64, holder.lease.bytes_sent, 1));
    cr_assert(eq(int, holder.lease.fate, POOL_NOT_SENT));
    fake_world_end(&world);
}

/* ---- its end ---- */

static struct fake_user *other;
static int answer;

static void release_the_other(struct pool_lease *lease)
{
    ((struct fake_user *)lease->data)->closed++;
    answer = pool_release(&other->lease, POOL_REUSE);
}

Test(pool_shared, a_lease_released_before_it_was_told_of_its_end_hears_no_more)
{
    struct fake_user first = {0}, second = {0};
    struct fake_world world;

    struct testing_peer *peer = begin(&world, 3, 0);
    fake_hold(&world, &first, a);
    fake_hold(&world, &second, a);
    first.lease.closed = release_the_other;
    other = &second;
    answer = -99;
    testing_peer_cut(peer, LINK_RESET);
    fake_run(&world, 1);
    cr_assert(eq(uint, first.closed, 1));
    cr_assert(eq(int, answer, 0));
    cr_assert(eq(uint, second.closed, 0));
    cr_assert(eq(ptr, second.lease.channel, NULL));
    cr_assert(eq(int, pool_release(&second.lease, POOL_REUSE), LINKPOOL_ESTATE));
    cr_assert(eq(uint, fake_stats(&world).leased, 0));
    fake_world_end(&world);
}

/* ---- the short way of a lease, and of a return ---- */

Test(pool_shared, who_wants_an_unused_link_is_given_no_channel_of_one_in_use)
{
    struct fake_user user = {0}, fresh = {.lease.flags = POOL_FRESH};
    struct fake_world world;

    struct testing_peer *peer = begin(&world, 3, 0);
    fake_hold(&world, &user, a);
    cr_assert(eq(int, fake_ask(&world, &fresh, a), POOL_PENDING));
    fake_run(&world, 1);
    cr_assert(eq(int, fresh.status, POOL_READY));
    cr_assert(not(fresh.lease.reused));
    cr_assert(eq(uint, testing_peer_accepted(peer), 2));
    fake_give_back(&fresh);
    fake_give_back(&user);
    fake_world_end(&world);
}

static unsigned drained;
static void on_drained(struct pool *pool, void *data)
{
    (void)pool, (void)data;
    drained++;
}

Test(pool_shared, a_channel_given_back_in_the_turn_of_a_drain_leaves_the_link_to_the_others)
{
    struct fake_user users[2] = {0};
    struct fake_world world;

    begin(&world, 3, 0);
    fake_hold(&world, &users[0], a);
    fake_hold(&world, &users[1], a);
    drained = 0;
    cr_assert(eq(int, pool_drain(world.pool, 60, on_drained, NULL), 0));
    fake_give_back(&users[0]);
    fake_run(&world, 10);
    cr_assert(eq(uint, users[1].closed + drained, 0));
    fake_give_back(&users[1]);
    fake_settle(&world);
    cr_assert(eq(uint, drained, 1));
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_DRAINED], 1));
    fake_world_end(&world);
}

/* The drain left the link as it was, since somebody waited, who then gave up. */
Test(pool_shared, so_does_one_in_the_turn_of_a_drain_for_which_nobody_waits_any_more)
{
    for (int of_pool = 0; of_pool < 2; of_pool++) {
        struct fake_user users[2] = {0}, fresh = {.lease.flags = POOL_FRESH};
        struct fake_world world;
        struct testing_peer *peer = begin(&world, 3, 0);
        fake_hold(&world, &users[0], a);
        fake_hold(&world, &users[1], a);
        testing_peer_behave(peer, TESTING_BLACK_HOLE);
        cr_assert(eq(int, fake_ask(&world, &fresh, a), POOL_PENDING));
        if (of_pool)
            cr_assert(eq(int, pool_drain(world.pool, 60, NULL, NULL), 0));
        else
            cr_assert(eq(int, pool_host_drain(fake_host(&world, a), 60), 0));
        cr_assert(eq(int, pool_cancel(&fresh.lease), 0));
        fake_give_back(&users[0]);
        fake_run(&world, 10);
        cr_assert(eq(uint, users[1].closed, 0));
        fake_give_back(&users[1]);
        fake_settle(&world);
        cr_assert(eq(u64, fake_stats(&world).ends[LINK_DRAINED], 1));
        fake_world_end(&world);
    }
}

/* ---- memory ---- */

/* Links are up, and the first channel of each needs memory. */
Test(pool_shared, without_memory_for_a_channel_a_target_refuses_the_lease)
{
    struct pool_host_options options;
    struct fake_user user = {0};
    struct fake_world world;

    begin(&world, 3, 0);
    struct pool_target *target = fake_target(&world, "db", &pool_round_robin, (const char *const[]){a}, 1);
    struct pool_host *host = fake_host(&world, a);
    options = world.host;
    options.min_links = 1;
    cr_assert(eq(int, pool_host_set_options(host, &options), 0));
    fake_run(&world, 5);
    cr_assert(eq(uint, fake_stats(&world).idle, 1));
    testing_fail_allocation(world.t, 1, false);
    cr_assert(eq(int, fake_ask_target(&world, &user, target), LINKPOOL_ENOMEM));
    cr_assert(eq(int, fake_ask_target(&world, &user, target), POOL_READY));
    fake_give_back(&user);
    fake_world_end(&world);
}
