/* cases_t_waiters.c - the cases T67 to T83: leases in line. */
#include "tests/conformance/cases.h"

static void begin(struct fake_world *world, unsigned max_links)
{
    cases_begin(world);
    cases_gaps(world, 0.2, 2, 10);
    world->host.max_links = max_links;
    fake_world_open(world);
}

static void expect_none_then_all(struct fake_world *world, struct fake_user users[5])
{
    fake_run(world, 0.02);
    cr_assert(eq(uint, world->told, 0));
    cr_assert(eq(uint, cases_count(users, 5, POOL_PENDING), 5));
}

static void give_each_back(struct fake_world *world, struct fake_user users[5])
{
    for (int i = 0; i < 5; i++) {
        fake_run(world, 0.3);
        cr_assert(eq(int, users[i].status, POOL_READY), "user %d", i);
        pool_release(&users[i].lease, POOL_REUSE);
    }
    cr_assert(eq(uint, world->told, 5));
}

Test(cases, T67_nobody_is_told_early_and_all_are_told_later)
{
    struct fake_world world;

    for (int why = 0; why < 4; why++) {
        struct fake_user users[5] = {0}, holder = {0};
        begin(&world, 1);
        struct testing_peer *peer = fake_echo(&world, A);
        struct pool_target *target = why ? cases_target(&world, &pool_pick_first, 1) : cases_unknown(&world, "db");
        testing_peer_delay(peer, why == 1 ? 0.05 : 0, 0); /* the link is not up yet */
        testing_peer_behave(peer, why == 2 ? TESTING_REFUSE : TESTING_ACCEPT);
        if (why == 3)
            fake_hold(&world, &holder, A);
        world.told = 0;
        for (int i = 0; i < 5; i++)
            cr_assert(eq(int, cases_wait(&world, &users[i], "db"), POOL_PENDING));
        expect_none_then_all(&world, users);
        if (!why)
            CASES_LIST(target, A);
        testing_peer_behave(peer, TESTING_ACCEPT);
        if (why == 3)
            fake_give_back(&holder);
        give_each_back(&world, users);
        fake_world_end(&world);
    }
}

Test(cases, T68_a_deadline_of_a_millisecond)
{
    struct fake_world world;
    struct fake_user user = {.lease.timeout = 0.001};

    cases_open(&world);
    cases_unknown(&world, "db");
    double from = testing_now(world.t);
    fake_ask(&world, &user, "db");
    fake_run(&world, 1);
    cr_assert(eq(int, user.status, LINKPOOL_ETIMEDOUT));
    cr_assert(epsilon_eq(dbl, user.told_at - from, 0.001, 1e-9));
    fake_world_end(&world);
}

Test(cases, T69_who_waits_as_the_pool_ends_is_told_that_it_does)
{
    struct fake_world world;
    struct fake_user user = {0};
    char text[200];

    cases_open(&world);
    cases_unknown(&world, "db");
    fake_ask(&world, &user, "db");
    fake_run(&world, 0.1);
    pool_free(world.pool);
    world.pool = NULL;
    cr_assert(eq(uint, user.done, 1));
    cr_assert(eq(int, user.status, LINKPOOL_ECLOSED));
    pool_explain(&user.lease, text, sizeof text);
    cr_assert(ne(ptr, strstr(text, "draining or gone"), NULL), "%s", text);
    fake_world_end(&world);
}

Test(cases, T70_one_fails_fast_and_one_waits_for_ready)
{
    struct fake_world world;
    struct fake_user fast = {0}, waits = {0};

    begin(&world, 1);
    struct testing_peer *peer = fake_peer(&world, A, TESTING_REFUSE);
    fake_ask(&world, &fast, A);
    cases_wait(&world, &waits, A);
    fake_run(&world, 0.01);
    cr_assert(eq(int, fast.status, LINKPOOL_EUNAVAILABLE));
    cr_assert(eq(int, waits.status, POOL_PENDING));
    testing_peer_behave(peer, TESTING_ACCEPT);
    fake_run(&world, 0.3);
    cr_assert(eq(int, waits.status, POOL_READY));
    fake_world_end(&world);
}

Test(cases, T71_over_the_line_the_call_itself_fails)
{
    struct fake_world world;
    struct fake_user first = {0}, second = {0};

    cases_begin(&world);
    world.host.max_links = world.options.max_line = 1;
    fake_world_open(&world);
    fake_echo(&world, A);
    cr_assert(eq(int, fake_ask(&world, &first, A), POOL_PENDING));
    cr_assert(eq(int, fake_ask(&world, &second, A), LINKPOOL_EFULL));
    cr_assert(eq(int, second.lease.bound, POOL_BOUND_LINE));
    cr_assert(eq(ptr, second.lease.channel, NULL));
    cr_assert(eq(uint, fake_stats(&world).waiting, 1));
    cr_assert(eq(u64, fake_stats(&world).full, 1));
    fake_settle(&world);
    cr_assert(eq(int, first.status, POOL_READY));
    cr_assert(eq(uint, second.done, 0));
    fake_world_end(&world);
}

