/* cases_t_drain.c - the cases T54 and T114 to T130: peers that leave, drains, and the end of the pool. */
#include "tests/conformance/cases.h"

static struct protocol shared;

static struct testing_peer *begin(struct fake_world *world, unsigned room, unsigned max_links)
{
    cases_begin(world);
    cases_gaps(world, 0.2, 2, 10);
    shared = cases_shared;
    shared.max_channels = room;
    world->host.protocol = &shared;
    world->host.max_links = max_links;
    fake_world_open(world);
    cases_target(world, &pool_round_robin, 1);
    return fake_echo(world, A);
}

/* A call on a shared channel: what was sent comes back. */
static void call(struct fake_world *world, struct fake_user *user)
{
    uint64_t before = user->lease.bytes_received;

    cr_assert(eq(int, channel_send(user->lease.channel, "q", 1), 0));
    fake_settle(world);
    cr_assert(eq(u64, user->lease.bytes_received, before + 1));
}

static void call_once(struct fake_world *world)
{
    struct fake_user user = {0};

    fake_hold(world, &user, "db");
    call(world, &user);
    fake_give_back(&user);
}

/* Announces that it leaves, and closes when who is on it has been answered. */
static void leave(void *peer)
{
    cases_say(peer, 'G', 255);
}

Test(cases, T54_a_server_that_leaves_and_restarts_costs_no_call)
{
    struct fake_world world;
    struct testing_peer *peer = begin(&world, 100, 64);

    for (int i = 1; i <= 50; i++)
        testing_at(world.t, testing_now(world.t) + i * 0.02, leave, peer);
    for (int i = 0; i < 1000; i++) {
        call_once(&world);
        fake_run(&world, 0.001);
    }
    cr_assert(eq(uint, testing_peer_accepted(peer), 51));
    cr_assert(le(uint, testing_peer_open(peer), 1));
    fake_world_end(&world);
}

static void say_leaving(void *conn)
{
    testing_conn_send(conn, "\0G\377", 4);
}

static void leave_at_100_ms(void *data, struct testing_conn *conn)
{
    struct testing *t = data;

    testing_at(t, testing_now(t) + 0.1, say_leaving, conn);
}

static void forget_leaving(void *data, struct testing_conn *conn)
{
    testing_at_cancel(data, say_leaving, conn);
}

static void echo(void *data, struct testing_conn *conn, const void *bytes, size_t n)
{
    (void)data;
    testing_conn_send(conn, bytes, n);
}

Test(cases, T114_links_of_100_ms_cost_no_call)
{
    struct fake_world world;
    struct testing_peer *peer = begin(&world, 100, 64);

    testing_peer_on(peer, &(struct testing_server){.size = sizeof(struct testing_server),
                              .accepted = leave_at_100_ms,
                              .received = echo,
                              .closed = forget_leaving,
                              .data = world.t});
    double from = testing_now(world.t);
    while (testing_now(world.t) < from + 1)
        call_once(&world);
    cr_assert(ge(uint, testing_peer_accepted(peer), 9));
    fake_world_end(&world);
}

static unsigned drained;

static void on_target_drained(struct pool_target *target, void *data)
{
    (void)target, (void)data;
    drained++;
}

static void on_pool_drained(struct pool *pool, void *data)
{
    (void)pool, (void)data;
    drained++;
}

Test(cases, T115_a_graceful_stop_waits_for_who_is_out)
{
    struct fake_world world;
    struct fake_user old = {0}, late = {0};

    begin(&world, 4, 1);
    struct pool_target *target = pool_next_target(world.pool, NULL);
    fake_hold(&world, &old, "db");
    cr_assert(eq(int, pool_target_drain(target, INFINITY, on_target_drained, NULL), 0));
    cr_assert(eq(int, pool_target_drain(target, INFINITY, on_target_drained, NULL), LINKPOOL_ESTATE));
    cr_assert(eq(int, fake_ask(&world, &late, "db"), LINKPOOL_ECLOSED));
    fake_run(&world, 100);
    call(&world, &old);
    cr_assert(eq(uint, drained, 0));
    fake_give_back(&old);
    fake_settle(&world);
    cr_assert(eq(uint, drained, 1));
    fake_world_end(&world);
}

