/* pool_replace.c - shared links that are led away by us: recycled, too old, used up, drained. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>

#include "tests/fakes/shared.h"
#include "tests/fakes/world.h"

static const char a[] = "10.0.0.1:80";
static struct fake_world world;
static struct testing_peer *peer;

static void prepare(void)
{
    fake_world_begin(&world);
    world.host.protocol = &fake_shared; /* three channels a link */
    world.host.max_links = 4;
    world.host.drain_timeout = 7;
    world.backoff.reconnect_spread = 0;
}

static void open_world(void)
{
    fake_world_open(&world);
    peer = fake_echo(&world, a);
}

static void begin(void)
{
    prepare();
    open_world();
}

static struct pool_host *host(void)
{
    return fake_host(&world, a);
}

static struct pool_host_stats stats(void)
{
    return fake_host_stats(host());
}

static const void *link_of(const struct fake_user *user)
{
    return channel_link(user->lease.channel);
}

static void exchange(struct fake_user *user)
{
    uint64_t before = user->lease.bytes_received;

    cr_assert(eq(int, channel_send(user->lease.channel, "q", 1), 0));
    fake_settle(&world);
    cr_assert(eq(u64, user->lease.bytes_received, before + 1));
}

/* It goes on for far longer than drain_timeout, and takes its link with it. */
static void finish(struct fake_user *user, enum link_reason reason)
{
    uint64_t before = fake_stats(&world).ends[reason];

    fake_run(&world, 20);
    cr_assert(eq(uint, user->closed, 0));
    exchange(user);
    fake_give_back(user);
    fake_settle(&world);
    cr_assert(eq(u64, fake_stats(&world).ends[reason], before + 1));
}

/* ---- recycled: make before break ---- */

Test(pool_replace, a_recycled_link_in_use_is_lent_on_until_the_next_is_up)
{
    struct fake_user old = {0}, between = {0}, next = {0};

    begin();
    fake_hold(&world, &old, a);
    testing_peer_delay(peer, 0.5, 0);
    cr_assert(eq(int, pool_host_recycle(host(), 1), 0));
    fake_run(&world, 1.1);
    cr_assert(eq(uint, testing_peer_attempts(peer), 2)); /* though nobody waits */
    cr_assert(eq(int, fake_ask(&world, &between, a), POOL_READY));
    cr_assert(eq(ptr, (void *)link_of(&between), (void *)link_of(&old)));
    fake_run(&world, 0.5);
    cr_assert(eq(uint, stats().links[LINK_READY], 2));
    cr_assert(eq(int, fake_ask(&world, &next, a), POOL_READY));
    cr_assert(ne(ptr, (void *)link_of(&next), (void *)link_of(&old)));
    fake_give_back(&between);
    finish(&old, LINK_DRAINED);
    cr_assert(eq(uint, testing_peer_open(peer), 1));
    fake_world_end(&world);
}

Test(pool_replace, while_no_other_can_be_opened_it_is_lent_on)
{
    struct fake_user old = {0}, late = {0};

    begin();
    fake_hold(&world, &old, a);
    testing_peer_behave(peer, TESTING_REFUSE);
    cr_assert(eq(int, pool_host_recycle(host(), 1), 0));
    fake_run(&world, 60);
    cr_assert(eq(int, pool_host_state(host()), LINK_READY));
    cr_assert(ge(uint, testing_peer_attempts(peer), 20)); /* by its backoff */
    cr_assert(le(uint, testing_peer_attempts(peer), 80));
    cr_assert(eq(int, fake_ask(&world, &late, a), POOL_READY));
    fake_give_back(&late);
    testing_peer_behave(peer, TESTING_ACCEPT);
    fake_run(&world, 2.1);
    cr_assert(eq(int, fake_ask(&world, &late, a), POOL_READY));
    cr_assert(ne(ptr, (void *)link_of(&late), (void *)link_of(&old)));
    fake_give_back(&old);
    fake_settle(&world);
    cr_assert(eq(uint, testing_peer_open(peer), 1));
    fake_world_end(&world);
}

