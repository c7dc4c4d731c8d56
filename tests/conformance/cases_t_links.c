/* cases_t_links.c - the cases T84 to T98: links that are used again, their room and their uses. */
#include "tests/conformance/cases.h"

static struct protocol shared;
static unsigned own_cap; /* of the hosts' links */

/* Links carry so many leases at once. */
static struct testing_peer *begin_shared(struct fake_world *world, unsigned room, unsigned max_links, unsigned max_uses)
{
    cases_begin(world);
    cases_gaps(world, 0.2, 2, 10);
    shared = cases_shared;
    shared.max_channels = room;
    world->host.protocol = &shared;
    world->host.max_links = max_links;
    world->host.max_uses = max_uses;
    world->host.max_channels = own_cap;
    fake_world_open(world);
    return fake_echo(world, A);
}

static struct link_stats link_of(const struct fake_world *world)
{
    struct link_stats stats;

    link_stats(pool_host_next_link(fake_host(world, A), NULL), &stats, sizeof stats);
    return stats;
}

Test(cases, T84_the_second_use_has_the_same_link_at_once)
{
    struct fake_world world;
    struct fake_user user = {0};
    struct testing_peer *peer = cases_peer(&world, 1);

    cases_use(&world, A);
    cr_assert(eq(int, fake_ask(&world, &user, A), POOL_READY));
    cr_assert(user.lease.reused);
    cr_assert(eq(uint, testing_peer_accepted(peer), 1));
    fake_world_end(&world);
}

Test(cases, T86_a_link_its_answer_said_to_close_is_not_used_again)
{
    struct fake_world world;
    struct fake_user user = {0};
    struct testing_peer *peer = cases_peer(&world, 4);

    fake_hold(&world, &user, A);
    fake_exchange(&world, &user);
    cr_assert(eq(int, pool_release(&user.lease, POOL_DISCARD), 0));
    fake_settle(&world);
    cr_assert(eq(uint, testing_peer_open(peer), 0));
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_DISCARDED], 1));
    cases_use(&world, A);
    cr_assert(eq(uint, testing_peer_accepted(peer), 2));
    fake_world_end(&world);
}

/* Where a holder does not read, the bytes wait in the kernel; given back with them, the link is closed. */
Test(cases, T87_bytes_nobody_takes_end_the_link)
{
    struct fake_world world;
    struct fake_user user = {0};
    struct testing_peer *peer = cases_peer(&world, 4);

    fake_hold(&world, &user, A);
    testing_peer_say(peer, "?", 1);
    fake_settle(&world);
    fake_give_back(&user);
    fake_settle(&world);
    cr_assert(eq(uint, testing_peer_open(peer), 0));
    cases_use(&world, A);
    testing_peer_say(peer, "?", 1); /* the same on an idle link */
    fake_settle(&world);
    cr_assert(eq(uint, testing_peer_open(peer), 0));
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_UNEXPECTED_DATA], 2));
    fake_world_end(&world);
}

static unsigned begun, ended;
static void *state_of[2];

static int start_state(struct protocol_link *pl)
{
    begun++;
    *(char *)pl->state = 's';
    return protocol_ready(pl);
}

static int see_state(struct protocol_link *pl)
{
    cr_assert(eq(chr, *(char *)pl->state, 's'));
    state_of[1] = state_of[0];
    state_of[0] = pl->state;
    return PROTOCOL_CLEAN;
}

static void end_state(struct protocol_link *pl)
{
    cr_assert(eq(chr, *(char *)pl->state, 's'));
    *(char *)pl->state = 'e';
    ended++;
}

Test(cases, T88_a_links_state_follows_it_from_user_to_user_and_ends_once)
{
    struct protocol stateful = protocol_raw;
    struct fake_world world;
    struct fake_user user = {0};

    cases_begin(&world);
    stateful.link_size = 1;
    stateful.start = start_state;
    stateful.released = see_state;
    stateful.end = end_state;
    world.host.protocol = &stateful;
    fake_world_open(&world);
    fake_echo(&world, A);
    cases_use(&world, A);
    cases_use(&world, A);
    cr_assert(eq(ptr, state_of[0], state_of[1]));
    cr_assert(eq(uint, ended, 0));
    fake_hold(&world, &user, A);
    channel_set_data(user.lease.channel, &user);
    fake_give_back(&user);
    fake_hold(&world, &user, A);
    cr_assert(eq(ptr, channel_data(user.lease.channel), NULL)); /* the holder's own pointer does not follow */
    pool_release(&user.lease, POOL_DISCARD);
    cr_assert(eq(uint, ended, 1));
    cases_use(&world, A);
    fake_world_end(&world);
    cr_assert(eq(uint, begun, 2));
    cr_assert(eq(uint, ended, 2));
}

Test(cases, T89_a_link_of_one_use_ends_with_it)
{
    for (int is_shared = 0; is_shared < 2; is_shared++) {
        struct fake_world world;
        struct fake_user user = {0};
        cases_begin(&world);
        if (is_shared)
            world.host.protocol = &cases_shared;
        world.host.max_uses = 1;
        fake_world_open(&world);
        struct testing_peer *peer = fake_echo(&world, A);
        fake_hold(&world, &user, A);
        fake_give_back(&user);
        fake_settle(&world);
        cr_assert(eq(uint, testing_peer_open(peer), 0));
        cr_assert(eq(u64, fake_stats(&world).ends[LINK_USED_UP], 1));
        cr_assert(eq(uint, user.closed, 0));
        fake_world_end(&world);
    }
}