Test(cases, T117_a_leave_that_takes_one_of_twenty_ends_the_others_as_safe)
{
    struct fake_world world;
    struct fake_user users[20] = {0};
    struct testing_peer *peer = begin(&world, 100, 1);

    cases_ask(&world, users, 10, A);
    fake_settle(&world);
    cases_say(peer, 'G', 1);
    cases_ask(&world, users + 10, 10, A); /* while the word is on its way */
    for (int i = 0; i < 20; i++)
        if (users[i].status == POOL_READY)
            cr_assert(eq(int, channel_send(users[i].lease.channel, "q", 1), 0));
    fake_run(&world, 1);
    cr_assert(eq(uint, users[0].closed, 0));
    for (int i = 1; i < 20; i++) {
        cr_assert(eq(uint, users[i].closed, 1), "user %d", i);
        cr_assert(eq(int, users[i].lease.fate, POOL_NOT_SENT));
    }
    fake_give_back(&users[0]);
    call_once(&world);
    cr_assert(eq(uint, testing_peer_accepted(peer), 2));
    fake_world_end(&world);
}

Test(cases, T119_the_peers_words_are_kept_with_its_reason)
{
    struct fake_world world;
    struct fake_user user = {0};
    char text[300];

    struct testing_peer *peer = begin(&world, 4, 1);
    fake_hold(&world, &user, "db");
    cases_say(peer, 'B', 0);
    fake_settle(&world);
    cr_assert(eq(uint, user.closed, 1));
    cr_assert(eq(int, user.lease.reason, LINK_HANDSHAKE_FAILED));
    pool_target_explain(pool_next_target(world.pool, NULL), text, sizeof text);
    cr_assert(ne(ptr, strstr(text, "too many calls"), NULL), "%s", text);
    fake_world_end(&world);
}

Test(cases, T120_a_draining_link_closes_right_after_its_last_stream)
{
    struct fake_world world;
    struct fake_user users[2] = {0};
    struct testing_peer *peer = begin(&world, 4, 1);

    cases_ask(&world, users, 2, A);
    fake_settle(&world);
    cases_say(peer, 'G', 255);
    fake_settle(&world);
    fake_give_back(&users[0]);
    fake_settle(&world);
    cr_assert(eq(uint, testing_peer_open(peer), 1));
    fake_give_back(&users[1]);
    fake_settle(&world);
    cr_assert(eq(uint, testing_peer_open(peer), 0));
    fake_world_end(&world);
}

Test(cases, T121_a_link_whose_uses_are_up_finishes_them_beside_the_next)
{
    struct fake_world world;
    struct fake_user users[3] = {0};
    static const unsigned accepted[] = {1, 1, 2};

    cases_begin(&world);
    shared = cases_shared;
    world.host.protocol = &shared;
    world.host.max_uses = 2;
    fake_world_open(&world);
    struct testing_peer *peer = fake_echo(&world, A);
    for (int i = 0; i < 3; i++) {
        fake_hold(&world, &users[i], A);
        cr_assert(eq(uint, testing_peer_accepted(peer), accepted[i]));
    }
    for (int i = 0; i < 3; i++) {
        cr_assert(eq(uint, testing_peer_open(peer), i < 2 ? 2 : 1));
        call(&world, &users[i]);
        fake_give_back(&users[i]);
        fake_settle(&world);
    }
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_USED_UP], 1));
    fake_world_end(&world);
}

Test(cases, T122_a_drain_ends_each_link_as_soon_as_nobody_needs_it)
{
    struct fake_world world;
    struct fake_user held = {0}, waits = {0};
    struct testing_peer *peer = begin(&world, 1, 2);

    call_once(&world); /* idle */
    pool_host_drain(fake_host(&world, A), 100);
    fake_settle(&world);
    cr_assert(eq(uint, testing_peer_open(peer), 0));
    pool_host_start(fake_host(&world, A));
    fake_hold(&world, &held, A); /* in use */
    testing_peer_delay(peer, 1, 0);
    fake_ask(&world, &waits, A); /* connecting for a waiter */
    fake_run(&world, 0.5);
    pool_host_drain(fake_host(&world, A), 100);
    fake_settle(&world);
    cr_assert(eq(uint, testing_peer_open(peer), 1));
    cr_assert(eq(uint, fake_stats(&world).connecting, 1));
    cr_assert(eq(uint, testing_peer_attempts(peer), 3)); /* it is the same attempt */
    fake_give_back(&held);                               /* whom the waiter takes over */
    fake_run(&world, 1);
    cr_assert(eq(int, waits.status, POOL_READY));
    fake_give_back(&waits);
    fake_settle(&world);
    cr_assert(eq(uint, testing_open_descriptors(world.t), 0));
    fake_world_end(&world);
}

