/* pool_target.c - targets: selection, their list, their state, their going. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "pool/internal.h"
#include "tests/fakes/world.h"

static const char a[] = "10.0.0.1:80", b[] = "10.0.0.2:80", c[] = "10.0.0.3:80";
static const char *const three[] = {a, b, c};

static void begin(struct fake_world *world, struct testing_peer *peers[3])
{
    fake_world_begin(world);
    fake_world_open(world);
    for (int i = 0; i < 3; i++)
        peers[i] = fake_echo(world, three[i]);
}

static void use(struct fake_world *world, const char *target)
{
    struct fake_user user = {0};

    fake_hold(world, &user, target);
    fake_exchange(world, &user);
    fake_give_back(&user);
}

/* ---- pick_first ---- */

Test(pool_target, pick_first_takes_the_first_that_is_not_down_and_stays_there)
{
    struct testing_peer *peers[3];
    struct fake_world world;

    begin(&world, peers);
    testing_peer_behave(peers[0], TESTING_REFUSE);
    struct pool_target *target = fake_target(&world, "db", &pool_pick_first, three, 3);
    use(&world, "db");
    cr_assert(eq(uint, testing_peer_accepted(peers[1]), 1));
    testing_peer_behave(peers[0], TESTING_ACCEPT);
    for (int i = 0; i < 20; i++) {
        fake_run(&world, 1);
        use(&world, "db");
    }
    cr_assert(eq(uint, testing_peer_accepted(peers[0]), 0));
    cr_assert(eq(uint, testing_peer_accepted(peers[1]), 1));
    cr_assert(eq(u64, fake_host_stats(pool_target_host(target, 1)).uses, 21));

    testing_peer_cut(peers[1], LINK_CLOSED_BY_PEER); /* its link is gone: from the top again */
    fake_settle(&world);
    use(&world, "db");
    cr_assert(eq(uint, testing_peer_accepted(peers[0]), 1));
    cr_assert(eq(uint, testing_peer_accepted(peers[2]), 0));
    fake_world_end(&world);
}

Test(pool_target, full_is_not_down_for_pick_first)
{
    struct fake_user holder = {0}, waiter = {0};
    struct testing_peer *second;
    struct fake_world world;

    fake_world_begin(&world);
    world.host.max_links = 1;
    fake_world_open(&world);
    fake_echo(&world, a);
    second = fake_echo(&world, b);
    fake_target(&world, "db", &pool_pick_first, three, 2);
    fake_hold(&world, &holder, "db");
    cr_assert(eq(int, fake_ask(&world, &waiter, "db"), POOL_PENDING));
    fake_run(&world, 1);
    cr_assert(eq(uint, waiter.done, 0));
    cr_assert(eq(uint, testing_peer_attempts(second), 0));
    fake_give_back(&holder);
    fake_settle(&world);
    cr_assert(eq(int, waiter.status, POOL_READY));
    fake_world_end(&world);
}

/* ---- round_robin ---- */

Test(pool_target, round_robin_goes_over_ready_hosts_in_turn)
{
    struct testing_peer *peers[3];
    struct fake_world world;

    begin(&world, peers);
    testing_peer_behave(peers[1], TESTING_REFUSE);
    struct pool_target *target = fake_target(&world, "db", &pool_round_robin, three, 3);
    use(&world, "db");
    fake_run(&world, 0.1);
    uint64_t before[3];
    for (size_t i = 0; i < 3; i++)
        before[i] = fake_host_stats(pool_target_host(target, i)).uses;
    for (int i = 0; i < 20; i++)
        use(&world, "db");
    for (size_t i = 0; i < 3; i++)
        cr_assert(eq(u64, fake_host_stats(pool_target_host(target, i)).uses - before[i], i == 1 ? 0 : 10));
    fake_world_end(&world);
}

