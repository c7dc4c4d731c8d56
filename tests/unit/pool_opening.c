/* pool_opening.c - which links are opened, how many at once, and whose place they take. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <math.h>

#include "tests/fakes/shared.h"
#include "tests/fakes/world.h"

static const char a[] = "10.0.0.1:80", b[] = "10.0.0.2:80", c[] = "10.0.0.3:80";
static const char *const three[] = {a, b, c};

static void ask_many(struct fake_world *world, struct fake_user *users, int n, const char *text)
{
    for (int i = 0; i < n; i++)
        cr_assert(eq(int, fake_ask(world, &users[i], text), POOL_PENDING));
}

static void end_all(struct fake_user *users, int n)
{
    for (int i = 0; i < n; i++)
        cr_assert(eq(int, pool_release(&users[i].lease, POOL_DISCARD), 0));
}

/* ---- the limit of a host ---- */

Test(pool_opening, a_host_opens_eight_at_once_to_begin_with)
{
    struct fake_user users[20] = {0};
    struct fake_world world;

    fake_world_begin(&world);
    fake_world_open(&world);
    struct testing_peer *peer = fake_peer(&world, a, TESTING_BLACK_HOLE);
    ask_many(&world, users, 20, a);
    fake_run(&world, 2);
    cr_assert(eq(uint, testing_peer_attempts(peer), 8));
    cr_assert(eq(uint, fake_stats(&world).connecting, 8));
    fake_world_end(&world);
}

Test(pool_opening, the_limit_gains_one_a_limits_worth_of_successes_up_to_its_maximum)
{
    static const unsigned expected[] = {2, 3, 4, 4, 4};
    struct fake_user users[4] = {0};
    struct fake_world world;

    fake_world_begin(&world);
    world.host.first_connecting = 1;
    world.host.max_connecting = 4;
    fake_world_open(&world);
    fake_echo(&world, a);
    for (int i = 0; i < 5; i++) {
        int n = i < 3 ? i + 1 : 4;
        ask_many(&world, users, n, a);
        fake_settle(&world);
        end_all(users, n);
        cr_assert(eq(uint, fake_host_stats(fake_host(&world, a)).connect_limit, expected[i]));
    }
    fake_world_end(&world);
}

Test(pool_opening, a_wave_of_time_outs_halves_the_limit_once_and_never_to_none)
{
    static const unsigned expected[] = {4, 2, 1, 1};
    struct fake_world world;

    fake_world_begin(&world);
    fake_world_open(&world);
    struct testing_peer *peer = fake_peer(&world, a, TESTING_ACCEPT);
    for (int wave = 0; wave < 4; wave++) {
        struct fake_user users[8] = {0}, once = {0};
        testing_peer_behave(peer, TESTING_ACCEPT);
        fake_hold(&world, &once, a); /* it is not failing: what follows are no probes */
        pool_release(&once.lease, POOL_DISCARD);
        testing_peer_behave(peer, TESTING_BLACK_HOLE);
        for (int i = 0; i < 8; i++) { /* those that are opened time out from 3 to 5.8 */
            fake_ask(&world, &users[i], a);
            fake_run(&world, 0.4);
        }
        fake_run(&world, 10);
        cr_assert(eq(uint, fake_host_stats(fake_host(&world, a)).connect_limit, expected[wave]));
        fake_run(&world, 200); /* over quiet times it stays as it is */
        cr_assert(eq(uint, fake_host_stats(fake_host(&world, a)).connect_limit, expected[wave]));
    }
    fake_world_end(&world);
}

Test(pool_opening, the_time_out_of_a_probe_halves_nothing)
{
    struct fake_user users[8] = {0};
    struct fake_world world;

    fake_world_begin(&world);
    fake_world_open(&world);
    struct testing_peer *peer = fake_peer(&world, a, TESTING_BLACK_HOLE);
    for (int i = 0; i < 8; i++) {
        users[i].lease = (struct pool_lease){.flags = POOL_WAIT_FOR_READY, .timeout = INFINITY};
        fake_ask(&world, &users[i], a);
    }
    fake_run(&world, 60);
    cr_assert(lt(uint, 15, testing_peer_attempts(peer))); /* eight at once, then one probe after the other */
    cr_assert(eq(uint, fake_host_stats(fake_host(&world, a)).connect_limit, 4));
    fake_world_end(&world);
}