Test(cases, T123_a_pool_that_drains_is_idle_when_the_last_is_back)
{
    struct fake_world world;
    struct fake_user users[3] = {0};
    struct testing_peer *peer = begin(&world, 1, 3);

    cases_ask(&world, users, 2, A);
    fake_settle(&world);
    testing_peer_delay(peer, 1, 0);
    fake_ask(&world, &users[2], A); /* connecting, and awaited */
    fake_run(&world, 0.1);
    fake_give_back(&users[0]); /* taken over by who waits: so that one is ready and idle, and one connecting */
    fake_settle(&world);
    cr_assert(eq(int, users[2].status, POOL_READY));
    cr_assert(eq(int, pool_drain(world.pool, INFINITY, on_pool_drained, NULL), 0));
    fake_settle(&world);
    cr_assert(eq(uint, fake_stats(&world).links, 2)); /* the two that are held: the attempt went at once */
    fake_give_back(&users[1]);
    fake_settle(&world);
    cr_assert(eq(uint, fake_stats(&world).links, 1));
    cr_assert(eq(uint, drained, 0));
    fake_give_back(&users[2]);
    fake_settle(&world);
    cr_assert(eq(uint, drained, 1));
    cr_assert(eq(uint, fake_stats(&world).links, 0));
    fake_world_end(&world);
}

Test(cases, T126_a_new_call_goes_to_a_new_link_while_the_old_one_finishes)
{
    struct fake_world world;
    struct fake_user old = {0}, next = {0};
    struct testing_peer *peer = begin(&world, 100, 2);

    fake_hold(&world, &old, A);
    cases_say(peer, 'G', 255);
    fake_settle(&world);
    fake_hold(&world, &next, A);
    cr_assert(ne(u64, cases_link_id(&old), cases_link_id(&next)));
    call(&world, &old);
    call(&world, &next);
    fake_give_back(&old);
    fake_settle(&world);
    cr_assert(eq(uint, testing_peer_open(peer), 1));
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_CLOSED_BY_PEER], 1));
    fake_world_end(&world);
}

Test(cases, T127_the_last_use_counts_as_active_until_it_is_back)
{
    struct fake_world world;
    struct fake_user user = {0};

    cases_begin(&world);
    world.host.max_uses = 1;
    fake_world_open(&world);
    fake_echo(&world, A);
    fake_hold(&world, &user, A);
    pool_drain(world.pool, INFINITY, on_pool_drained, NULL);
    fake_run(&world, 10);
    cr_assert(eq(uint, fake_stats(&world).leased, 1));
    cr_assert(eq(uint, drained, 0));
    fake_exchange(&world, &user);
    fake_give_back(&user);
    cr_assert(eq(uint, fake_stats(&world).leased, 0));
    fake_settle(&world);
    cr_assert(eq(uint, drained, 1));
    fake_world_end(&world);
}

Test(cases, T129_the_end_of_the_pool_is_told_to_all_and_closes_all)
{
    struct fake_world world;
    struct fake_user users[4] = {0};
    struct testing_peer *peer = begin(&world, 1, 2);

    cases_ask(&world, users, 4, A);
    fake_settle(&world);
    pool_free(world.pool);
    world.pool = NULL;
    for (int i = 0; i < 4; i++) {
        cr_assert(eq(uint, users[i].done, 1));
        cr_assert(eq(uint, users[i].closed, i < 2), "user %d", i);
        cr_assert(eq(int, users[i].status, i < 2 ? POOL_READY : LINKPOOL_ECLOSED));
    }
    cr_assert(eq(uint, testing_open_descriptors(world.t), 0));
    fake_settle(&world);
    cr_assert(eq(uint, testing_peer_open(peer), 0));
    fake_world_end(&world);
}

Test(cases, T130_what_was_to_be_told_is_not_told_after_the_end)
{
    struct fake_world world;
    struct fake_user holder = {0}, user = {0};
    char text[100];

    begin(&world, 1, 1);
    fake_hold(&world, &holder, A);
    fake_ask(&world, &user, A);
    fake_give_back(&holder);
    pool_explain(&user.lease, text, sizeof text);
    cr_assert(ne(ptr, strstr(text, "will be told"), NULL), "%s", text); /* it has won, and was not told yet */
    cr_assert(eq(uint, user.done, 0));
    pool_free(world.pool);
    world.pool = NULL;
    cr_assert(eq(uint, user.done, 1));
    cr_assert(eq(int, user.status, LINKPOOL_ECLOSED));
    fake_run(&world, 10);
    cr_assert(eq(uint, user.done, 1));
    cr_assert(eq(uint, user.closed, 0));
    fake_world_end(&world);
}