Test(cases, T72_the_second_gets_the_same_link_when_it_is_given_back)
{
    struct fake_world world;
    struct fake_user first = {0}, second = {0};

    begin(&world, 1);
    fake_echo(&world, A);
    fake_hold(&world, &first, A);
    uint64_t link = cases_link_id(&first);
    cr_assert(eq(int, fake_ask(&world, &second, A), POOL_PENDING));
    fake_run(&world, 1);
    cr_assert(eq(uint, second.done, 0));
    cr_assert(eq(uint, fake_stats(&world).waiting, 1));
    fake_give_back(&first);
    fake_turn(&world);
    cr_assert(eq(int, second.status, POOL_READY));
    cr_assert(eq(u64, fake_stats(&world).acquired_waited, 2));
    cr_assert(eq(u64, fake_stats(&world).opened, 1));
    cr_assert(eq(u64, cases_link_id(&second), link));
    fake_world_end(&world);
}

Test(cases, T73_the_failure_is_told_with_its_reason)
{
    struct fake_world world;
    struct fake_user user = {0};
    char text[200];

    begin(&world, 1);
    struct testing_peer *peer = fake_peer(&world, A, TESTING_REFUSE);
    fake_ask(&world, &user, A);
    fake_settle(&world);
    cr_assert(eq(int, user.status, LINKPOOL_EUNAVAILABLE));
    pool_explain(&user.lease, text, sizeof text);
    cr_assert(eq(str, text, "every host is down, last: connection refused (errno 111)"));
    cr_assert(eq(u64, fake_stats(&world).failed_fast, 1));
    cr_assert(eq(int, user.lease.reason, LINK_REFUSED));
    cr_assert(eq(int, user.lease.system_errno, ECONNREFUSED));
    cr_assert(eq(u64, fake_host_stats(fake_host(&world, A)).failed, 1));
    fake_run(&world, 10);
    cr_assert(eq(uint, testing_peer_attempts(peer), 1)); /* and nothing rings after it */
    testing_peer_behave(peer, TESTING_BLACK_HOLE);
    fake_ask(&world, &user, A);
    fake_settle(&world);
    pool_host_drain(fake_host(&world, A), 0); /* ended by ourselves */
    fake_settle(&world);
    cr_assert(lt(int, user.status, 0));
    cr_assert(eq(uint, user.done, 2));
    cr_assert(eq(uint, testing_open_descriptors(world.t), 0));
    fake_world_end(&world);
}

static void fail_together(const struct protocol *protocol)
{
    struct fake_world world;
    struct fake_user users[3] = {0}, after = {0};

    cases_begin(&world);
    cases_gaps(&world, 0.2, 2, 10);
    world.host.max_links = 1;
    world.host.protocol = protocol;
    fake_world_open(&world);
    struct testing_peer *peer = fake_peer(&world, A, TESTING_REFUSE);
    cases_ask(&world, users, 3, A);
    fake_settle(&world);
    for (unsigned i = 0; i < 3; i++) {
        cr_assert(eq(int, users[i].status, LINKPOOL_EUNAVAILABLE));
        cr_assert(eq(uint, users[i].place, i + 1));
    }
    testing_peer_behave(peer, TESTING_ACCEPT);
    testing_peer_serve(peer, testing_echo, NULL);
    fake_run(&world, 1);
    fake_hold(&world, &after, A);
    cr_assert(eq(uint, testing_peer_attempts(peer), 2));
    fake_world_end(&world);
}

Test(cases, T75_all_who_wait_for_one_link_fail_with_it_in_order)
{
    fail_together(&protocol_raw); /* two wait for it to come back */
    fail_together(&cases_shared); /* all would be on it */
}

Test(cases, T76_the_link_of_one_who_cancelled_becomes_idle)
{
    struct fake_world world;
    struct fake_user user = {0};

    begin(&world, 1);
    struct testing_peer *peer = fake_echo(&world, A);
    testing_peer_delay(peer, 0.1, 0);
    fake_ask(&world, &user, A);
    fake_run(&world, 0.05);
    cr_assert(eq(int, pool_cancel(&user.lease), 0));
    fake_run(&world, 1);
    cr_assert(eq(uint, user.done, 0));
    cr_assert(eq(uint, fake_stats(&world).idle, 1));
    cases_use(&world, A);
    cr_assert(eq(uint, testing_peer_attempts(peer), 1));
    fake_world_end(&world);
}