/* A host of one attempt at once to begin with, 20 links READY and a limit of 6. */
static struct testing_peer *learn(struct fake_world *world, struct fake_user *users)
{
    fake_world_begin(world);
    world->host.first_connecting = 1;
    fake_world_open(world);
    struct testing_peer *peer = fake_echo(world, a);
    ask_many(world, users, 20, a);
    fake_run(world, 11);
    cr_assert(eq(uint, fake_host_stats(fake_host(world, a)).connect_limit, 6)); /* 1 + 2 + 3 + 4 + 5 <= 20 */
    return peer;
}

Test(pool_opening, a_host_that_has_lost_its_last_link_begins_with_few_attempts_again)
{
    struct fake_user users[20] = {0}, others[8] = {0};
    struct fake_world world;

    struct testing_peer *peer = learn(&world, users);
    struct pool_host *host = fake_host(&world, a);
    testing_conn_cut(testing_peer_conn(peer, 0), LINK_RESET);
    pool_release(&users[0].lease, POOL_DISCARD);
    fake_settle(&world);
    cr_assert(eq(uint, fake_host_stats(host).connect_limit, 6)); /* the others are there */
    testing_peer_cut(peer, LINK_RESET);
    for (int i = 1; i < 20; i++) { /* each meets the end, which makes it none of ours */
        char byte;
        channel_read(users[i].lease.channel, &byte, 1);
        pool_release(&users[i].lease, POOL_DISCARD);
    }
    fake_settle(&world);
    cr_assert(eq(uint, fake_host_stats(host).connect_limit, 1));
    fake_hold(&world, &others[0], a); /* one a success, to half of 6; */
    cr_assert(eq(uint, fake_host_stats(host).connect_limit, 2));
    fake_hold(&world, &others[1], a);
    cr_assert(eq(uint, fake_host_stats(host).connect_limit, 3));
    for (int i = 2; i < 4; i++)
        fake_hold(&world, &others[i], a);
    cr_assert(eq(uint, fake_host_stats(host).connect_limit, 3)); /* from there one a limit's worth */
    fake_hold(&world, &others[4], a);
    cr_assert(eq(uint, fake_host_stats(host).connect_limit, 4));
    fake_world_end(&world);
}

Test(pool_opening, a_host_that_fails_begins_with_few_attempts_again)
{
    struct fake_user users[20] = {0}, late = {0};
    struct fake_world world;

    struct testing_peer *peer = learn(&world, users);
    end_all(users, 20); /* by us: the limit stays */
    fake_settle(&world);
    cr_assert(eq(uint, fake_host_stats(fake_host(&world, a)).connect_limit, 6));
    testing_peer_behave(peer, TESTING_REFUSE);
    fake_ask(&world, &late, a);
    fake_settle(&world);
    cr_assert(eq(int, late.status, LINKPOOL_EUNAVAILABLE));
    cr_assert(eq(uint, fake_host_stats(fake_host(&world, a)).connect_limit, 1));
    fake_world_end(&world);
}

/* ---- the limit of the pool ---- */

Test(pool_opening, the_pools_limit_is_shared_at_most_half_for_one_host)
{
    static const unsigned expected[][4] = {/* of the pool, of a host alone */ {1, 1}, {2, 1}, {3, 2}, {4, 2}, {5, 3}};

    for (int i = 0; i < 5; i++) {
        struct fake_user users[6] = {0}, others[6] = {0};
        struct fake_world world;
        fake_world_begin(&world);
        world.options.max_connecting = expected[i][0];
        fake_world_open(&world);
        struct testing_peer *peer = fake_peer(&world, a, TESTING_BLACK_HOLE);
        fake_peer(&world, b, TESTING_BLACK_HOLE);
        ask_many(&world, users, 6, a);
        fake_run(&world, 1);
        cr_assert(eq(uint, testing_peer_attempts(peer), expected[i][1]));
        ask_many(&world, others, 6, b);
        fake_run(&world, 1);
        cr_assert(eq(uint, fake_stats(&world).connecting, expected[i][0]));
        fake_world_end(&world);
    }
}

Test(pool_opening, the_pools_limit_goes_from_host_to_host_in_turn)
{
    struct fake_user users[3][6] = {0};
    struct testing_peer *peers[3];
    struct fake_world world;

    fake_world_begin(&world);
    world.options.max_connecting = 6;
    fake_world_open(&world);
    for (int i = 0; i < 3; i++) {
        peers[i] = fake_peer(&world, three[i], TESTING_BLACK_HOLE);
        ask_many(&world, users[i], 6, three[i]);
    }
    fake_run(&world, 1);
    for (int i = 0; i < 3; i++)
        cr_assert(eq(uint, testing_peer_attempts(peers[i]), 2));
    fake_world_end(&world);
}