Test(cases, T90_three_on_links_of_two_dial_two)
{
    struct fake_world world;
    struct fake_user users[3] = {0};
    struct testing_peer *peer = begin_shared(&world, 2, 64, 0);

    testing_peer_delay(peer, 0.1, 0);
    cases_ask(&world, users, 3, A);
    fake_run(&world, 0.05);
    cr_assert(eq(uint, testing_peer_attempts(peer), 2));
    fake_run(&world, 0.1);
    cr_assert(eq(uint, cases_count(users, 3, POOL_READY), 3));
    cr_assert(eq(uint, testing_peer_attempts(peer), 2));
    fake_world_end(&world);
}

Test(cases, T91_two_links_of_one_are_used_again_and_never_a_third)
{
    struct fake_world world;
    struct fake_user users[2] = {0}, third = {0};
    struct testing_peer *peer = begin_shared(&world, 1, 2, 0);

    for (int i = 0; i < 20; i++) {
        for (int k = 0; k < 2; k++)
            fake_hold(&world, &users[k], A);
        cr_assert(eq(int, fake_ask(&world, &third, A), POOL_PENDING));
        fake_settle(&world);
        cr_assert(eq(int, third.status, POOL_PENDING));
        for (int k = 0; k < 2; k++)
            fake_give_back(&users[k]);
        fake_settle(&world);
        cr_assert(eq(int, third.status, POOL_READY));
        fake_give_back(&third);
    }
    cr_assert(eq(uint, testing_peer_accepted(peer), 2));
    fake_world_end(&world);
}

/* One link, up and unused: its peer takes so many at once, its uses are so many, and so many are ours to take. */
static struct testing_peer *begin_bounded(struct fake_world *world, unsigned room, unsigned max_uses, unsigned ours)
{
    struct testing_peer *peer;

    own_cap = ours;
    peer = begin_shared(world, room, 1, max_uses);
    pool_host_start(pool_host(world->pool, A));
    fake_settle(world);
    return peer;
}

static void expect_capacity(const struct fake_world *world, unsigned n)
{
    cr_assert(eq(uint, link_of(world).free, n));
}

/* What it says is what it does: so many more are lent at once, and one more than that waits. */
static void expect_lends(struct fake_world *world, unsigned n)
{
    struct fake_user users[8] = {0};

    expect_capacity(world, n);
    for (unsigned i = 0; i <= n; i++)
        cr_assert(eq(int, fake_ask(world, &users[i], A), i < n ? POOL_READY : POOL_PENDING));
    expect_capacity(world, 0);
    cr_assert(eq(int, pool_cancel(&users[n].lease), 0));
    for (unsigned i = 0; i < n; i++)
        pool_release(&users[i].lease, POOL_REUSE);
}

Test(cases, T94_capacity_is_the_least_of_the_uses_left_and_the_free_streams)
{
    struct fake_world world;
    struct fake_user users[3] = {0};
    struct testing_peer *peer = begin_bounded(&world, 8, 6, 0);

    expect_capacity(&world, 6); /* of 8, but 6 uses */
    fake_hold(&world, &users[0], A);
    expect_capacity(&world, 5);
    fake_hold(&world, &users[1], A);
    fake_hold(&world, &users[2], A);
    expect_capacity(&world, 3); /* 3 uses left, 5 free */
    cases_say(peer, 'N', 4);
    fake_settle(&world);
    expect_capacity(&world, 1); /* 3 uses left, 1 free */
    for (unsigned i = 0; i < 3; i++) {
        fake_give_back(&users[i]);
        expect_capacity(&world, i ? 3 : 2);
    }
    expect_lends(&world, 3);
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_USED_UP], 1));
    cr_assert(eq(uint, testing_peer_accepted(peer), 1));
    fake_world_end(&world);
}

Test(cases, T94_fewer_free_streams_than_uses_bound_it_until_the_uses_run_out)
{
    struct fake_world world;
    struct fake_user users[3] = {0};

    begin_bounded(&world, 2, 4, 0);
    expect_capacity(&world, 2); /* of 4 uses, but 2 streams */
    fake_hold(&world, &users[0], A);
    expect_capacity(&world, 1);
    fake_hold(&world, &users[1], A);
    expect_capacity(&world, 0);
    fake_give_back(&users[0]);
    expect_capacity(&world, 1);
    fake_give_back(&users[1]);
    expect_capacity(&world, 2);
    fake_hold(&world, &users[2], A);
    expect_capacity(&world, 1); /* 1 use left, 1 free: one, and not none */
    fake_give_back(&users[2]);
    expect_lends(&world, 1);
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_USED_UP], 1));
    fake_world_end(&world);
}