Test(pool_target, round_robin_begins_at_a_random_host)
{
    unsigned first[3] = {0};

    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct fake_user user = {0};
        struct fake_world world;
        fake_world_begin_with(&world, seed);
        fake_world_open(&world);
        for (int i = 0; i < 3; i++)
            fake_echo(&world, three[i]);
        struct pool_target *target = fake_target(&world, "db", &pool_round_robin, three, 3);
        pool_target_start(target);
        fake_settle(&world);
        cr_assert(eq(int, fake_ask(&world, &user, "db"), POOL_READY));
        for (size_t i = 0; i < 3; i++)
            first[i] += user.lease.host == pool_target_host(target, i);
        fake_world_end(&world);
    }
    for (int i = 0; i < 3; i++)
        cr_assert(lt(uint, 8, first[i])); /* of 20 expected: 3.3 standard deviations */
}

Test(pool_target, when_all_hosts_are_full_whichever_is_free_first_serves)
{
    struct fake_user holders[3] = {0}, waiter = {0};
    struct fake_world world;

    fake_world_begin(&world);
    world.host.max_links = 1;
    fake_world_open(&world);
    for (int i = 0; i < 3; i++)
        fake_echo(&world, three[i]);
    fake_target(&world, "db", &pool_round_robin, three, 3);
    for (int i = 0; i < 3; i++)
        fake_hold(&world, &holders[i], "db");
    fake_ask(&world, &waiter, "db");
    fake_run(&world, 1);
    cr_assert(eq(uint, waiter.done, 0));
    fake_give_back(&holders[1]);
    fake_settle(&world);
    cr_assert(eq(int, waiter.status, POOL_READY));
    cr_assert(eq(ptr, waiter.lease.host, holders[1].lease.host));
    fake_world_end(&world);
}

/* ---- a picker of the user's ---- */

struct picks {
    unsigned n, draws;
};

static struct picks picks;

static int pick_last(const struct pool_pick *pick, const struct pool_lease *lease, uint64_t draw)
{
    unsigned *state = pick->state;

    (void)lease;
    cr_assert(eq(uint, *state, picks.n)); /* zeroed when the target is made, and its own since */
    *state = ++picks.n;
    picks.draws += draw != 0;
    return pick->can(pick->hosts[pick->n - 1]) == POOL_HOST_DOWN ? POOL_PICK_DOWN : (int)pick->n - 1;
}

static void changed(const struct pool_pick *pick)
{
    (void)pick;
}

Test(pool_target, a_picker_of_the_users_picks)
{
    static const struct pool_picker last = {
        .size = sizeof last, .name = "last", .state_size = sizeof(unsigned), .pick = pick_last, .changed = changed};
    struct testing_peer *peers[3];
    struct fake_world world;

    begin(&world, peers);
    fake_target(&world, "db", &last, three, 3);
    use(&world, "db");
    cr_assert(eq(uint, testing_peer_accepted(peers[2]), 1));
    unsigned draws = picks.draws, n = picks.n;
    for (int i = 0; i < 10; i++)
        use(&world, "db");
    cr_assert(eq(uint, picks.n, n + 10));
    cr_assert(le(uint, picks.draws, draws + 1)); /* nothing has changed meanwhile */
    fake_world_end(&world);
}

/* ---- the list ---- */

Test(pool_target, a_new_list_is_taken_as_a_set)
{
    static const char *const next[] = {c, b, c};
    struct testing_peer *peers[3];
    struct pool_endpoint endpoints[3];
    struct fake_user holder = {0};
    struct fake_world world;

    begin(&world, peers);
    struct pool_target *target = fake_target(&world, "db", &pool_round_robin, three, 2);
    use(&world, "db");
    fake_settle(&world);
    struct pool_host *first = pool_target_host(target, 0), *second = pool_target_host(target, 1);
    holder.lease.avoid = second;
    fake_hold(&world, &holder, "db");
    cr_assert(eq(ptr, holder.lease.host, first));

    fake_endpoints(endpoints, next, 3);
    cr_assert(eq(int, pool_target_update(target, endpoints, 3), 0));
    fake_settle(&world);
    cr_assert(eq(ptr, pool_target_host(target, 1), second));
    cr_assert(eq(ptr, pool_target_host(target, 2), NULL));   /* given twice: once there */
    cr_assert(eq(uint, testing_peer_open(peers[0]), 1));     /* held: not taken away */
    cr_assert(eq(uint, testing_peer_accepted(peers[1]), 1)); /* links to those that stay, stay */
    cr_assert(eq(uint, testing_peer_open(peers[1]), 1));
    fake_exchange(&world, &holder);
    fake_give_back(&holder);
    fake_settle(&world);
    cr_assert(eq(uint, testing_peer_open(peers[0]), 0));
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_DRAINED], 1));
    fake_world_end(&world);
}

