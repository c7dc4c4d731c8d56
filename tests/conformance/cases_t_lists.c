/* cases_t_lists.c - the cases T38 to T66: what becomes of links, states and turns as lists and servers come and go. */
#include "tests/conformance/cases.h"

static struct pool_target *begin(
    struct fake_world *world, struct testing_peer *peers[4], const struct pool_picker *picker, size_t n)
{
    cases_begin(world);
    cases_gaps(world, 0.2, 2, 10);
    fake_world_open(world);
    for (int i = 0; i < 4; i++)
        peers[i] = fake_echo(world, cases_abc[i]);
    return cases_target(world, picker, n);
}

static void kill_it(struct testing_peer *peer)
{
    testing_peer_behave(peer, TESTING_REFUSE);
    testing_peer_cut(peer, LINK_CLOSED_BY_PEER);
}

Test(cases, T38_a_list_without_its_server_drops_that_link)
{
    struct fake_world world;
    struct testing_peer *peers[4];
    struct pool_target *target = begin(&world, peers, &pool_pick_first, 1);

    cases_use(&world, "db");
    CASES_LIST(target, B);
    fake_settle(&world);
    cr_assert(eq(int, pool_target_state(target), LINK_IDLE));
    cr_assert(eq(uint, testing_peer_open(peers[0]), 0));
    cr_assert(eq(uint, testing_peer_attempts(peers[1]), 0));
    cases_use(&world, "db");
    cr_assert(eq(uint, testing_peer_accepted(peers[1]), 1));
    fake_world_end(&world);
}

Test(cases, T39_its_server_elsewhere_in_the_list_changes_nothing)
{
    struct fake_world world;
    struct testing_peer *peers[4];
    struct pool_target *target = begin(&world, peers, &pool_pick_first, 1);

    cases_use(&world, "db");
    CASES_LIST(target, B, C, A);
    fake_run(&world, 1);
    cr_assert(eq(str, (char *)cases_states(), "connecting ready"));
    cr_assert(eq(u64, fake_stats(&world).opened, 1));
    fake_world_end(&world);
}

/* Between the two lists ours rests: the second is dialled for a use. */
Test(cases, T41_another_list_is_dialled_anew_and_the_old_links_are_gone)
{
    struct fake_world world;
    struct testing_peer *peers[4];
    struct pool_target *target = begin(&world, peers, &pool_pick_first, 2);

    testing_peer_behave(peers[0], TESTING_REFUSE);
    testing_peer_behave(peers[2], TESTING_REFUSE);
    cases_use(&world, "db");
    CASES_LIST(target, C, D);
    cases_use(&world, "db");
    cr_assert(eq(str, (char *)cases_states(), "connecting ready idle connecting ready"));
    for (int i = 0; i < 4; i++)
        cr_assert(eq(uint, testing_peer_open(peers[i]), i == 3));
    fake_world_end(&world);
}

Test(cases, T42_a_list_that_keeps_its_server_makes_no_link)
{
    struct fake_world world;
    struct testing_peer *peers[4];
    struct pool_target *target = begin(&world, peers, &pool_pick_first, 2);

    testing_peer_behave(peers[0], TESTING_REFUSE);
    cases_use(&world, "db");
    CASES_LIST(target, C, B);
    CASES_LIST(target, C, B);
    fake_run(&world, 1);
    cr_assert(eq(str, (char *)cases_states(), "connecting ready"));
    cases_use(&world, "db");
    cr_assert(eq(u64, fake_stats(&world).opened, 2)); /* A's, that failed, and B's */
    cr_assert(eq(u64, testing_peer_bytes(peers[1]), 2));
    fake_world_end(&world);
}

static void use_after(size_t dies, size_t comes, unsigned accepted_by_first, unsigned attempts_at_second)
{
    struct fake_world world;
    struct testing_peer *peers[4];

    begin(&world, peers, &pool_pick_first, 2);
    testing_peer_behave(peers[0], dies == 0 ? TESTING_ACCEPT : TESTING_REFUSE);
    cases_use(&world, "db");
    fake_run(&world, 1);
    kill_it(peers[dies]);
    fake_run(&world, 1);
    testing_peer_behave(peers[comes], TESTING_ACCEPT);
    cases_use(&world, "db");
    cr_assert(eq(str, (char *)cases_states(), "connecting ready idle connecting ready"));
    cr_assert(eq(uint, testing_peer_accepted(peers[0]), accepted_by_first));
    cr_assert(eq(uint, testing_peer_attempts(peers[1]), attempts_at_second));
    fake_world_end(&world);
}

Test(cases, T43_the_first_is_used_again_after_its_restart)
{
    use_after(0, 0, 2, 0);
}

Test(cases, T44_after_the_second_died_it_begins_at_the_first_again)
{
    use_after(1, 0, 1, 1);
}

