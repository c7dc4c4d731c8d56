/* cases_t_pick.c - the cases T19 to T50: pick_first, and lists that change under it. */
#include "tests/conformance/cases.h"

static struct pool_target *begin_with(
    struct fake_world *world, struct testing_peer *peers[4], const struct pool_picker *picker, size_t n)
{
    cases_begin(world);
    cases_gaps(world, 0.2, 2, 10);
    fake_world_open(world);
    for (int i = 0; i < 4; i++)
        peers[i] = fake_echo(world, cases_abc[i]);
    return cases_target(world, picker, n);
}

/* A world of four peers that echo, and "db" of the first n of them. */
static struct pool_target *begin(struct fake_world *world, struct testing_peer *peers[4], size_t n)
{
    return begin_with(world, peers, &pool_pick_first, n);
}

static void kill_it(struct testing_peer *peer)
{
    testing_peer_behave(peer, TESTING_REFUSE);
    testing_peer_cut(peer, LINK_CLOSED_BY_PEER);
}

/* READY for long enough that what follows says nothing against the host. */
static void come_up(struct fake_world *world, struct pool_target *target)
{
    pool_target_start(target);
    fake_run(world, 1);
    cr_assert(eq(int, pool_target_state(target), LINK_READY));
}

Test(cases, T19_all_uses_go_to_one_server)
{
    struct fake_world world;
    struct testing_peer *peers[4];

    begin(&world, peers, 3);
    for (int i = 0; i < 100; i++)
        cases_use(&world, "db");
    cr_assert(eq(u64, testing_peer_bytes(peers[0]), 100));
    cr_assert(eq(uint, testing_peer_attempts(peers[1]), 0));
    cr_assert(eq(uint, testing_peer_attempts(peers[2]), 0));
    fake_world_end(&world);
}

Test(cases, T20_a_host_that_is_ready_is_not_kept_by_a_dead_ones_backoff)
{
    struct fake_world world;
    struct testing_peer *peers[4];

    begin(&world, peers, 2);
    testing_peer_behave(peers[0], TESTING_BLACK_HOLE);
    cases_use(&world, B);
    testing_peer_behave(peers[0], TESTING_REFUSE);
    double from = testing_now(world.t);
    cases_use(&world, "db");
    cr_assert(lt(dbl, testing_now(world.t) - from, 0.1));
    cr_assert(eq(uint, testing_peer_accepted(peers[1]), 1)); /* shared with who came by address */
    fake_world_end(&world);
}

Test(cases, T21_links_are_shared_in_a_pool_and_not_between_pools)
{
    struct fake_world world;
    struct testing_peer *peers[4];
    struct fake_user user = {0};

    begin(&world, peers, 1);
    fake_target(&world, "other", &pool_pick_first, cases_abc, 1);
    cases_use(&world, "db");
    cases_use(&world, "other");
    cr_assert(eq(uint, testing_peer_accepted(peers[0]), 1));
    struct pool *first = world.pool;
    world.pool = pool_new_on(testing_driver(world.t), &world.options);
    fake_hold(&world, &user, A);
    cr_assert(eq(uint, testing_peer_accepted(peers[0]), 2));
    fake_give_back(&user);
    pool_free(first);
    fake_world_end(&world);
}

Test(cases, T22_an_empty_list_fails_and_each_later_one_recovers)
{
    struct fake_world world;
    struct testing_peer *peers[4];
    struct pool_target *target = begin(&world, peers, 1);
    struct fake_user user = {0};

    cases_use(&world, "db");
    cases_update(target, NULL, 0);
    cr_assert(eq(int, fake_ask(&world, &user, "db"), LINKPOOL_EUNAVAILABLE));
    CASES_LIST(target, B);
    cases_use(&world, "db");
    CASES_LIST(target, C);
    cases_use(&world, "db");
    for (int i = 0; i < 3; i++)
        cr_assert(eq(u64, testing_peer_bytes(peers[i]), 1));
    fake_world_end(&world);
}

Test(cases, T23_it_stays_where_it_is_when_another_comes_first_in_the_list)
{
    struct fake_world world;
    struct testing_peer *peers[4];
    struct pool_target *target = begin(&world, peers, 1);

    cases_use(&world, "db");
    CASES_LIST(target, B, A);
    for (int i = 0; i < 10; i++)
        cases_use(&world, "db");
    cr_assert(eq(u64, testing_peer_bytes(peers[0]), 11));
    cr_assert(eq(uint, testing_peer_attempts(peers[1]), 0));
    fake_world_end(&world);
}

Test(cases, T24_permutations_of_the_list_disturb_nobody)
{
    struct fake_world world;
    struct testing_peer *peers[4];
    struct pool_target *target = begin(&world, peers, 3);
    const char *list[] = {A, B, C};

    for (int i = 0; i < 1000; i++) {
        size_t a = testing_random(world.t) % 3, b = testing_random(world.t) % 3;
        const char *swap = list[a];
        list[a] = list[b];
        list[b] = swap;
        cases_update(target, list, 3);
        if (i % 10 == 0)
            cases_use(&world, "db");
    }
    cr_assert(eq(u64, fake_stats(&world).opened, 1));
    fake_world_end(&world);
}