Test(pool_target, idle_links_of_a_host_that_left_its_last_target_end)
{
    struct testing_peer *peers[3];
    struct fake_world world;

    begin(&world, peers);
    struct pool_target *target = fake_target(&world, "db", &pool_round_robin, three, 2);
    fake_target(&world, "other", &pool_pick_first, &three[1], 1);
    pool_target_start(target);
    fake_settle(&world);
    cr_assert(eq(int,
        pool_target_update(target, &(struct pool_endpoint){.size = sizeof(struct pool_endpoint), .address = c}, 1), 0));
    fake_settle(&world);
    cr_assert(eq(uint, testing_peer_open(peers[0]), 0));
    cr_assert(eq(uint, testing_peer_open(peers[1]), 1)); /* it is in another one */
    fake_world_end(&world);
}

Test(pool_target, without_a_list_leases_wait_for_one)
{
    struct fake_user user = {0};
    struct testing_peer *peers[3];
    struct pool_target_options options;
    struct fake_world world;

    begin(&world, peers);
    pool_target_options_init(&options);
    struct pool_target *target = pool_target_add(world.pool, "db", &options);
    cr_assert(eq(int, pool_target_state(target), LINK_IDLE));
    cr_assert(eq(int, fake_ask(&world, &user, "db"), POOL_PENDING));
    cr_assert(eq(int, pool_target_state(target), LINK_CONNECTING));
    fake_run(&world, 2);
    cr_assert(eq(uint, user.done, 0));
    cr_assert(eq(int,
        pool_target_update(target, &(struct pool_endpoint){.size = sizeof(struct pool_endpoint), .address = a}, 1), 0));
    fake_settle(&world);
    cr_assert(eq(int, user.status, POOL_READY));
    fake_world_end(&world);
}

Test(pool_target, with_an_empty_list_leases_fail)
{
    struct fake_user waiting = {0}, hasty = {0}, patient = {.lease.flags = POOL_WAIT_FOR_READY};
    struct pool_target_options options;
    struct testing_peer *peers[3];
    struct fake_world world;

    begin(&world, peers);
    pool_target_options_init(&options);
    struct pool_target *target = pool_target_add(world.pool, "db", &options);
    fake_ask(&world, &waiting, "db");
    cr_assert(eq(int, pool_target_update(target, NULL, 0), 0));
    cr_assert(eq(int, fake_ask(&world, &hasty, "db"), LINKPOOL_EUNAVAILABLE));
    cr_assert(eq(int, fake_ask(&world, &patient, "db"), POOL_PENDING));
    fake_run(&world, 6);
    cr_assert(eq(int, waiting.status, LINKPOOL_EUNAVAILABLE));
    cr_assert(eq(int, patient.status, LINKPOOL_ETIMEDOUT));
    fake_world_end(&world);
}

Test(pool_target, a_refused_list_changes_nothing)
{
    struct pool_endpoint wrong[2] = {{.size = sizeof *wrong, .address = c}, {.size = sizeof *wrong, .address = "c:80"}};
    struct testing_peer *peers[3];
    struct fake_world world;

    begin(&world, peers);
    world.options.max_hosts = 3;
    cr_assert(eq(int, pool_set_options(world.pool, &world.options), 0));
    struct pool_target *target = fake_target(&world, "db", &pool_round_robin, three, 2);
    cr_assert(eq(int, pool_target_update(target, wrong, 2), LINKPOOL_EADDRESS));
    cr_assert(ne(ptr, strstr(pool_last_refusal(world.pool), "c:80"), NULL));
    cr_assert(ne(ptr, strstr(pool_last_refusal(world.pool), "endpoint 1"), NULL));
    wrong[1].address = "10.0.0.4:80";
    cr_assert(eq(int, pool_target_update(target, wrong, 2), LINKPOOL_EFULL));
    cr_assert(eq(int, pool_target_update(target, NULL, 2), LINKPOOL_EINVAL));
    cr_assert(eq(str, (char *)pool_host_address(pool_target_host(target, 0)), (char *)a));
    cr_assert(eq(str, (char *)pool_host_address(pool_target_host(target, 1)), (char *)b));
    cr_assert(eq(ptr, pool_target_host(target, 2), NULL));
    use(&world, "db");
    fake_world_end(&world);
}