Test(cases, T45_an_empty_list_fails_until_the_next)
{
    struct fake_world world;
    struct testing_peer *peers[4];
    struct pool_target *target = begin(&world, peers, &pool_pick_first, 1);
    struct fake_user user = {0};

    cases_use(&world, "db");
    cases_update(target, NULL, 0);
    cr_assert(eq(int, pool_target_state(target), LINK_BACKOFF));
    CASES_LIST(target, A);
    fake_hold(&world, &user, "db");
    cr_assert(eq(str, (char *)cases_states(), "connecting ready backoff idle connecting ready"));
    fake_world_end(&world);
}

Test(cases, T49_an_address_named_twice_is_one_host)
{
    struct fake_world world;
    struct testing_peer *peers[4];
    struct pool_target *target = begin(&world, peers, &pool_round_robin, 1);

    CASES_LIST(target, A, A, B);
    pool_target_start(target);
    fake_run(&world, 0.1);
    cr_assert(eq(uint, testing_peer_attempts(peers[0]), 1));
    cr_assert(eq(uint, testing_peer_attempts(peers[1]), 1));
    cr_assert(eq(uint, fake_stats(&world).hosts, 2));
    for (int i = 0; i < 4; i++)
        cases_use(&world, "db"); /* and it has one turn of two */
    cr_assert(eq(u64, testing_peer_bytes(peers[0]), 2));
    cr_assert(eq(ptr, pool_target_host(target, 2), NULL));
    fake_world_end(&world);
}

Test(cases, T50_it_stays_failing_through_all_redials)
{
    struct fake_world world;
    struct fake_user user = {0};

    cases_begin(&world);
    cases_gaps(&world, 0.2, 1, 0.2);
    world.host.protocol = &fake_session;
    fake_world_open(&world);
    struct testing_peer *peer = fake_peer(&world, A, TESTING_ACCEPT_AND_CLOSE);
    cases_target(&world, &pool_pick_first, 1);
    cases_wait(&world, &user, "db");
    fake_run(&world, 2.1);
    cr_assert(ge(uint, testing_peer_attempts(peer), 10));
    cr_assert(eq(str, (char *)cases_states(), "connecting backoff"));
    fake_world_end(&world);
}

/* ---- round robin ---- */

Test(cases, T52_three_in_strict_turn)
{
    struct fake_world world;
    struct testing_peer *peers[4];
    struct pool_target *target = begin(&world, peers, &pool_round_robin, 3);

    pool_target_start(target);
    fake_run(&world, 0.1);
    for (unsigned i = 1; i <= 9; i++) {
        for (int k = 0; k < 3; k++)
            cases_use(&world, "db");
        for (int k = 0; k < 3; k++)
            cr_assert(eq(u64, testing_peer_bytes(peers[k]), i));
    }
    fake_world_end(&world);
}

Test(cases, T53_a_dead_one_between_takes_no_use)
{
    struct fake_world world;
    struct testing_peer *peers[4];

    begin(&world, peers, &pool_round_robin, 3);
    testing_peer_behave(peers[1], TESTING_REFUSE);
    for (int i = 0; i < 10; i++)
        cases_use(&world, "db");
    cr_assert(ge(u64, testing_peer_bytes(peers[0]), 4));
    cr_assert(ge(u64, testing_peer_bytes(peers[2]), 4));
    fake_world_end(&world);
}

Test(cases, T55_a_killed_one_gets_no_use_and_is_back_after_its_restart)
{
    struct fake_world world;
    struct testing_peer *peers[4];

    begin(&world, peers, &pool_round_robin, 3);
    for (int i = 0; i < 6; i++)
        cases_use(&world, "db");
    fake_run(&world, 1);
    kill_it(peers[1]);
    fake_settle(&world);
    uint64_t before = testing_peer_bytes(peers[1]);
    for (int i = 0; i < 12; i++)
        cases_use(&world, "db");
    cr_assert(eq(u64, testing_peer_bytes(peers[1]), before));
    testing_peer_behave(peers[1], TESTING_ACCEPT);
    fake_run(&world, 11); /* the list is as it was, and nobody asks */
    for (int i = 0; i < 3; i++)
        cases_use(&world, "db");
    cr_assert(eq(u64, testing_peer_bytes(peers[1]), before + 1));
    fake_world_end(&world);
}

Test(cases, T56_failing_it_stays_so_and_fails_at_once)
{
    struct fake_world world;
    struct testing_peer *peers[4];
    struct fake_user user = {0};

    begin(&world, peers, &pool_round_robin, 1);
    testing_peer_behave(peers[0], TESTING_REFUSE);
    cr_assert(not(cases_try(&world, "db")));
    for (int i = 0; i < 10; i++) {
        fake_run(&world, 1);
        cr_assert(eq(int, fake_ask(&world, &user, "db"), LINKPOOL_EUNAVAILABLE));
    }
    cr_assert(lt(uint, 3, testing_peer_attempts(peers[0])));
    cr_assert(eq(str, (char *)cases_states(), "connecting backoff"));
    fake_world_end(&world);
}