Test(cases, T26_a_stopped_server_leaves_it_idle_without_an_attempt)
{
    struct fake_world world;
    struct testing_peer *peers[4];
    struct pool_target *target = begin(&world, peers, 1);

    come_up(&world, target);
    kill_it(peers[0]);
    fake_run(&world, 100);
    cr_assert(eq(str, (char *)cases_states(), "connecting ready idle"));
    cr_assert(eq(uint, testing_peer_attempts(peers[0]), 1));
    fake_world_end(&world);
}

Test(cases, T27_a_new_list_whose_server_is_pending_as_the_old_one_dies)
{
    struct fake_world world;
    struct testing_peer *peers[4];
    struct pool_target *target = begin(&world, peers, 1);
    struct fake_user old = {0}, user = {0};

    fake_hold(&world, &old, "db");
    testing_peer_delay(peers[1], 1, 0);
    CASES_LIST(target, B);
    cr_assert(eq(int, fake_ask(&world, &user, "db"), POOL_PENDING));
    fake_run(&world, 0.5);
    kill_it(peers[0]);
    fake_run(&world, 0.1);
    cr_assert(eq(int, pool_target_state(target), LINK_CONNECTING));
    fake_run(&world, 0.5);
    cr_assert(eq(int, pool_target_state(target), LINK_READY));
    cr_assert(eq(str, (char *)pool_host_address(user.lease.host), B));
    fake_world_end(&world);
}

Test(cases, T28_after_an_empty_list_a_good_one_dials_for_a_use_alone)
{
    struct fake_world world;
    struct testing_peer *peers[4];
    struct pool_target *target = begin(&world, peers, 1);

    come_up(&world, target);
    testing_peer_cut(peers[0], LINK_CLOSED_BY_PEER);
    fake_run(&world, 1);
    cr_assert(eq(int, pool_target_state(target), LINK_IDLE));
    cases_update(target, NULL, 0);
    CASES_LIST(target, B);
    fake_run(&world, 10);
    cr_assert(eq(int, pool_target_state(target), LINK_IDLE));
    cr_assert(eq(uint, testing_peer_attempts(peers[1]), 0));
    cases_use(&world, "db");
    cr_assert(eq(uint, testing_peer_attempts(peers[1]), 1));
    fake_world_end(&world);
}

Test(cases, T29_from_failure_to_ready_nothing_between_is_told)
{
    struct fake_world world;
    struct testing_peer *peers[4];
    struct fake_user user = {0};

    begin(&world, peers, 1);
    testing_peer_behave(peers[0], TESTING_REFUSE);
    cases_wait(&world, &user, "db");
    fake_run(&world, 0.1);
    testing_peer_behave(peers[0], TESTING_ACCEPT);
    testing_peer_delay(peers[0], 0.1, 0);
    fake_run(&world, 1);
    cr_assert(eq(int, user.status, POOL_READY));
    cr_assert(eq(str, (char *)cases_states(), "connecting backoff ready"));
    fake_world_end(&world);
}

Test(cases, T30_with_all_dead_all_fail_and_a_good_list_makes_the_next_succeed)
{
    struct fake_world world;
    struct testing_peer *peers[4];
    struct pool_target *target = begin(&world, peers, 2);
    struct fake_user users[10] = {0};

    testing_peer_behave(peers[0], TESTING_REFUSE);
    testing_peer_behave(peers[1], TESTING_REFUSE);
    cases_ask(&world, users, 10, "db");
    fake_settle(&world);
    cr_assert(eq(uint, cases_count(users, 10, LINKPOOL_EUNAVAILABLE), 10));
    CASES_LIST(target, C);
    cases_use(&world, "db");
    fake_world_end(&world);
}

Test(cases, T31_hosts_in_backoff_already_are_skipped)
{
    struct fake_world world;
    struct testing_peer *peers[4];
    struct fake_user users[2] = {0};

    begin(&world, peers, 3);
    for (int i = 0; i < 2; i++) {
        testing_peer_behave(peers[i], TESTING_REFUSE);
        cases_wait(&world, &users[i], cases_abc[i]);
    }
    fake_run(&world, 0.01);
    double from = testing_now(world.t);
    cases_use(&world, "db");
    cr_assert(lt(dbl, testing_peer_attempt_at(peers[2], 0) - from, 1e-3));
    cr_assert(eq(uint, testing_peer_attempts(peers[0]), 1));
    cr_assert(eq(uint, testing_peer_attempts(peers[1]), 1));
    fake_world_end(&world);
}