Test(pool_target, names_have_1_to_255_bytes_without_colon_and_slash)
{
    char longest[257];
    struct pool_target_options options;
    struct fake_world world;

    fake_world_begin(&world);
    fake_world_open(&world);
    memset(longest, 'n', 256);
    longest[256] = '\0';
    pool_target_options_init(&options);
    const char *const wrong[] = {"", "a:b", "a/b", longest, NULL};
    for (int i = 0; i < 5; i++) {
        cr_assert(eq(ptr, pool_target_add(world.pool, wrong[i], &options), NULL));
        cr_assert(eq(int, errno, EINVAL));
        cr_assert(ne(str, (char *)pool_last_refusal(world.pool), ""));
    }
    longest[255] = '\0';
    struct pool_target *target = pool_target_add(world.pool, longest, &options);
    cr_assert(ne(ptr, target, NULL));
    cr_assert(eq(str, (char *)pool_target_name(target), longest));
    cr_assert(eq(ptr, pool_target_add(world.pool, longest, &options), NULL));
    cr_assert(eq(int, errno, EEXIST));
    fake_world_end(&world);
}

/* ---- the state ---- */

Test(pool_target, its_state_is_the_best_of_its_hosts)
{
    struct testing_peer *peers[3];
    struct fake_user user = {0};
    struct fake_world world;

    begin(&world, peers);
    testing_peer_behave(peers[0], TESTING_REFUSE);
    testing_peer_behave(peers[1], TESTING_BLACK_HOLE);
    testing_peer_delay(peers[2], 1, 0);
    struct pool_target *target = fake_target(&world, "db", &pool_round_robin, three, 3);
    cr_assert(eq(int, pool_target_state(target), LINK_IDLE));
    fake_ask(&world, &user, "db");
    fake_run(&world, 0.5);
    cr_assert(eq(int, pool_host_state(pool_target_host(target, 0)), LINK_BACKOFF));
    cr_assert(eq(int, pool_target_state(target), LINK_CONNECTING));
    fake_run(&world, 1);
    cr_assert(eq(int, pool_target_state(target), LINK_READY));
    fake_world_end(&world);
}

/* ---- going ---- */

Test(pool_target, a_removed_target_fails_who_waits_and_leaves_who_holds)
{
    struct fake_user holder = {0}, waiter = {0}, late = {0};
    struct fake_world world;

    fake_world_begin(&world);
    world.host.max_links = 1;
    fake_world_open(&world);
    fake_echo(&world, a);
    struct pool_target *target = fake_target(&world, "db", &pool_pick_first, three, 1);
    fake_hold(&world, &holder, "db");
    fake_ask(&world, &waiter, "db");
    pool_target_remove(target);
    cr_assert(eq(uint, waiter.done, 0));
    fake_turn(&world);
    cr_assert(eq(int, waiter.status, LINKPOOL_ECLOSED));
    cr_assert(eq(int, fake_ask(&world, &late, "db"), LINKPOOL_EADDRESS)); /* the name is nobody's */
    fake_exchange(&world, &holder);
    fake_target(&world, "db", &pool_pick_first, three, 1); /* and free for another */
    fake_give_back(&holder);
    fake_world_end(&world);
}

static void count(struct pool_target *target, void *data)
{
    (void)target;
    ++*(unsigned *)data;
}