/* Ours has no such option: what nobody needs ends idle, within the bounds, and a drain of the host ends it at once. */
Test(cases, T77_a_connecting_link_nobody_needs_is_closed_by_a_drain)
{
    struct fake_world world;
    struct fake_user user = {0};

    begin(&world, 1);
    testing_peer_delay(fake_echo(&world, A), 0.1, 0);
    fake_ask(&world, &user, A);
    fake_run(&world, 0.05);
    cr_assert(eq(int, pool_cancel(&user.lease), 0));
    cr_assert(eq(uint, fake_stats(&world).connecting, 1));
    pool_host_drain(fake_host(&world, A), 10);
    fake_settle(&world);
    cr_assert(eq(uint, fake_stats(&world).links, 0));
    cr_assert(eq(uint, testing_open_descriptors(world.t), 0));
    fake_world_end(&world);
}

static struct fake_user *victims[2];
static int cancelled[2];

static void cancel_both(struct pool_lease *lease)
{
    (void)lease;
    for (int i = 0; i < 2; i++)
        cancelled[i] = pool_cancel(&victims[i]->lease);
}

Test(cases, T80_done_may_cancel_its_own_lease_and_another)
{
    struct fake_world world;
    struct fake_user self = {0}, other = {0};

    begin(&world, 2);
    fake_echo(&world, A);
    fake_ask(&world, &self, A);
    fake_ask(&world, &other, A);
    victims[0] = &self;
    victims[1] = &other;
    self.lease.done = cancel_both;
    fake_settle(&world);
    cr_assert(eq(int, cancelled[0], LINKPOOL_ESTATE)); /* it has its channel */
    cr_assert(ne(ptr, self.lease.channel, NULL));
    cr_assert(eq(int, cancelled[1], 0));
    cr_assert(eq(uint, other.done, 0));
    cr_assert(eq(uint, fake_stats(&world).leased, 1));
    cr_assert(eq(int, fake_ask(&world, &other, A), POOL_READY)); /* what it had won: nobody has used it */
    cr_assert(not(other.lease.reused));
    fake_world_end(&world);
}

Test(cases, T81_the_death_of_the_only_link_dials_another_for_who_waits)
{
    struct fake_world world;
    struct fake_user bound = {0}, waits = {0};
    char byte;

    begin(&world, 1);
    struct testing_peer *peer = fake_echo(&world, A);
    fake_hold(&world, &bound, A);
    fake_exchange(&world, &bound);
    fake_ask(&world, &waits, A);
    testing_peer_cut(peer, LINK_CLOSED_BY_PEER);
    fake_settle(&world);
    cr_assert(eq(long, channel_read(bound.lease.channel, &byte, 1), 0)); /* the end is its holder's to read */
    fake_give_back(&bound);
    fake_run(&world, 0.5);
    cr_assert(eq(int, waits.status, POOL_READY));
    cr_assert(eq(uint, testing_peer_accepted(peer), 2));
    fake_world_end(&world);
}

static int no_room(struct protocol_link *pl)
{
    static unsigned attempts;

    if (!attempts++ && protocol_set_room(pl, 0))
        return LINKPOOL_ELOST;
    return protocol_ready(pl);
}

Test(cases, T82_a_link_without_room_serves_nobody_and_another_is_dialled)
{
    struct protocol full = cases_shared;
    struct fake_world world;
    struct fake_user user = {0};
    struct link_stats stats;
    unsigned busy = 0;

    cases_begin(&world);
    full.start = no_room;
    world.host.protocol = &full;
    fake_world_open(&world);
    struct testing_peer *peer = fake_echo(&world, A);
    fake_ask(&world, &user, A);
    fake_settle(&world);
    cr_assert(eq(uint, testing_peer_accepted(peer), 2));
    cr_assert(eq(int, user.status, POOL_READY));
    cr_assert(eq(uint, fake_host_stats(user.lease.host).links[LINK_READY], 2));
    for (const struct link *link = NULL; (link = pool_host_next_link(user.lease.host, link));) {
        link_stats(link, &stats, sizeof stats);
        busy += !stats.free && !stats.channels;
    }
    cr_assert(eq(uint, busy, 1)); /* it has nobody, and takes nobody */
    fake_world_end(&world);
}

/* Ours has no bound on requests but the links' room: who is over it waits in line, and says so at its deadline. */
Test(cases, T83_with_room_for_one_one_of_three_is_served)
{
    struct fake_world world;
    struct fake_user users[3] = {0};

    cases_begin(&world);
    world.host.protocol = &cases_shared; /* it would carry a hundred */
    world.host.max_links = world.host.max_channels = 1;
    fake_world_open(&world);
    fake_echo(&world, A);
    cases_ask(&world, users, 3, A);
    fake_settle(&world);
    cr_assert(eq(int, users[0].status, POOL_READY));
    cr_assert(eq(uint, cases_count(users, 3, POOL_PENDING), 2));
    fake_run(&world, 5.1);
    cr_assert(eq(uint, cases_count(users, 3, LINKPOOL_ETIMEDOUT), 2));
    cr_assert(eq(int, users[2].lease.stage, POOL_STAGE_LINE));
    fake_world_end(&world);
}
