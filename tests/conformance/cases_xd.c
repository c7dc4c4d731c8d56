/* cases_xd.c - the cases XD and XE: fairness, herds, nested use; counters, limits, double release. */
#include "tests/conformance/cases.h"

Test(cases, XD1_a_hundred_are_served_in_the_order_they_came)
{
    static struct fake_user users[100];
    struct fake_world world;

    cases_peer(&world, 1);
    cases_ask(&world, users, 100, A);
    for (unsigned i = 0; i < 100; i++) {
        fake_run(&world, 0.01);
        cr_assert(eq(uint, users[i].place, i + 1));
        fake_give_back(&users[i]);
    }
    fake_world_end(&world);
}

Test(cases, XD3_those_who_keep_coming_starve_nobody)
{
    static struct fake_user users[300];
    struct fake_world world;

    cases_peer(&world, 1);
    cases_ask(&world, users, 10, A);
    for (unsigned i = 0; i < 290; i++) {
        fake_run(&world, 0.01);
        fake_ask(&world, &users[10 + i], A); /* one comes as one goes */
        fake_give_back(&users[i]);
        cr_assert(eq(uint, users[i].place, i + 1));
    }
    fake_world_end(&world);
}

Test(cases, XD4_two_hosts_share_the_pools_total_evenly)
{
    static struct fake_user users[2][220];
    struct fake_world world;
    unsigned served[2] = {0};

    cases_begin(&world);
    world.options.max_links = 1;
    fake_world_open(&world);
    fake_echo(&world, A);
    fake_echo(&world, B);
    for (int i = 0; i < 200; i++) { /* endless demand for both, in turn */
        for (int k = 0; k < 2; k++) {
            users[k][i].lease.timeout = INFINITY;
            fake_ask(&world, &users[k][i], k ? B : A);
        }
    }
    for (int n = 0; n < 100; n++) {
        fake_run(&world, 0.01);
        int k = users[0][served[0]].lease.channel ? 0 : 1;
        cr_assert(ne(ptr, users[k][served[k]].lease.channel, NULL));
        fake_give_back(&users[k][served[k]++]);
        cr_assert(le(int, abs((int)served[0] - (int)served[1]), 1), "after %d", n);
    }
    fake_world_end(&world);
}

static unsigned handed;

static void give_on(struct pool_lease *lease)
{
    ((struct fake_user *)lease->data)->done++;
    handed++;
    pool_release(lease, POOL_REUSE);
}

Test(cases, XD6_a_release_hands_on_directly)
{
    static struct fake_user users[50];
    struct fake_world world;

    cases_peer(&world, 1);
    cases_ask(&world, users, 50, A);
    for (int i = 0; i < 50; i++)
        users[i].lease.done = give_on;
    double from = testing_now(world.t);
    fake_settle(&world);
    cr_assert(eq(uint, handed, 50)); /* and no time has passed */
    cr_assert(lt(dbl, testing_now(world.t) - from, 1e-5));
    fake_world_end(&world);
}

/* What each of them waits for says who is asked: in line, of a host that has all its links out. */
Test(cases, XD7_those_who_hold_one_and_want_another_are_freed_by_the_deadline)
{
    struct fake_world world;
    struct fake_user first[4] = {0}, second[4] = {0};
    char text[300];

    cases_peer(&world, 4);
    cases_ask(&world, first, 4, A);
    fake_settle(&world);
    cases_ask(&world, second, 4, A);
    fake_run(&world, 1);
    pool_explain(&second[0].lease, text, sizeof text);
    cr_assert(ne(ptr, strstr(text, "in line"), NULL), "%s", text);
    cr_assert(ne(ptr, strstr(text, "4 of 4 links, 4 leased"), NULL), "%s", text);
    fake_run(&world, 4.1);
    cr_assert(eq(uint, cases_count(second, 4, LINKPOOL_ETIMEDOUT), 4));
    cr_assert(eq(int, second[0].lease.stage, POOL_STAGE_LINE));
    fake_world_end(&world);
}

static void expect_most_connecting(unsigned first, unsigned max, unsigned most)
{
    static struct fake_user users[1000];
    struct fake_world world;

    cases_begin(&world);
    world.host.max_links = 1000;
    world.host.first_connecting = first;
    world.host.max_connecting = max;
    fake_world_open(&world);
    testing_peer_delay(fake_echo(&world, A), 0.01, 0);
    memset(users, 0, sizeof users);
    cases_ask(&world, users, 1000, A);
    unsigned peak = 0;
    for (int i = 0; i < 4000 && fake_stats(&world).waiting; i++) {
        fake_run(&world, 0.001);
        peak = fake_stats(&world).connecting > peak ? fake_stats(&world).connecting : peak;
    }
    cr_assert(eq(uint, cases_count(users, 1000, POOL_READY), 1000));
    cr_assert(eq(uint, peak, most));
    fake_world_end(&world);
}

Test(cases, XD8_a_thousand_at_once_open_no_more_than_is_allowed)
{
    expect_most_connecting(16, 16, 16);
    expect_most_connecting(500, 500, 128); /* half of the pool's 256 */
}