Test(pool_target, a_draining_target_lets_those_waiting_and_out_finish)
{
    struct fake_user holder = {0}, waiter = {0}, late = {0};
    struct fake_world world;
    unsigned drained = 0;

    fake_world_begin(&world);
    world.host.max_links = 1;
    fake_world_open(&world);
    fake_echo(&world, a);
    struct pool_target *target = fake_target(&world, "db", &pool_pick_first, three, 1);
    fake_hold(&world, &holder, "db");
    fake_ask(&world, &waiter, "db");
    cr_assert(eq(int, pool_target_drain(target, 10, count, &drained), 0));
    cr_assert(eq(int, pool_target_drain(target, 10, count, &drained), LINKPOOL_ESTATE));
    cr_assert(eq(int, pool_target_state(target), LINK_CLOSED));
    cr_assert(eq(int, fake_ask(&world, &late, "db"), LINKPOOL_ECLOSED));
    fake_run(&world, 1);
    fake_give_back(&holder);
    fake_settle(&world);
    cr_assert(eq(int, waiter.status, POOL_READY));
    cr_assert(eq(uint, drained, 0));
    fake_give_back(&waiter);
    cr_assert(eq(uint, drained, 0)); /* from the loop */
    fake_run(&world, 20);
    cr_assert(eq(uint, drained, 1));
    cr_assert(eq(int, fake_ask(&world, &late, a), POOL_READY)); /* its host goes on */
    fake_world_end(&world);
}

Test(pool_target, what_is_left_when_a_drain_is_over_is_ended)
{
    struct fake_user holder = {0}, waiter = {0}, other = {0};
    struct fake_world world;
    unsigned drained = 0;

    fake_world_begin(&world);
    world.host.max_links = 2;
    fake_world_open(&world);
    fake_echo(&world, a);
    struct pool_target *target = fake_target(&world, "db", &pool_pick_first, three, 1);
    fake_hold(&world, &holder, "db");
    fake_hold(&world, &other, a); /* not by the target */
    waiter.lease.timeout = 100;
    fake_ask(&world, &waiter, "db");
    double asked = testing_now(world.t);
    cr_assert(eq(int, pool_target_drain(target, 3, count, &drained), 0));
    fake_run(&world, 2.9);
    cr_assert(eq(uint, drained, 0));
    fake_run(&world, 0.2);
    cr_assert(eq(uint, drained, 1));
    cr_assert(eq(uint, holder.closed, 1));
    cr_assert(eq(int, holder.lease.status, LINKPOOL_ECLOSED));
    cr_assert(eq(int, waiter.status, LINKPOOL_ECLOSED));
    cr_assert(epsilon_eq(dbl, waiter.told_at - asked, 3, 1e-6));
    cr_assert(eq(uint, other.closed, 0));
    fake_exchange(&world, &other);
    fake_world_end(&world);
}

Test(pool_target, recycle_replaces_links_so_many_a_second)
{
    struct fake_user users[4] = {0}, holder = {0};
    struct testing_peer *peers[3];
    struct fake_world world;

    begin(&world, peers);
    struct pool_target *target = fake_target(&world, "db", &pool_pick_first, three, 1);
    for (int i = 0; i < 4; i++)
        fake_hold(&world, &users[i], "db");
    for (int i = 0; i < 4; i++)
        fake_give_back(&users[i]);
    cr_assert(eq(int, pool_target_recycle(target, -1), LINKPOOL_EINVAL));
    cr_assert(eq(int, pool_target_recycle(target, NAN), LINKPOOL_EINVAL));
    cr_assert(eq(int, pool_target_recycle(target, 2), 0));
    for (unsigned i = 0; i < 4; i++) {
        fake_run(&world, 0.5);
        fake_settle(&world);
        cr_assert(eq(uint, testing_peer_open(peers[0]), 3 - i));
    }
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_DRAINED], 4));

    fake_hold(&world, &holder, "db");
    fake_hold(&world, &users[0], "db");
    fake_give_back(&users[0]);
    cr_assert(eq(int, pool_target_recycle(target, 0), 0)); /* all at once, but those held */
    fake_settle(&world);
    cr_assert(eq(uint, testing_peer_open(peers[0]), 1));
    fake_give_back(&holder);
    fake_settle(&world);
    cr_assert(eq(uint, testing_peer_open(peers[0]), 0));
    fake_world_end(&world);
}