/* ---- for whom ---- */

Test(pool_opening, attempts_start_at_the_end_of_the_turn)
{
    struct fake_user user = {0};
    struct fake_world world;

    fake_world_begin(&world);
    fake_world_open(&world);
    fake_echo(&world, a);
    fake_ask(&world, &user, a);
    cr_assert(eq(u64, testing_calls(world.t, TESTING_SOCKET), 0));
    fake_turn(&world);
    cr_assert(eq(u64, testing_calls(world.t, TESTING_SOCKET), 1));
    fake_world_end(&world);
}

Test(pool_opening, an_attempt_counts_for_as_many_leases_as_the_hosts_room)
{
    static const unsigned expected[] = {0, 1, 1, 1, 2, 2, 2, 3};

    for (int n = 1; n <= 7; n++) {
        struct fake_user users[7] = {0};
        struct fake_world world;
        fake_world_begin(&world);
        world.host.protocol = &fake_shared; /* three channels a link */
        fake_world_open(&world);
        struct testing_peer *peer = fake_echo(&world, a);
        testing_peer_delay(peer, 0.1, 0);
        ask_many(&world, users, n, a);
        fake_run(&world, 0.05);
        cr_assert(eq(uint, testing_peer_attempts(peer), expected[n]));
        fake_run(&world, 1);
        cr_assert(eq(uint, world.told, (unsigned)n));
        cr_assert(eq(uint, testing_peer_attempts(peer), expected[n]));
        fake_world_end(&world);
    }
}

Test(pool_opening, no_attempt_is_opened_for_whom_another_will_serve)
{
    struct fake_user users[3] = {0};
    struct fake_world world;

    fake_world_begin(&world);
    fake_world_open(&world);
    struct testing_peer *peer = fake_echo(&world, a);
    testing_peer_delay(peer, 0.5, 0);
    fake_ask(&world, &users[0], a);
    fake_run(&world, 0.1);
    pool_cancel(&users[0].lease);
    fake_ask(&world, &users[1], a); /* takes the place of the first */
    fake_run(&world, 0.1);
    cr_assert(eq(uint, testing_peer_attempts(peer), 1));
    fake_ask(&world, &users[2], a);
    fake_run(&world, 0.1);
    cr_assert(eq(uint, testing_peer_attempts(peer), 2));
    fake_run(&world, 1);
    cr_assert(eq(uint, world.told, 2));
    fake_world_end(&world);
}

Test(pool_opening, a_waiter_takes_what_comes_first_and_the_attempt_ends_idle)
{
    struct fake_user holder = {0}, waiter = {0};
    struct fake_world world;

    fake_world_begin(&world);
    fake_world_open(&world);
    struct testing_peer *peer = fake_echo(&world, a);
    fake_hold(&world, &holder, a);
    testing_peer_delay(peer, 1, 0);
    fake_ask(&world, &waiter, a);
    fake_run(&world, 0.2);
    fake_give_back(&holder);
    fake_settle(&world);
    cr_assert(eq(int, waiter.status, POOL_READY));
    cr_assert(waiter.lease.reused);
    fake_run(&world, 2);
    cr_assert(eq(uint, fake_stats(&world).idle, 1));
    cr_assert(eq(uint, testing_peer_accepted(peer), 2));
    fake_world_end(&world);
}

Test(pool_opening, the_first_use_of_a_round_robin_target_opens_one_link_a_host)
{
    struct testing_peer *peers[3];
    struct fake_user user = {0};
    struct fake_world world;

    fake_world_begin(&world);
    fake_world_open(&world);
    for (int i = 0; i < 3; i++)
        peers[i] = fake_echo(&world, three[i]);
    fake_target(&world, "db", &pool_round_robin, three, 3);
    fake_hold(&world, &user, "db");
    fake_settle(&world);
    for (int i = 0; i < 3; i++)
        cr_assert(eq(uint, testing_peer_attempts(peers[i]), 1));
    fake_world_end(&world);
}