/* Another of its links was lost just before: the next attempt for nobody who waits comes after a draw. */
Test(pool_replace, while_attempts_are_spread_it_is_lent_on_and_is_replaced_after_that)
{
    struct fake_user users[4] = {0}, next = {0};

    prepare();
    world.backoff.reconnect_spread = 60; /* of which the draw is some seconds */
    open_world();
    for (int i = 0; i < 4; i++)
        fake_hold(&world, &users[i], a); /* three, and one on the second */
    fake_run(&world, 11);
    cr_assert(eq(int, pool_host_recycle(host(), 1), 0));
    testing_conn_cut(testing_peer_conn(peer, 1), LINK_RESET);
    fake_run(&world, 2.1);
    cr_assert(eq(uint, users[3].closed, 1));
    cr_assert(eq(uint, testing_peer_attempts(peer), 2));
    fake_run(&world, 10);
    cr_assert(eq(uint, testing_peer_attempts(peer), 3));
    cr_assert(eq(int, fake_ask(&world, &next, a), POOL_READY));
    cr_assert(ne(ptr, (void *)link_of(&next), (void *)link_of(&users[0])));
    fake_world_end(&world);
}

Test(pool_replace, where_another_has_room_none_is_opened)
{
    struct fake_user users[4] = {0}, next = {0};

    begin();
    for (int i = 0; i < 4; i++)
        fake_hold(&world, &users[i], a); /* three, and one on the second */
    fake_give_back(&users[0]);
    cr_assert(eq(int, pool_host_recycle(host(), 1), 0));
    fake_run(&world, 1.1);
    cr_assert(eq(uint, testing_peer_attempts(peer), 2));
    cr_assert(eq(int, fake_ask(&world, &next, a), POOL_READY));
    cr_assert(eq(ptr, (void *)link_of(&next), (void *)link_of(&users[3])));
    fake_run(&world, 1);
    cr_assert(eq(uint, testing_peer_attempts(peer), 3)); /* the last of them has nobody beside it */
    fake_world_end(&world);
}

Test(pool_replace, where_there_is_no_place_for_another_it_takes_no_more_at_once)
{
    struct fake_user old = {0}, next = {0};

    prepare();
    world.host.max_links = 1;
    open_world();
    fake_hold(&world, &old, a);
    cr_assert(eq(int, pool_host_recycle(host(), 1), 0));
    fake_run(&world, 1.1);
    cr_assert(eq(int, fake_ask(&world, &next, a), POOL_PENDING));
    fake_give_back(&old);
    fake_settle(&world);
    cr_assert(eq(int, next.status, POOL_READY));
    cr_assert(eq(uint, testing_peer_accepted(peer), 2));
    fake_world_end(&world);
}

Test(pool_replace, links_in_use_are_replaced_so_many_a_second)
{
    struct fake_user users[9] = {0};

    begin();
    for (int i = 0; i < 9; i++)
        fake_hold(&world, &users[i], a); /* three links, all full */
    cr_assert(eq(int, pool_host_recycle(host(), 2), 0));
    for (unsigned i = 0; i < 3; i++) {
        fake_run(&world, 0.49);
        cr_assert(eq(uint, testing_peer_accepted(peer), i ? 4 : 3));
        fake_run(&world, 0.02);
        cr_assert(eq(uint, testing_peer_accepted(peer), 4)); /* the fourth has room for who comes: that is enough */
    }
    for (int i = 0; i < 9; i++)
        fake_give_back(&users[i]);
    fake_settle(&world);
    cr_assert(eq(uint, testing_peer_open(peer), 1));
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_DRAINED], 3));
    fake_world_end(&world);
}

Test(pool_replace, what_is_kept_up_is_replaced_before_it_ends)
{
    prepare();
    world.host.min_links = 2;
    open_world();
    pool_host(world.pool, a);
    fake_run(&world, 1);
    testing_peer_delay(peer, 0.1, 0);
    cr_assert(eq(int, pool_host_recycle(host(), 1), 0));
    for (int i = 0; i < 40; i++) {
        fake_run(&world, 0.1);
        cr_assert(ge(uint, stats().links[LINK_READY], 2));
    }
    cr_assert(eq(uint, testing_peer_accepted(peer), 4));
    cr_assert(eq(uint, testing_peer_open(peer), 2));
    fake_world_end(&world);
}

