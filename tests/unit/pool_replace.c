/* pool_replace.c - shared links that are led away by us: recycled, too old, used up, drained. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>

#include "tests/fakes/calls.h"
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

/* ---- several that wait to be replaced ---- */

static void ask_all(struct fake_user *users, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        fake_ask(&world, &users[i], a);
    fake_run(&world, 1);
    for (unsigned i = 0; i < n; i++)
        cr_assert(eq(int, users[i].status, POOL_READY));
}

static void replace_two(bool old_is_full)
{
    struct fake_user users[6] = {0}, again = {0}, next = {0};

    begin();
    ask_all(users, 6); /* two links, and no room */
    const void *old = link_of(&users[0]), *young = link_of(&users[5]);
    cr_assert(ne(ptr, (void *)old, (void *)young));
    testing_peer_delay(peer, 1.5, 0);
    cr_assert(eq(int, pool_host_recycle(host(), 1), 0)); /* the young one after 1 s, the old one after 2 */
    fake_run(&world, 1.5);
    fake_give_back(&users[5]); /* it has room, but is to be replaced: no other for the old one */
    fake_run(&world, 0.7);
    cr_assert(eq(uint, testing_peer_attempts(peer), 4));
    cr_assert(eq(int, fake_ask(&world, &again, a), POOL_READY));
    cr_assert(eq(ptr, (void *)link_of(&again), (void *)young));
    fake_give_back(&users[old_is_full ? 4 : 0]); /* those that are full are looked at last */
    fake_run(&world, 0.5);
    cr_assert(eq(uint, stats().links[LINK_READY], 3));
    for (int i = old_is_full ? 0 : 1; i < 3; i++)
        fake_give_back(&users[i]);
    fake_settle(&world);
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_DRAINED], 1));
    cr_assert(eq(ptr, (void *)link_of(&again), (void *)young));
    fake_run(&world, 1);
    for (int i = 3; i < (old_is_full ? 4 : 5); i++)
        fake_give_back(&users[i]);
    fake_give_back(&again);
    fake_settle(&world);
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_DRAINED], 2));
    fake_hold(&world, &next, a);
    fake_give_back(&next);
    fake_world_end(&world);
}

Test(pool_replace, of_several_that_wait_to_be_replaced_the_oldest_goes_first)
{
    replace_two(true);
    replace_two(false);
}

Test(pool_replace, so_many_wait_to_be_replaced_and_those_beyond_take_no_more)
{
    enum {
        N = 260,
        MOST = 255
    };
    static struct fake_user users[N];

    prepare();
    world.host.max_channels = 1;
    world.host.max_links = world.options.max_links = world.options.max_line = 2 * N;
    world.host.first_connecting = world.host.max_connecting = world.options.max_connecting = 2 * N;
    open_world();
    ask_all(users, N);
    testing_peer_behave(peer, TESTING_BLACK_HOLE);
    cr_assert(eq(int, pool_host_recycle(host(), 1e6), 0));
    fake_run(&world, 0.1);
    for (int i = 0; i < N; i++)
        fake_give_back(&users[i]);
    fake_settle(&world);
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_DRAINED], N - MOST));
    cr_assert(eq(uint, stats().links[LINK_READY], MOST));
    fake_world_end(&world);
}

Test(pool_replace, one_that_waits_to_be_replaced_may_be_too_old_by_options_that_change)
{
    struct pool_host_options options;
    struct fake_user user = {0}, next = {0};

    begin();
    fake_hold(&world, &user, a);
    testing_peer_behave(peer, TESTING_BLACK_HOLE);
    cr_assert(eq(int, pool_host_recycle(host(), 1), 0));
    fake_run(&world, 2);
    cr_assert(eq(int, fake_ask(&world, &next, a), POOL_READY));
    fake_give_back(&next);
    options = world.host;
    options.max_age = 1;
    cr_assert(eq(int, pool_host_set_options(host(), &options), 0));
    cr_assert(eq(int, fake_ask(&world, &next, a), POOL_PENDING));
    finish(&user, LINK_TOO_OLD);
    fake_world_end(&world);
}

Test(pool_replace, in_a_drain_none_is_replaced_first)
{
    struct fake_user users[3] = {0}, waiter = {0};

    prepare();
    world.host.max_links = 2;
    open_world();
    ask_all(users, 3);
    testing_peer_behave(peer, TESTING_BLACK_HOLE);
    cr_assert(eq(int, fake_ask(&world, &waiter, a), POOL_PENDING));
    fake_settle(&world);
    cr_assert(eq(uint, testing_peer_attempts(peer), 2)); /* for the waiter */
    cr_assert(eq(int, pool_host_recycle(host(), 1), 0));
    cr_assert(eq(int, pool_drain(world.pool, 60, NULL, NULL), 0));
    fake_run(&world, 1.1);
    fake_give_back(&users[0]);
    fake_run(&world, 10);
    cr_assert(eq(int, waiter.status < 0, 1)); /* it was not given what is to go */
    for (int i = 1; i < 3; i++)
        fake_give_back(&users[i]);
    fake_settle(&world);
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_DRAINED], 1));
    fake_world_end(&world);
}

Test(pool_replace, a_host_that_drains_replaces_none_any_more)
{
    struct fake_user users[3] = {0}, waiter = {.lease.flags = POOL_FRESH};

    prepare();
    world.host.max_links = 2;
    open_world();
    ask_all(users, 3);
    testing_peer_behave(peer, TESTING_REFUSE);
    cr_assert(eq(int, pool_host_recycle(host(), 1), 0));
    fake_run(&world, 1.1);
    waiter.lease.flags |= POOL_WAIT_FOR_READY;
    cr_assert(eq(int, fake_ask(&world, &waiter, a), POOL_PENDING));
    cr_assert(eq(int, pool_host_drain(host(), 60), 0));
    fake_run(&world, 6); /* the waiter's time is up */
    cr_assert(eq(int, waiter.status < 0, 1));
    unsigned attempts = testing_peer_attempts(peer);
    fake_run(&world, 20);
    cr_assert(eq(uint, testing_peer_attempts(peer), attempts));
    for (int i = 0; i < 3; i++)
        fake_give_back(&users[i]);
    fake_settle(&world);
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_DRAINED], 1));
    fake_world_end(&world);
}

/* ---- another that has no room ---- */

Test(pool_replace, one_whose_peer_takes_nobody_is_no_other)
{
    struct fake_user users[3] = {0};
    struct fake_world w;

    fake_calls_begin(&w);
    w.host.max_channels = 2;
    fake_world_open(&w);
    fake_server(&w, a);
    fake_hold(&w, &users[0], a);
    cr_assert(eq(int, pool_host_recycle(fake_host(&w, a), 0.1), 0)); /* in 10 s */
    fake_hold(&w, &users[1], a);
    fake_hold(&w, &users[2], a);
    fake_calls_set_room(0);
    fake_give_back(&users[1]);
    fake_give_back(&users[2]);
    fake_run(&w, 9);
    cr_assert(eq(uint, fake_host_stats(fake_host(&w, a)).links[LINK_READY], 2));
    fake_run(&w, 2);
    cr_assert(eq(uint, fake_host_stats(fake_host(&w, a)).links[LINK_READY], 3));
    fake_give_back(&users[0]);
    fake_settle(&w);
    cr_assert(eq(u64, fake_stats(&w).ends[LINK_DRAINED], 1));
    fake_world_end(&w);
}