Test(cases, T94_our_own_cap_bounds_it_as_well)
{
    struct fake_world world;
    struct fake_user users[3] = {0};
    struct testing_peer *peer = begin_bounded(&world, 100, 8, 3);

    expect_capacity(&world, 3);
    fake_hold(&world, &users[0], A);
    expect_capacity(&world, 2);
    cases_say(peer, 'N', 2);
    fake_settle(&world);
    expect_capacity(&world, 1);
    cases_say(peer, 'N', 200);
    fake_settle(&world);
    expect_lends(&world, 2); /* 3 uses gone */
    fake_hold(&world, &users[1], A);
    fake_hold(&world, &users[2], A);
    expect_capacity(&world, 0); /* 3 uses left, and our cap is met */
    fake_give_back(&users[0]);
    expect_capacity(&world, 1);
    fake_world_end(&world);
}

Test(cases, T94_an_attempt_is_taken_to_serve_no_more_than_its_uses_and_our_cap_allow)
{
    for (int is_cap = 0; is_cap < 2; is_cap++) {
        struct fake_world world;
        struct fake_user users[5] = {0};
        own_cap = is_cap ? 2 : 0;
        struct testing_peer *peer = begin_shared(&world, 8, 64, is_cap ? 0 : 2);
        testing_peer_delay(peer, 0.1, 0);
        cases_ask(&world, users, 5, A);
        fake_run(&world, 0.05);
        cr_assert(eq(uint, testing_peer_attempts(peer), 3)); /* all that are needed, and at once */
        fake_run(&world, 0.1);
        cr_assert(eq(uint, cases_count(users, 5, POOL_READY), 5));
        fake_world_end(&world);
    }
}

Test(cases, T96_the_idle_timer_runs_between_uses_alone)
{
    for (int dies = 0; dies < 2; dies++) {
        struct fake_world world;
        struct fake_user user = {0};
        cases_begin(&world);
        world.host.idle_timeout = 1;
        fake_world_open(&world);
        struct testing_peer *peer = fake_echo(&world, A);
        fake_hold(&world, &user, A);
        fake_run(&world, 5);
        cr_assert(eq(uint, testing_peer_open(peer), 1));
        fake_exchange(&world, &user);
        fake_give_back(&user);
        fake_run(&world, 0.9);
        cr_assert(eq(uint, testing_peer_open(peer), 1));
        if (dies)
            testing_peer_cut(peer, LINK_CLOSED_BY_PEER);
        fake_run(&world, 0.2);
        cr_assert(eq(uint, testing_peer_open(peer), 0));
        cr_assert(eq(u64, fake_stats(&world).ends[LINK_IDLE_TIMEOUT], !dies));
        fake_world_end(&world);
    }
}

Test(cases, T97_a_holder_is_told_once_that_its_link_is_gone)
{
    struct fake_world world;
    struct fake_user user = {0};
    struct testing_peer *peer = begin_shared(&world, 4, 1, 0);

    fake_hold(&world, &user, A);
    testing_peer_serve(peer, NULL, NULL);
    cr_assert(eq(int, channel_send(user.lease.channel, "q", 1), 0));
    fake_settle(&world);
    testing_peer_cut(peer, LINK_CLOSED_BY_PEER);
    fake_run(&world, 1);
    cr_assert(eq(uint, user.closed, 1));
    cr_assert(eq(int, user.lease.fate, POOL_SENT_NO_ANSWER));
    cr_assert(eq(int, user.lease.reason, LINK_CLOSED_BY_PEER));
    cr_assert(eq(uint, fake_stats(&world).links, 0));
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_CLOSED_BY_PEER], 1));
    cr_assert(eq(int, pool_release(&user.lease, POOL_REUSE), LINKPOOL_ESTATE));
    fake_world_end(&world);
}

Test(cases, T98_each_bound_is_told_counted_and_freed_by_a_return)
{
    struct fake_world world;
    struct fake_user users[3] = {0}, over = {0};
    static const enum pool_bound bounds[] = {POOL_BOUND_LINE, POOL_BOUND_POOL_WAITING, POOL_BOUND_HOSTS};

    for (int i = 0; i < 3; i++) {
        cases_begin(&world);
        world.host.max_links = 1;
        *(i == 0 ? &world.options.max_line : i == 1 ? &world.options.max_waiting : &world.options.max_hosts) = 1;
        fake_world_open(&world);
        fake_echo(&world, A);
        memset(users, 0, sizeof users);
        fake_hold(&world, &users[0], A);
        fake_ask(&world, &users[1], A);
        cr_assert(eq(int, fake_ask(&world, &over, i == 2 ? B : A), LINKPOOL_EFULL));
        cr_assert(eq(int, over.lease.bound, bounds[i]));
        cr_assert(eq(u64, fake_stats(&world).full, 1));
        cr_assert(eq(uint, fake_stats(&world).waiting, 1));
        fake_give_back(&users[0]);
        fake_settle(&world);
        cr_assert(eq(int, users[1].status, POOL_READY));
        cr_assert(eq(uint, fake_stats(&world).waiting, 0));
        cr_assert(eq(int, fake_ask(&world, &users[2], A), POOL_PENDING)); /* the place is free again */
        fake_world_end(&world);
    }
}