Test(pool_replace, what_waits_to_be_replaced_may_end_for_another_reason_first)
{
    for (int how = 0; how < 4; how++) {
        struct fake_user old = {0};
        begin();
        fake_hold(&world, &old, a);
        testing_peer_behave(peer, TESTING_BLACK_HOLE);
        cr_assert(eq(int, pool_host_recycle(host(), 1), 0));
        fake_run(&world, 1.1);
        if (how == 0)
            testing_peer_cut(peer, LINK_RESET);
        else if (how == 1)
            cr_assert(eq(int, pool_host_drain(host(), INFINITY), 0));
        else if (how == 2)
            cr_assert(eq(int, pool_host_recycle(host(), 0), 0)); /* at once */
        else
            cr_assert(eq(int, pool_host_recycle(host(), 10), 0)); /* anew */
        fake_run(&world, 1);
        if (how)
            fake_give_back(&old);
        fake_run(&world, how < 3 ? 10 : world.host.idle_timeout + 1); /* marked again, and used by nobody */
        cr_assert(eq(uint, stats().links[LINK_READY], 0), "%d", how);
        fake_world_end(&world);
    }
}

/* ---- too old, used up, drained ---- */

Test(pool_replace, a_link_that_is_too_old_takes_no_more_and_its_uses_finish)
{
    struct fake_user old = {0}, next = {0};

    prepare();
    world.host.max_age = 30;
    open_world();
    fake_hold(&world, &old, a);
    fake_run(&world, 30);
    fake_hold(&world, &next, a);
    cr_assert(ne(ptr, (void *)link_of(&next), (void *)link_of(&old)));
    fake_give_back(&next);
    finish(&old, LINK_TOO_OLD);
    fake_world_end(&world);
}

Test(pool_replace, a_link_that_is_used_up_takes_no_more_and_its_uses_finish)
{
    struct fake_user old = {0}, next = {0};

    prepare();
    world.host.max_uses = 1;
    open_world();
    fake_hold(&world, &old, a);
    fake_hold(&world, &next, a);
    cr_assert(ne(ptr, (void *)link_of(&next), (void *)link_of(&old)));
    finish(&next, LINK_USED_UP);
    finish(&old, LINK_USED_UP);
    fake_world_end(&world);
}

Test(pool_replace, in_a_drain_uses_of_a_shared_link_finish_and_none_comes_to_it)
{
    struct fake_user users[2] = {0}, late = {0};

    begin();
    fake_hold(&world, &users[0], a);
    fake_hold(&world, &users[1], a);
    cr_assert(eq(int, pool_host_drain(host(), INFINITY), 0));
    cr_assert(eq(int, fake_ask(&world, &late, a), LINKPOOL_ECLOSED));
    fake_give_back(&users[0]);
    fake_settle(&world);
    cr_assert(eq(uint, testing_peer_open(peer), 1));
    finish(&users[1], LINK_DRAINED);
    cr_assert(eq(uint, testing_peer_open(peer), 0));
    cr_assert(eq(uint, testing_peer_accepted(peer), 1));
    fake_world_end(&world);
}

/* A long use on a link that takes no more keeps nothing up. */
Test(pool_replace, min_links_are_replaced_as_soon_as_they_take_no_more)
{
    for (int how = 0; how < 4; how++) {
        struct fake_user old = {0};
        prepare();
        world.host.min_links = 1;
        world.host.max_age = how == 0 ? 10 : 0;
        world.host.max_uses = how == 1;
        open_world();
        pool_host(world.pool, a);
        fake_hold(&world, &old, a);
        fake_run(&world, 8.9);
        if (how == 2)
            cr_assert(eq(int, pool_host_recycle(host(), 0), 0));
        if (how == 3)
            channel_keep_private(old.lease.channel);
        fake_run(&world, 1.2);
        cr_assert(eq(uint, testing_peer_accepted(peer), 2), "%d", how);
        cr_assert(eq(uint, testing_peer_open(peer), 2));
        if (how)
            fake_run(&world, 2 * world.host.idle_timeout);
        cr_assert(eq(u64, fake_stats(&world).ends[LINK_IDLE_TIMEOUT], 0)); /* the one that is kept up now */
        cr_assert(eq(uint, testing_peer_open(peer), 2));
        fake_world_end(&world);
    }
}

/* What its picker keeps up is replaced as min_links are. */
Test(pool_replace, a_used_up_link_that_a_picker_keeps_up_is_replaced_as_soon_as_it_takes_no_more)
{
    struct fake_user users[2] = {0};

    prepare();
    world.host.max_uses = 2;
    open_world();
    fake_target(&world, "db", &pool_round_robin, (const char *const[]){a}, 1);
    fake_hold(&world, &users[0], "db");
    cr_assert(eq(int, fake_ask(&world, &users[1], "db"), POOL_READY));
    fake_run(&world, 1);
    cr_assert(eq(uint, testing_peer_accepted(peer), 2));
    fake_world_end(&world);
}