Test(cases, XD10_a_cold_start_opens_several_at_once_as_many_as_is_said)
{
    struct fake_world world;
    static struct fake_user users[100];

    cr_assert(lt(uint, 1, (fake_world_begin(&world), world.host.first_connecting)));
    testing_free(world.t);
    for (unsigned n = 1; n <= 100; n *= 10) {
        cases_begin(&world);
        world.host.max_links = 100;
        world.host.first_connecting = world.host.max_connecting = n;
        fake_world_open(&world);
        testing_peer_delay(fake_echo(&world, A), 0.02, 0);
        memset(users, 0, sizeof users);
        cases_ask(&world, users, 100, A);
        fake_run(&world, 0.01);
        cr_assert(eq(uint, fake_stats(&world).connecting, n));
        fake_world_end(&world);
    }
}

/* When, of a pool that is made at 0, the first of 100 that are kept up is dialled; in a target, or pinned. */
static double first_dial(uint64_t seed, bool by_target)
{
    struct fake_world world;

    fake_world_begin_with(&world, seed);
    world.host.min_links = world.host.max_links = 100;
    fake_world_open(&world);
    struct testing_peer *peer = fake_echo(&world, A);
    testing_peer_delay(peer, 0.1, 0);
    double from = testing_now(world.t);
    if (by_target)
        cases_target(&world, &pool_pick_first, 1);
    else
        pool_host(world.pool, A);
    for (int i = 0; i < 300 && !testing_peer_attempts(peer); i++)
        fake_run(&world, 0.001);
    cr_assert(eq(uint, fake_stats(&world).connecting, 8)); /* and the others are paced by the limit of opening */
    fake_run(&world, 2);
    cr_assert(eq(uint, fake_stats(&world).idle, 100));
    double at = testing_peer_attempt_at(peer, 0) - from;
    fake_world_end(&world);
    return at;
}

Test(cases, XD11_what_is_kept_up_begins_after_a_draw_and_is_paced)
{
    unsigned fifths[5] = {0};

    for (uint64_t seed = 1; seed <= 100; seed++) {
        double at = first_dial(seed, seed % 2);
        cr_assert(lt(dbl, at, 0.25)); /* reconnect_spread */
        fifths[(int)(at / 0.05)]++;
    }
    for (int i = 0; i < 5; i++)
        cr_assert(ge(uint, fifths[i], 8), "fifth %d: %u of 100", i, fifths[i]);
}

Test(cases, XD11_nobody_who_waits_waits_for_the_draw)
{
    struct fake_world world;
    struct fake_user user = {0};

    cases_begin(&world);
    world.host.min_links = 1;
    world.backoff.reconnect_spread = 10;
    fake_world_open(&world);
    struct testing_peer *peer = fake_echo(&world, A);
    pool_host(world.pool, A);
    fake_run(&world, 0.001);
    cr_assert(eq(uint, testing_peer_attempts(peer), 0));
    fake_ask(&world, &user, A);
    fake_settle(&world);
    cr_assert(eq(int, user.status, POOL_READY));
    fake_world_end(&world);
}

Test(cases, XD12_a_return_wakes_one_whether_the_pool_was_empty_or_not)
{
    struct fake_world world;
    struct fake_user holders[2] = {0}, users[10] = {0};

    cases_peer(&world, 2);
    cases_ask(&world, holders, 2, A);
    fake_settle(&world);
    cases_ask(&world, users, 10, A);
    for (unsigned i = 0; i < 2; i++) { /* both come back in one turn: two are told, no more */
        fake_give_back(&holders[i]);
    }
    fake_settle(&world);
    cr_assert(eq(uint, cases_count(users, 10, POOL_READY), 2));
    fake_give_back(&users[1]);
    fake_settle(&world);
    cr_assert(eq(uint, world.told, 2 + 3));
    fake_world_end(&world);
}

/* ---- counters ---- */

static void expect_counts(const struct fake_world *world)
{
    struct pool_stats pool = fake_stats(world);
    unsigned links = 0, idle = 0, leased = 0, waiting = 0;

    for (struct pool_host *host = NULL; (host = pool_next_host(world->pool, host));) {
        struct pool_host_stats stats = fake_host_stats(host);
        unsigned counted[LINK_STATES] = {0};
        for (const struct link *link = NULL; (link = pool_host_next_link(host, link));)
            counted[link_state(link)]++;
        for (int state = 0; state < LINK_STATES; state++) {
            cr_assert(eq(uint, counted[state], stats.links[state]), "%s", link_state_name(state));
            links += state == LINK_BACKOFF || state == LINK_OFFLINE || state == LINK_IDLE ? 0 : stats.links[state];
        }
        idle += stats.idle;
        leased += stats.leased;
        waiting += stats.waiting;
    }
    cr_assert(eq(uint, pool.links, links));
    cr_assert(eq(uint, pool.idle, idle));
    cr_assert(eq(uint, pool.leased, leased));
    cr_assert(eq(uint, pool.waiting, waiting));
    cr_assert(eq(uint, testing_open_descriptors(world->t), links));
}