Test(pool_opening, an_attempt_for_what_is_kept_up_serves_the_lease_whose_own_has_failed)
{
    struct fake_user user = {.lease = {.timeout = INFINITY, .flags = POOL_WAIT_FOR_READY}};
    struct fake_world world;

    fake_world_begin(&world);
    fake_world_open(&world);
    fake_peer(&world, a, TESTING_REFUSE);
    struct testing_peer *slow = fake_echo(&world, b);
    testing_peer_delay(slow, 0.5, 0);
    fake_target(&world, "db", &pool_round_robin, three, 2);
    cr_assert(eq(int, fake_ask(&world, &user, "db"), POOL_PENDING));
    fake_run(&world, 0.6);
    cr_assert(ne(ptr, user.lease.channel, NULL));
    cr_assert(eq(uint, testing_peer_attempts(slow), 1));
    fake_give_back(&user);
    fake_world_end(&world);
}

Test(pool_opening, an_attempt_for_what_is_kept_up_serves_the_first_lease_of_its_host)
{
    struct fake_user users[2] = {0};
    struct fake_world world;

    fake_world_begin(&world);
    world.host.min_links = 1;
    fake_world_open(&world);
    struct testing_peer *slow = fake_echo(&world, a);
    testing_peer_delay(slow, 0.5, 0);
    cr_assert(ne(ptr, pool_host(world.pool, a), NULL));
    fake_run(&world, 0.1);
    cr_assert(eq(int, fake_ask(&world, &users[0], a), POOL_PENDING));
    fake_run(&world, 0.1);
    cr_assert(eq(uint, testing_peer_attempts(slow), 1));
    cr_assert(eq(int, fake_ask(&world, &users[1], a), POOL_PENDING));
    fake_run(&world, 0.1);
    cr_assert(eq(uint, testing_peer_attempts(slow), 2)); /* the second needs one of its own */
    fake_run(&world, 1);
    cr_assert(eq(uint, world.told, 2));
    fake_world_end(&world);
}

/* An attempt ahead of use, on a host whose link the picker would not take, serves no lease of its target. */
Test(pool_opening, upkeep_elsewhere_does_not_stand_for_the_link_that_is_waited_for)
{
    struct fake_user user = {0};
    struct fake_world world;

    fake_world_begin(&world);
    world.host.min_links = 1;
    fake_world_open(&world);
    fake_echo(&world, a);
    fake_peer(&world, b, TESTING_BLACK_HOLE);
    fake_target(&world, "db", &pool_pick_first, three, 2);
    fake_run(&world, 1);
    fake_hold(&world, &user, "db"); /* the link that is kept up on the first */
    struct fake_user second = {0};
    cr_assert(eq(int, fake_ask(&world, &second, "db"), POOL_PENDING));
    fake_settle(&world);
    cr_assert(eq(int, second.status, POOL_READY));
    fake_world_end(&world);
}

Test(pool_opening, without_memory_for_a_link_those_it_was_for_fail)
{
    struct fake_user users[2] = {0}, other = {0}, next = {0};
    struct fake_world world;

    fake_world_begin(&world);
    fake_world_open(&world);
    fake_echo(&world, a);
    fake_hold(&world, &other, a);
    pool_release(&other.lease, POOL_DISCARD);
    ask_many(&world, users, 2, a);
    testing_fail_allocation(world.t, 1, true);
    fake_settle(&world);
    for (int i = 0; i < 2; i++)
        cr_assert(eq(int, users[i].status, LINKPOOL_ENOMEM));
    testing_fail_allocation(world.t, 0, false);
    cr_assert(eq(int, fake_ask(&world, &next, a), POOL_PENDING)); /* the host is none the worse for it */
    fake_settle(&world);
    cr_assert(eq(int, next.status, POOL_READY));
    fake_world_end(&world);
}

/* ---- making room ---- */

Test(pool_opening, the_coldest_idle_link_of_another_host_makes_room)
{
    struct fake_user users[3] = {0}, asker = {0};
    struct testing_peer *peers[3];
    struct fake_world world;

    fake_world_begin(&world);
    world.options.max_links = 3;
    fake_world_open(&world);
    for (int i = 0; i < 3; i++)
        peers[i] = fake_echo(&world, three[i]);
    fake_hold(&world, &users[0], a);
    fake_hold(&world, &users[1], b);
    fake_hold(&world, &users[2], a);
    fake_give_back(&users[1]); /* the coldest: b's */
    fake_run(&world, 1);
    fake_give_back(&users[0]);
    fake_run(&world, 1);
    fake_give_back(&users[2]);
    fake_run(&world, 1);
    fake_hold(&world, &asker, c);
    cr_assert(eq(uint, testing_peer_open(peers[0]), 2));
    cr_assert(eq(uint, testing_peer_open(peers[1]), 0));
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_MADE_ROOM], 1));
    cr_assert(eq(uint, fake_stats(&world).links, 3));
    fake_give_back(&asker);
    fake_hold(&world, &asker, b); /* now a's older one */
    cr_assert(eq(uint, testing_peer_open(peers[0]), 1));
    cr_assert(eq(uint, testing_peer_open(peers[2]), 1));
    fake_world_end(&world);
}