static struct pool_target *other_target;

static void list_another(void *data, const struct pool_host *host, const struct link_transition *transition)
{
    struct pool_endpoint endpoint = {.size = sizeof endpoint, .address = a};

    (void)data, (void)host;
    if (transition->from == LINK_READY)
        cr_assert(eq(int, pool_target_update(other_target, &endpoint, 1), 0));
}

/* The link of a host that leaves ends, and its observer lists a host that stays elsewhere. */
Test(pool_target, a_list_may_be_made_while_another_is_put_in_place)
{
    static const struct pool_observer observer = {.size = sizeof observer, .transition = list_another};
    struct pool_endpoint endpoint = {.size = sizeof endpoint, .address = a};
    struct fake_user user = {0};
    struct fake_world world;

    fake_world_begin(&world);
    world.options.observer = &observer;
    fake_world_open(&world);
    fake_echo(&world, a);
    fake_echo(&world, b);
    struct pool_target *target = fake_target(&world, "db", &pool_pick_first, three, 2);
    other_target = fake_target(&world, "other", &pool_pick_first, &three[2], 1);
    fake_hold(&world, &user, b);
    fake_give_back(&user);
    cr_assert(eq(int, pool_target_update(target, &endpoint, 1), 0));
    cr_assert(eq(ptr, pool_target_host(other_target, 0), pool_target_host(target, 0)));
    cr_assert(eq(ptr, pool_target_host(other_target, 1), NULL));
    fake_world_end(&world);
}

static const struct pool_picker hashed = {
    .size = sizeof hashed, .name = "hashed", .by_lease = true, .pick = fake_pick_by_hash, .takes = fake_takes_by_hash};

/* A target of two hosts, of one link each. */
static struct pool_target *hashed_target(struct fake_world *world)
{
    fake_world_begin(world);
    world->host.max_links = 1;
    fake_world_open(world);
    fake_echo(world, a);
    fake_echo(world, b);
    return fake_target(world, "shards", &hashed, three, 2);
}

Test(pool_target, a_picker_by_lease_lets_none_wait_for_another_host)
{
    struct fake_user first = {0}, second = {0}, to_b = {.lease.hash = 1}, to_a = {0}, next_to_a = {0};
    struct fake_world world;

    hashed_target(&world);
    fake_hold(&world, &first, a);
    fake_hold(&world, &second, b);
    cr_assert(eq(int, fake_ask(&world, &to_b, "shards"), POOL_PENDING));
    cr_assert(eq(int, fake_ask(&world, &to_a, "shards"), POOL_PENDING));
    fake_settle(&world);
    fake_give_back(&first);
    cr_assert(eq(int, fake_ask(&world, &next_to_a, "shards"), POOL_PENDING)); /* it overtakes nobody of its host */
    fake_settle(&world);
    cr_assert(eq(int, to_a.status, POOL_READY));
    cr_assert(eq(int, to_b.status, POOL_PENDING));
    cr_assert(eq(int, next_to_a.status, POOL_PENDING));
    fake_give_back(&to_a);
    fake_settle(&world);
    cr_assert(eq(int, next_to_a.status, POOL_READY));
    fake_give_back(&second);
    fake_settle(&world);
    cr_assert(eq(int, to_b.status, POOL_READY));
    fake_world_end(&world);
}

Test(pool_target, a_picker_by_lease_has_links_opened_for_those_behind)
{
    struct fake_user holder = {0}, to_b = {.lease.hash = 1}, to_a[3] = {{.status = 0}};
    struct fake_world world;

    hashed_target(&world);
    fake_hold(&world, &holder, b);
    cr_assert(eq(int, fake_ask(&world, &to_b, "shards"), POOL_PENDING));
    fake_settle(&world);
    for (int i = 0; i < 3; i++)
        cr_assert(eq(int, fake_ask(&world, &to_a[i], "shards"), POOL_PENDING));
    fake_settle(&world);
    for (int i = 0; i < 3; i++) { /* one after the other: the host has one link */
        cr_assert(eq(int, to_a[i].status, POOL_READY));
        fake_give_back(&to_a[i]);
        fake_settle(&world);
    }
    cr_assert(eq(int, to_b.status, POOL_PENDING));
    cr_assert(eq(uint, fake_stats(&world).links, 2));
    fake_world_end(&world);
}