/* One random step of one of n users on two addresses. */
static void random_step(struct fake_world *world, struct testing_peer *peers[2], struct fake_user *users, unsigned n)
{
    struct fake_user *user = &users[testing_random(world->t) % n];
    static const enum testing_behaviour behaviours[] = {
        TESTING_ACCEPT, TESTING_ACCEPT, TESTING_REFUSE, TESTING_ACCEPT_AND_CLOSE, TESTING_ACCEPT_AND_RESET};
    uint64_t what = testing_random(world->t) % 16;

    if (what == 0)
        testing_peer_behave(peers[testing_random(world->t) % 2], behaviours[testing_random(world->t) % 5]);
    else if (what == 1)
        testing_peer_cut(
            peers[testing_random(world->t) % 2], testing_random(world->t) % 2 ? LINK_RESET : LINK_CLOSED_BY_PEER);
    else if (what < 6)
        fake_run(world, (double)(testing_random(world->t) % 1000) / 1000);
    else if (user->lease.channel)
        pool_release(&user->lease, what % 4 ? POOL_REUSE : POOL_DISCARD);
    else if (!pool_cancel(&user->lease) && what % 2)
        user->status = POOL_READY; /* of no use any more: it waits no longer */
    else
        fake_ask(world, user, testing_random(world->t) % 2 ? A : B);
}

static void play(struct fake_world *world, unsigned steps, void (*after)(struct fake_world *, struct fake_user *))
{
    static struct fake_user users[20];
    struct testing_peer *peers[2];

    cases_begin(world);
    world->host.max_links = 4;
    world->options.max_links = 6;
    world->options.max_line = 8;
    fake_world_open(world);
    peers[0] = fake_echo(world, A);
    peers[1] = fake_echo(world, B);
    testing_peer_delay(peers[1], 0.2, 0); /* so that attempts are seen under way */
    for (unsigned i = 0; i < steps; i++) {
        random_step(world, peers, users, 20);
        after(world, users);
    }
    fake_world_end(world);
}

static void check_counts(struct fake_world *world, struct fake_user *users)
{
    (void)users;
    expect_counts(world);
}

Test(cases, XE1_after_each_step_the_sums_are_those_of_the_lists)
{
    struct fake_world world;

    play(&world, 20000, check_counts);
}

Test(cases, XE2_bounds_of_1_2_and_3_are_reached_and_never_passed)
{
    for (unsigned n = 1; n <= 3; n++) {
        struct fake_world world;
        struct fake_user users[6] = {0};
        cases_peer(&world, n);
        for (int round = 0; round < 20; round++) {
            cases_ask(&world, users, 6, A);
            fake_settle(&world);
            cr_assert(eq(uint, fake_stats(&world).links, n));
            cr_assert(eq(uint, cases_count(users, 6, POOL_READY), n));
            for (int i = 0; i < 6; i++)
                if (pool_cancel(&users[i].lease))
                    pool_release(&users[i].lease, i % 2 ? POOL_REUSE : POOL_DISCARD);
        }
        cases_ask(&world, users, n, A);
        fake_settle(&world);
        world.host.max_links = 1; /* lowered below use: nobody loses what it holds */
        cr_assert(eq(int, pool_host_set_options(fake_host(&world, A), &world.host), 0));
        fake_settle(&world);
        cr_assert(eq(uint, fake_stats(&world).leased, n));
        for (unsigned i = 0; i < n; i++)
            fake_give_back(&users[i]);
        cr_assert(eq(uint, fake_stats(&world).links, 1));
        fake_world_end(&world);
    }
}

static void check_places(struct fake_world *world, struct fake_user *users)
{
    unsigned held = 0, waiting = 0;

    fake_settle(world); /* until the winners have been told */
    for (int i = 0; i < 20; i++) {
        held += users[i].lease.channel != NULL;
        waiting += users[i].status == POOL_PENDING;
    }
    cr_assert(eq(uint, fake_stats(world).leased, held));
    cr_assert(eq(uint, fake_stats(world).waiting, waiting));
    cr_assert(le(uint, fake_stats(world).links, 6));
}

Test(cases, XE3_every_way_to_fail_gives_its_place_back)
{
    struct fake_world world;

    play(&world, 20000, check_places);
}

Test(cases, XE4_failed_connects_leak_no_place_in_line_or_pool)
{
    struct fake_world world;
    struct fake_user users[8] = {0};

    struct testing_peer *peer = cases_peer(&world, 2);
    testing_peer_behave(peer, TESTING_REFUSE);
    for (int i = 0; i < 200; i++) {
        for (int k = 0; k < 8; k++)
            fake_ask(&world, &users[k], A);
        fake_run(&world, 0.1);
        cr_assert(eq(uint, fake_stats(&world).waiting, 0));
        cr_assert(eq(uint, fake_stats(&world).links, 0));
    }
    testing_peer_behave(peer, TESTING_ACCEPT);
    fake_run(&world, 11);
    for (int k = 0; k < 2; k++)
        fake_hold(&world, &users[k], A); /* both places are there */
    fake_world_end(&world);
}