Test(pool_opening, a_link_used_since_is_not_the_coldest)
{
    struct fake_user users[2] = {0}, asker = {0};
    struct testing_peer *peers[3];
    struct fake_world world;

    fake_world_begin(&world);
    world.options.max_links = 2;
    fake_world_open(&world);
    for (int i = 0; i < 3; i++)
        peers[i] = fake_echo(&world, three[i]);
    for (int i = 0; i < 2; i++) {
        fake_hold(&world, &users[i], three[i]);
        fake_give_back(&users[i]);
        fake_run(&world, 1);
    }
    cr_assert(eq(int, fake_ask(&world, &users[0], a), POOL_READY));
    fake_give_back(&users[0]);
    fake_hold(&world, &asker, c);
    cr_assert(eq(uint, testing_peer_open(peers[0]), 1));
    cr_assert(eq(uint, testing_peer_open(peers[1]), 0));
    fake_world_end(&world);
}

static void begin_with_one_link(struct fake_world *world)
{
    fake_world_begin(world);
    world->options.max_links = 1;
    fake_world_open(world);
    fake_echo(world, a);
    fake_echo(world, b);
}

Test(pool_opening, a_returned_link_is_closed_for_an_older_waiter_of_another_host)
{
    struct fake_user holder = {0}, older = {0}, younger = {0};
    struct fake_world world;

    begin_with_one_link(&world);
    fake_hold(&world, &holder, a);
    fake_ask(&world, &older, b);
    fake_ask(&world, &younger, a);
    fake_run(&world, 0.1);
    fake_give_back(&holder);
    fake_settle(&world);
    cr_assert(eq(int, older.status, POOL_READY));
    cr_assert(eq(uint, younger.done, 0));
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_MADE_ROOM], 1));
    fake_give_back(&older);
    fake_settle(&world);
    cr_assert(eq(int, younger.status, POOL_READY));
    fake_world_end(&world);
}

Test(pool_opening, a_returned_link_stays_for_the_older_waiter_of_its_own_host)
{
    struct fake_user holder = {0}, older = {0}, younger = {0};
    struct fake_world world;

    begin_with_one_link(&world);
    fake_hold(&world, &holder, a);
    fake_ask(&world, &older, a);
    fake_ask(&world, &younger, b);
    fake_run(&world, 0.1);
    fake_give_back(&holder);
    fake_settle(&world);
    cr_assert(eq(int, older.status, POOL_READY));
    cr_assert(older.lease.reused);
    cr_assert(eq(uint, younger.done, 0));
    fake_world_end(&world);
}

Test(pool_opening, links_over_a_lowered_bound_end_when_they_are_given_back)
{
    struct fake_user users[3] = {0};
    struct fake_world world;

    fake_world_begin(&world);
    fake_world_open(&world);
    fake_echo(&world, a);
    for (int i = 0; i < 3; i++)
        fake_hold(&world, &users[i], a);
    world.options.max_links = 1;
    cr_assert(eq(int, pool_set_options(world.pool, &world.options), 0));
    fake_settle(&world);
    cr_assert(eq(uint, fake_stats(&world).links, 3)); /* none is taken from its holder */
    for (int i = 0; i < 3; i++)
        fake_give_back(&users[i]);
    cr_assert(eq(uint, fake_stats(&world).links, 1));
    fake_world_end(&world);
}

/* ---- no descriptors ---- */

Test(pool_opening, without_descriptors_the_coldest_idle_link_is_closed_and_the_attempt_made_again)
{
    struct fake_user users[2] = {0}, asker = {0};
    struct testing_peer *peers[2];
    struct fake_world world;

    fake_world_begin(&world);
    fake_world_open(&world);
    for (int i = 0; i < 2; i++)
        peers[i] = fake_echo(&world, three[i]);
    for (int i = 0; i < 2; i++)
        fake_hold(&world, &users[i], a);
    for (int i = 0; i < 2; i++)
        fake_give_back(&users[i]);
    testing_limit_descriptors(world.t, 2);
    double asked = testing_now(world.t);
    fake_ask(&world, &asker, b);
    fake_settle(&world);
    cr_assert(eq(int, asker.status, POOL_READY));
    cr_assert(epsilon_eq(dbl, asker.told_at - asked, 0, 1e-9)); /* no backoff: it was no fault of the host's */
    cr_assert(eq(uint, testing_peer_open(peers[0]), 1));
    cr_assert(eq(uint, fake_host_stats(asker.lease.host).failures, 0));
    fake_world_end(&world);
}