Test(cases, T57_the_error_is_that_of_the_latest_failure)
{
    for (int last = 0; last < 2; last++) {
        struct fake_world world;
        struct testing_peer *peers[4];
        struct fake_user user = {0}, late = {0};
        begin(&world, peers, &pool_round_robin, 2);
        testing_peer_behave(peers[0], TESTING_REFUSE);
        testing_peer_behave(peers[1], TESTING_NO_HOST);
        testing_peer_delay(peers[last], 0.1, 0);
        fake_ask(&world, &user, "db");
        fake_run(&world, 0.15);
        fake_ask(&world, &late, "db");
        cr_assert(eq(int, user.lease.reason, last ? LINK_UNREACHABLE : LINK_REFUSED));
        cr_assert(eq(int, user.lease.system_errno, last ? EHOSTUNREACH : ECONNREFUSED));
        cr_assert(eq(int, late.status, LINKPOOL_EUNAVAILABLE));
        cr_assert(eq(int, late.lease.reason, user.lease.reason));
        fake_world_end(&world);
    }
}

Test(cases, T58_all_down_at_the_start_and_then_one_comes_up)
{
    struct fake_world world;
    struct testing_peer *peers[4];

    begin(&world, peers, &pool_round_robin, 3);
    for (int i = 0; i < 3; i++)
        testing_peer_behave(peers[i], TESTING_REFUSE);
    cr_assert(not(cases_try(&world, "db")));
    testing_peer_behave(peers[1], TESTING_ACCEPT);
    fake_run(&world, 1);
    cases_use(&world, "db");
    cr_assert(eq(str, (char *)cases_states(), "connecting backoff ready"));
    fake_world_end(&world);
}

Test(cases, T63_lists_and_servers_that_come_and_go_under_round_robin)
{
    struct fake_world world;
    struct testing_peer *peers[4];
    struct pool_target *target = begin(&world, peers, &pool_round_robin, 3);
    struct fake_user user = {0};

    for (int i = 0; i < 3; i++)
        cases_use(&world, "db");
    fake_run(&world, 1);
    cases_update(target, NULL, 0);
    cr_assert(eq(int, fake_ask(&world, &user, "db"), LINKPOOL_EUNAVAILABLE));
    target = cases_unknown(&world, "later");
    cr_assert(eq(int, fake_ask(&world, &user, "later"), POOL_PENDING));
    fake_run(&world, 0.1);
    CASES_LIST(target, A, B);
    fake_settle(&world);
    cr_assert(eq(int, user.status, POOL_READY));
    fake_give_back(&user);
    for (int i = 0; i < 2; i++) {
        kill_it(peers[i]);
        fake_run(&world, 1);
        cr_assert(eq(int, cases_try(&world, "later"), i == 0)); /* the other serves, until it is dead as well */
    }
    fake_world_end(&world);
}

Test(cases, T64_no_use_fails_while_the_list_is_swapped)
{
    struct fake_world world;
    struct testing_peer *peers[4];
    struct pool_target *target = begin(&world, peers, &pool_pick_first, 1);
    struct fake_user under_way = {0};

    for (int i = 0; i < 50; i++) {
        fake_hold(&world, &under_way, "db");
        CASES_LIST(target, cases_abc[i % 2]);
        fake_exchange(&world, &under_way);
        fake_give_back(&under_way);
        cases_use(&world, "db");
    }
    cr_assert(eq(u64, testing_peer_bytes(peers[0]) + testing_peer_bytes(peers[1]), 100));
    fake_world_end(&world);
}

Test(cases, T66_without_upkeep_only_a_start_dials_again)
{
    struct fake_world world;
    struct testing_peer *peers[4];
    struct pool_target *target = begin(&world, peers, &pool_pick_first, 2);

    pool_target_start(target);
    fake_run(&world, 1);
    kill_it(peers[0]);
    testing_peer_behave(peers[1], TESTING_REFUSE);
    fake_run(&world, 10);
    cr_assert(eq(int, pool_target_state(target), LINK_IDLE));
    cr_assert(eq(u64, fake_stats(&world).opened, 1));
    pool_target_start(target);
    fake_run(&world, 0.01);
    cr_assert(eq(uint, testing_peer_attempts(peers[0]), 2));
    cr_assert(eq(int, fake_host_stats(pool_target_host(target, 0)).state, LINK_BACKOFF));
    fake_world_end(&world);
}