Test(cases, T32_with_all_in_backoff_nothing_is_dialled)
{
    struct fake_world world;
    struct testing_peer *peers[4];
    struct pool_target *target = begin(&world, peers, 2);
    struct fake_user users[2] = {0}, late = {0};

    for (int i = 0; i < 2; i++) {
        testing_peer_behave(peers[i], TESTING_REFUSE);
        cases_wait(&world, &users[i], cases_abc[i]);
    }
    fake_run(&world, 0.01);
    cr_assert(eq(int, pool_target_state(target), LINK_BACKOFF));
    cr_assert(eq(int, fake_ask(&world, &late, "db"), LINKPOOL_EUNAVAILABLE));
    fake_settle(&world);
    cr_assert(eq(u64, fake_stats(&world).opened, 2));
    fake_world_end(&world);
}

Test(cases, T34_no_failure_is_told_while_another_is_connecting)
{
    struct fake_world world;
    struct testing_peer *peers[4];
    struct pool_target *target = begin_with(&world, peers, &pool_round_robin, 2);
    struct fake_user user = {0};

    testing_peer_behave(peers[0], TESTING_REFUSE);
    testing_peer_behave(peers[1], TESTING_REFUSE);
    testing_peer_delay(peers[0], 0.1, 0);
    fake_ask(&world, &user, "db");
    fake_run(&world, 0.09);
    cr_assert(eq(uint, cases_seen(LINK_BACKOFF), 1));
    cr_assert(eq(str, (char *)cases_states(), "connecting"));
    cr_assert(eq(int, user.status, POOL_PENDING));
    fake_run(&world, 0.02);
    cr_assert(eq(int, pool_target_state(target), LINK_BACKOFF));
    cr_assert(eq(int, user.status, LINKPOOL_EUNAVAILABLE));
    fake_world_end(&world);
}

Test(cases, T35_each_address_redials_on_its_own_backoff)
{
    struct fake_world world;
    struct testing_peer *peers[4];
    struct pool_target *target = begin_with(&world, peers, &pool_round_robin, 3);

    for (int i = 0; i < 3; i++) {
        testing_peer_behave(peers[i], TESTING_REFUSE);
        testing_peer_delay(peers[i], 0.01 * i, 0);
    }
    pool_target_start(target);
    fake_run(&world, 1.5);
    for (int i = 0; i < 3; i++) {
        cr_assert(eq(uint, testing_peer_attempts(peers[i]), 4)); /* after 0.2, 0.4, 0.8 */
        double gap = testing_peer_attempt_at(peers[i], 1) - testing_peer_attempt_at(peers[i], 0);
        cr_assert(epsilon_eq(dbl, gap, 0.2 + 0.01 * i, 1e-4));
    }
    cr_assert(eq(str, (char *)cases_states(), "connecting backoff"));
    fake_world_end(&world);
}

Test(cases, T36_the_first_is_tried_again_while_the_second_is_connecting)
{
    struct fake_world world;
    struct testing_peer *peers[4];
    struct pool_target *target = begin(&world, peers, 2);
    struct fake_user user = {0};

    testing_peer_behave(peers[0], TESTING_REFUSE);
    testing_peer_behave(peers[1], TESTING_REFUSE);
    testing_peer_delay(peers[1], 1.5, 0);
    cases_wait(&world, &user, "db");
    fake_run(&world, 0.25);
    cr_assert(eq(uint, testing_peer_attempts(peers[0]), 2));
    cr_assert(eq(int, pool_target_state(target), LINK_CONNECTING));
    fake_run(&world, 1.3);
    cr_assert(eq(int, pool_target_state(target), LINK_BACKOFF));
    fake_world_end(&world);
}

static unsigned picker_calls;

static int pick_one(const struct pool_pick *pick, const struct pool_lease *lease, uint64_t draw)
{
    picker_calls++;
    return pool_pick_first.pick(pick, lease, draw);
}

static void count_change(const struct pool_pick *pick)
{
    (void)pick;
    picker_calls++;
}

Test(cases, T40_a_removed_target_hears_of_no_link)
{
    struct pool_picker picker = pool_pick_first;
    struct fake_world world;
    struct testing_peer *peers[4];
    struct fake_user user = {0};

    begin(&world, peers, 1);
    picker.pick = pick_one;
    picker.changed = count_change;
    picker.state_size = pool_pick_first.state_size;
    struct pool_target *target = fake_target(&world, "counted", &picker, cases_abc, 1);
    cr_assert(eq(int, fake_ask(&world, &user, "counted"), POOL_PENDING));
    fake_turn(&world); /* the attempt is on its way */
    pool_target_remove(target);
    unsigned calls = picker_calls;
    fake_run(&world, 1);
    cr_assert(eq(uint, picker_calls, calls));
    cr_assert(lt(uint, 0, calls));
    cr_assert(eq(int, user.status, LINKPOOL_ECLOSED));
    cr_assert(eq(uint, user.done, 1));
    fake_world_end(&world);
}