Test(pool_opening, without_descriptors_and_idle_links_it_fails_with_that_reason)
{
    struct fake_user holder = {0}, asker = {0};
    struct fake_world world;

    fake_world_begin(&world);
    fake_world_open(&world);
    fake_echo(&world, a);
    fake_echo(&world, b);
    fake_hold(&world, &holder, a);
    testing_limit_descriptors(world.t, 1);
    fake_ask(&world, &asker, b);
    fake_settle(&world);
    cr_assert(eq(int, asker.status, LINKPOOL_EUNAVAILABLE));
    cr_assert(eq(int, asker.lease.reason, LINK_NO_DESCRIPTORS));
    cr_assert(eq(int, asker.lease.system_errno, EMFILE));
    fake_world_end(&world);
}

Test(pool_opening, without_descriptors_what_is_only_kept_up_takes_nobodys)
{
    struct fake_user user = {0};
    struct testing_peer *peers[2];
    struct fake_world world;

    fake_world_begin(&world);
    world.host.min_links = 1;
    fake_world_open(&world);
    for (int i = 0; i < 2; i++)
        peers[i] = fake_echo(&world, three[i]);
    fake_hold(&world, &user, a);
    fake_give_back(&user);
    testing_limit_descriptors(world.t, 1);
    pool_host(world.pool, b);
    fake_run(&world, 10);
    cr_assert(eq(uint, testing_peer_open(peers[0]), 1));
    cr_assert(eq(uint, testing_peer_open(peers[1]), 0));
    cr_assert(ge(u64, fake_stats(&world).ends[LINK_NO_DESCRIPTORS], 2)); /* it was tried */
    fake_world_end(&world);
}

Test(pool_opening, want_of_descriptors_never_spins)
{
    struct fake_user holder = {0}, patient = {.lease = {.flags = POOL_WAIT_FOR_READY, .timeout = INFINITY}};
    struct fake_world world;

    fake_world_begin(&world);
    world.backoff.jitter = BACKOFF_NONE; /* .2 .4 .8 1.6 2 2 ... */
    fake_world_open(&world);
    fake_echo(&world, a);
    fake_echo(&world, b);
    fake_hold(&world, &holder, a);
    testing_limit_descriptors(world.t, 1);
    fake_ask(&world, &patient, b);
    fake_run(&world, 10);
    cr_assert(eq(u64, testing_calls(world.t, TESTING_SOCKET), 9)); /* 1, and 8 within 10 s */
    cr_assert(eq(uint, patient.done, 0));
    fake_give_back(&holder); /* its link is idle now, and gives its descriptor */
    fake_run(&world, 2.1);
    cr_assert(eq(int, patient.status, POOL_READY));
    fake_world_end(&world);
}

/* The attempt that is made again was the probe: its verdict ends with it, or no picker would name the host. */
Test(pool_opening, a_probe_without_a_descriptor_is_made_again_for_a_target_too)
{
    struct fake_user holder = {0}, patient = {.lease = {.flags = POOL_WAIT_FOR_READY, .timeout = INFINITY}};
    struct testing_peer *gone;
    struct fake_world world;

    fake_world_begin(&world);
    world.backoff.jitter = BACKOFF_NONE; /* .2 .4 .8 1.6 2 2 ... */
    world.host.idle_timeout = 3;         /* and for so long a target that was asked keeps its hosts up */
    fake_world_open(&world);
    fake_echo(&world, a);
    gone = fake_peer(&world, b, TESTING_REFUSE);
    fake_ask_target(&world, &patient, fake_target(&world, "db", &pool_round_robin, &three[1], 1));
    fake_run(&world, 5);
    cr_assert(eq(int, pool_host_state(fake_host(&world, b)), LINK_BACKOFF));
    fake_hold(&world, &holder, a);
    fake_give_back(&holder);
    testing_peer_behave(gone, TESTING_ACCEPT);
    testing_limit_descriptors(world.t, 1);
    fake_run(&world, 2.1);
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_NO_DESCRIPTORS], 1));
    cr_assert(eq(int, patient.status, POOL_READY));
    fake_world_end(&world);
}