static unsigned noted, noted_busy;

static int note_busy(const struct pool_pick *pick, const struct pool_lease *lease, uint64_t draw)
{
    bool any = false;

    (void)lease, (void)draw;
    for (size_t i = 0; i < pick->n; i++)
        any = any || pick->can(pick->hosts[i]) == POOL_HOST_CAN_SERVE;
    cr_assert(eq(int, any, !pick->all_busy));
    noted++;
    noted_busy += pick->all_busy;
    return 0;
}

/* Leasing leaves the list of those that may lend as it is; a host that is found busy leaves it, and comes back. */
Test(pool_target, a_picker_is_told_when_every_host_is_busy)
{
    static const struct pool_picker noting = {.size = sizeof noting, .name = "noting", .pick = note_busy};
    struct fake_user holders[3] = {0}, waiter = {0};
    struct pool_target *target;
    struct fake_world world;

    fake_world_begin(&world);
    world.host.max_links = 1;
    fake_world_open(&world);
    for (int i = 0; i < 3; i++)
        fake_echo(&world, three[i]);
    target = fake_target(&world, "db", &noting, three, 3);
    for (int i = 0; i < 3; i++)
        fake_hold(&world, &holders[i], three[i]);
    noted = noted_busy = 0;
    cr_assert(eq(int, fake_ask(&world, &waiter, "db"), POOL_PENDING));
    fake_settle(&world);
    cr_assert(lt(uint, 0, noted));
    cr_assert(eq(uint, noted_busy, noted));
    cr_assert(eq(ptr, (void *)target->lending, NULL));
    fake_give_back(&holders[0]);
    fake_settle(&world);
    cr_assert(eq(int, waiter.status, POOL_READY));
    fake_give_back(&holders[1]); /* the picker asks for another */
    fake_give_back(&waiter);
    noted_busy = 0;
    cr_assert(eq(int, fake_ask(&world, &waiter, "db"), POOL_READY));
    cr_assert(eq(uint, noted_busy, 0));
    fake_world_end(&world);
}

Test(pool_target, it_says_in_words_how_each_host_is_but_no_tag)
{
    struct pool_endpoint endpoint = {.size = sizeof endpoint, .address = a, .tag = "secret"};
    struct pool_target_options options;
    struct fake_user user = {0};
    struct fake_world world;
    char text[512], wrong[8];

    fake_world_begin(&world);
    fake_world_open(&world);
    fake_peer(&world, a, TESTING_REFUSE);
    pool_target_options_init(&options);
    options.endpoints = &endpoint;
    options.n_endpoints = 1;
    struct pool_target *target = pool_target_add(world.pool, "db", &options);
    fake_ask(&world, &user, "db");
    fake_settle(&world);
    int length = pool_target_explain(target, text, sizeof text);
    cr_assert(eq(int, length, (int)strlen(text)));
    cr_assert(ne(ptr, strstr(text, a), NULL));
    cr_assert(ne(ptr, strstr(text, link_reason_text(LINK_REFUSED)), NULL));
    cr_assert(eq(ptr, strstr(text, "secret"), NULL));
    cr_assert(eq(int, pool_target_explain(target, wrong, sizeof wrong), length)); /* as snprintf() */
    cr_assert(eq(sz, strlen(wrong), sizeof wrong - 1));
    cr_assert(lt(int, 0, pool_host_explain(pool_next_host(world.pool, NULL), text, sizeof text)));
    cr_assert(ne(ptr, strstr(text, link_reason_text(LINK_REFUSED)), NULL));
    cr_assert(eq(ptr, strstr(text, "secret"), NULL));
    cr_assert(lt(int, 0, pool_explain(&user.lease, text, sizeof text)));
    cr_assert(ne(ptr, strstr(text, link_reason_text(LINK_REFUSED)), NULL));
    cr_assert(eq(ptr, strstr(text, "secret"), NULL));
    fake_world_end(&world);
}
