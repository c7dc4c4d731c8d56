/* review_pool.c - faults that a strict reading of pool/ has found, each as the smallest scenario: options, drains and
 * starts, verdicts, targets, figures. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "tests/fakes/session.h"
#include "tests/fakes/world.h"

static const char a[] = "10.0.0.1:80", b[] = "10.0.0.2:80";
static const char *const both[] = {a, b};

static struct fake_world world;

static void begin(void)
{
    fake_world_begin(&world);
    fake_world_open(&world);
}

static struct pool_host *pinned(const char *address)
{
    struct pool_host *host = pool_host(world.pool, address);

    cr_assert(ne(ptr, host, NULL));
    return host;
}

/* ---- options without a size ---- */

Test(review_pool, a_pools_options_without_a_size_are_the_defaults)
{
    struct testing *t = testing_new(1);
    struct pool_host_options none = {0};
    struct pool_options options = {0};
    struct pool_observer observer = {0};
    struct pool *pool;

    cr_assert(ne(ptr, pool = pool_new_on(testing_driver(t), &options), NULL));
    pool_free(pool);
    pool_options_init(&options);
    options.env = testing_env(t);
    options.host = &none;
    options.observer = &observer;
    cr_assert(ne(ptr, pool = pool_new_on(testing_driver(t), &options), NULL));
    cr_assert(eq(int, pool_set_options(pool, &(struct pool_options){0}), 0));
    struct pool_host *host = pool_host(pool, a);
    cr_assert(ne(ptr, host, NULL));
    cr_assert(eq(int, pool_host_set_options(host, &none), 0));
    pool_free(pool);
    testing_free(t);
}

static void expect_refusal(const char *words)
{
    cr_assert(ne(ptr, strstr(pool_last_refusal(world.pool), words), NULL), "%s", pool_last_refusal(world.pool));
}

Test(review_pool, an_endpoint_without_a_size_is_refused_wherever_it_is_given)
{
    static const size_t sizes[] = {0, 4, 12}; /* of the last, half the pointer to the address would be read */

    begin();
    struct pool_target *target = fake_target(&world, "db", &pool_round_robin, both, 2);
    for (int i = 0; i < 3; i++) {
        struct pool_endpoint endpoints[2] = {{.size = sizeof *endpoints, .address = a}, {.address = b}};
        struct pool_target_options options;
        endpoints[1].size = sizes[i];
        errno = 0;
        cr_assert(eq(ptr, pool_host_for(world.pool, &endpoints[1], NULL), NULL));
        cr_assert(eq(int, errno, EINVAL));
        expect_refusal("endpoint has no size");
        cr_assert(eq(int, pool_target_update(target, endpoints, 2), LINKPOOL_EINVAL));
        expect_refusal("endpoint 1");
        expect_refusal("no size");
        pool_target_options_init(&options);
        options.endpoints = endpoints;
        options.n_endpoints = 2;
        errno = 0;
        cr_assert(eq(ptr, pool_target_add(world.pool, "other", &options), NULL));
        cr_assert(eq(int, errno, EINVAL));
        expect_refusal("endpoint 1");
    }
    cr_assert(eq(ptr, pool_target_host(target, 0), fake_host(&world, a))); /* the list is what it was */
    cr_assert(eq(ptr, pool_target_host(target, 1), fake_host(&world, b)));
    fake_world_end(&world);
}

static void expect_refused(const struct pool_host_options *options, const char *words)
{
    char text[160] = "";

    cr_assert(eq(int, pool_host_options_check(options, text, sizeof text), LINKPOOL_EINVAL));
    cr_assert(ne(ptr, strstr(text, words), NULL), "%s", text);
}

Test(review_pool, tables_that_are_shorter_than_todays_are_refused)
{
    struct transport transport = transport_tcp;
    struct protocol protocol = protocol_raw;
    struct pool_picker picker = pool_pick_first;
    struct pool_target_options target;
    struct pool_host_options options;
    char text[160] = "";

    pool_host_options_init(&options);
    pool_target_options_init(&target);
    options.transport = &transport;
    options.protocol = &protocol;
    target.picker = &picker;
    cr_assert(eq(int, pool_host_options_check(&options, NULL, 0), 0));
    protocol.size--;
    expect_refused(&options, "protocol.size is");
    transport.size--;
    expect_refused(&options, "transport.size is");
    picker.size--;
    cr_assert(eq(int, pool_target_options_check(&target, text, sizeof text), LINKPOOL_EINVAL));
    cr_assert(ne(ptr, strstr(text, "picker.size is"), NULL), "%s", text);
}

Test(review_pool, settings_of_the_tcp_transport_are_checked_by_name)
{
    struct transport_tcp_options tcp = {.size = sizeof tcp, .user_timeout = 2147483};
    struct transport transport = transport_tcp;
    struct pool_host_options options;

    pool_host_options_init(&options);
    options.transport = &transport;
    transport.config = &tcp;
    cr_assert(eq(int, pool_host_options_check(&options, NULL, 0), 0));
    tcp.user_timeout = 2147484; /* in milliseconds no int */
    expect_refused(&options, "user_timeout is 2.14748e+06");
    tcp.user_timeout = -1;
    expect_refused(&options, "user_timeout is -1");
    tcp.user_timeout = (double)NAN;
    expect_refused(&options, "user_timeout is");
    tcp.user_timeout = 0;
    tcp.local = "nowhere";
    expect_refused(&options, "local is no address");
    tcp.size = 0;
    expect_refused(&options, "transport.config.size is 0");
}

/* ---- a drained host, and its start ---- */

Test(review_pool, an_attempt_that_fails_out_of_descriptors_while_its_host_drains_does_not_spin)
{
    struct fake_user used = {0}, fresh = {.lease = {.flags = POOL_FRESH}};

    begin();
    fake_echo(&world, a);
    struct pool_host *host = pinned(a);
    fake_hold(&world, &used, a);
    fake_exchange(&world, &used);
    fake_give_back(&used);
    cr_assert(eq(int, fake_ask(&world, &fresh, a), POOL_PENDING));
    fake_turn(&world); /* its attempt begins */
    cr_assert(eq(int, pool_host_drain(host, 10), 0));
    cr_assert(eq(int, pool_cancel(&fresh.lease), 0));
    testing_fail_call(world.t, TESTING_GETSOCKOPT, 1, EMFILE, false);
    fake_run(&world, 1);
    cr_assert(eq(uint, fake_stats(&world).links, 0));
    fake_world_end(&world);
}

Test(review_pool, attempts_are_made_again_after_a_drain_that_left_no_verdict)
{
    struct fake_user users[2] = {0}, next = {0};

    begin();
    struct testing_peer *peer = fake_peer(&world, a, TESTING_REFUSE);
    struct pool_host *host = pinned(a);
    testing_peer_delay(peer, 0.1, 0);
    cr_assert(eq(int, fake_ask(&world, &users[0], a), POOL_PENDING));
    fake_turn(&world);
    testing_peer_delay(peer, 1, 0);
    cr_assert(eq(int, fake_ask(&world, &users[1], a), POOL_PENDING));
    fake_run(&world, 0.5);
    cr_assert(eq(uint, fake_stats(&world).connecting, 1)); /* the other has failed, and this one will tell */
    cr_assert(eq(int, pool_cancel(&users[0].lease), 0));
    cr_assert(eq(int, pool_cancel(&users[1].lease), 0));
    cr_assert(eq(int, pool_host_drain(host, 0), 0));
    fake_run(&world, 1);
    testing_peer_behave(peer, TESTING_ACCEPT);
    cr_assert(eq(int, pool_host_start(host), 0));
    fake_run(&world, 2);
    cr_assert(eq(int, pool_host_state(host), LINK_READY));
    cr_assert(eq(int, fake_ask(&world, &next, a), POOL_READY));
    fake_world_end(&world);
}

Test(review_pool, a_probe_that_a_drain_stopped_fails_nobody_after_the_start)
{
    struct fake_user first = {0}, patient = {.lease = {.flags = POOL_WAIT_FOR_READY}}, next = {0};

    begin();
    struct testing_peer *peer = fake_peer(&world, a, TESTING_REFUSE);
    struct pool_host *host = pinned(a);
    fake_ask(&world, &first, a);
    fake_settle(&world);
    cr_assert(eq(int, first.status, LINKPOOL_EUNAVAILABLE));
    testing_peer_behave(peer, TESTING_BLACK_HOLE);
    cr_assert(eq(int, fake_ask(&world, &patient, a), POOL_PENDING));
    fake_run(&world, 1);
    cr_assert(eq(uint, fake_stats(&world).connecting, 1));
    cr_assert(eq(int, pool_cancel(&patient.lease), 0));
    cr_assert(eq(int, pool_host_drain(host, 0), 0));
    fake_run(&world, 1);
    testing_peer_behave(peer, TESTING_ACCEPT);
    cr_assert(eq(int, pool_host_start(host), 0));
    cr_assert(eq(int, fake_ask(&world, &next, a), POOL_PENDING));
    fake_run(&world, 1);
    cr_assert(eq(int, next.status, POOL_READY));
    fake_world_end(&world);
}

Test(review_pool, time_outs_halve_the_opening_limit_after_a_drain_and_a_start)
{
    struct fake_user users[8] = {0};

    begin();
    fake_peer(&world, a, TESTING_BLACK_HOLE);
    struct pool_host *host = pinned(a);
    cr_assert(eq(int, pool_host_drain(host, 1000), 0));
    cr_assert(eq(int, pool_host_start(host), 0));
    for (int i = 0; i < 8; i++)
        cr_assert(eq(int, fake_ask(&world, &users[i], a), POOL_PENDING));
    fake_run(&world, 2);
    cr_assert(eq(uint, fake_host_stats(host).connect_limit, 8));
    fake_run(&world, 1.1);
    cr_assert(eq(uint, fake_host_stats(host).connect_limit, 4));
    fake_world_end(&world);
}

static void expect_it_lasts_until_100(struct fake_user *user, double since)
{
    fake_run(&world, since + 99.9 - testing_now(world.t));
    cr_assert(eq(uint, user->closed, 0));
    fake_exchange(&world, user);
    fake_run(&world, 0.2);
    cr_assert(eq(uint, user->closed, 1));
    fake_world_end(&world);
}

Test(review_pool, a_drain_longer_than_the_hosts_own_lets_leases_last)
{
    struct fake_user user = {0};

    begin();
    fake_echo(&world, a);
    fake_hold(&world, &user, a);
    cr_assert(eq(int, pool_drain(world.pool, 100, NULL, NULL), 0));
    expect_it_lasts_until_100(&user, testing_now(world.t));
}

Test(review_pool, a_hosts_drain_longer_than_its_links_lets_leases_last)
{
    struct fake_user user = {0};

    begin();
    fake_echo(&world, a);
    fake_hold(&world, &user, a);
    cr_assert(eq(int, pool_host_drain(user.lease.host, 100), 0));
    expect_it_lasts_until_100(&user, testing_now(world.t));
}

static struct pool_host *drained_with_a_waiter(struct fake_user *user, enum testing_behaviour behaviour)
{
    begin();
    fake_peer(&world, a, behaviour);
    struct pool_host *host = pinned(a);
    cr_assert(eq(int, fake_ask(&world, user, a), POOL_PENDING));
    fake_turn(&world); /* its attempt begins */
    cr_assert(eq(int, pool_host_drain(host, 100), 0));
    cr_assert(eq(uint, fake_stats(&world).connecting, 1));
    return host;
}

Test(review_pool, a_drained_host_ends_the_attempt_of_its_last_waiter_who_cancels)
{
    struct fake_user user = {0};

    drained_with_a_waiter(&user, TESTING_BLACK_HOLE);
    cr_assert(eq(int, pool_cancel(&user.lease), 0));
    fake_settle(&world);
    cr_assert(eq(uint, fake_stats(&world).links, 0));
    fake_world_end(&world);
}

Test(review_pool, a_drained_host_ends_the_attempt_of_its_last_waiter_whose_time_is_up)
{
    struct fake_user user = {.lease = {.timeout = 1}};

    drained_with_a_waiter(&user, TESTING_BLACK_HOLE);
    fake_run(&world, 1.1);
    cr_assert(eq(int, user.status, LINKPOOL_ETIMEDOUT));
    cr_assert(eq(uint, fake_stats(&world).links, 0));
    fake_world_end(&world);
}

Test(review_pool, a_drained_host_keeps_no_link_that_came_up_for_nobody)
{
    struct fake_user user = {0};

    drained_with_a_waiter(&user, TESTING_ACCEPT);
    cr_assert(eq(int, pool_cancel(&user.lease), 0));
    fake_run(&world, 1);
    cr_assert(eq(uint, fake_stats(&world).links, 0));
    fake_world_end(&world);
}

/* ---- a start that finds all well ---- */

Test(review_pool, starting_a_healthy_host_opens_no_link_for_nobody_later)
{
    struct fake_user user = {0};

    begin();
    struct testing_peer *peer = fake_echo(&world, a);
    struct pool_host *host = pinned(a);
    fake_hold(&world, &user, a);
    fake_give_back(&user);
    cr_assert(eq(int, pool_host_start(host), 0));
    fake_run(&world, 200);
    cr_assert(eq(uint, testing_peer_accepted(peer), 1));
    cr_assert(eq(uint, testing_peer_open(peer), 0));
    fake_world_end(&world);
}

Test(review_pool, starting_a_healthy_host_does_not_keep_its_links_from_being_kept_up)
{
    fake_world_begin(&world);
    world.host.min_links = 3;
    fake_world_open(&world);
    struct testing_peer *peer = fake_echo(&world, a);
    struct pool_host *host = pinned(a);
    fake_run(&world, 20);
    cr_assert(eq(uint, testing_peer_open(peer), 3));
    cr_assert(eq(int, pool_host_start(host), 0));
    testing_conn_close(testing_peer_conn(peer, 0));
    fake_run(&world, 5);
    cr_assert(eq(uint, testing_peer_open(peer), 3));
    fake_world_end(&world);
}

Test(review_pool, starting_a_target_opens_nothing_on_a_host_that_was_drained)
{
    begin();
    struct testing_peer *first = fake_echo(&world, a), *second = fake_echo(&world, b);
    struct pool_target *target = fake_target(&world, "db", &pool_round_robin, both, 2);
    cr_assert(eq(int, pool_host_drain(pool_target_host(target, 0), 0), 0));
    fake_settle(&world);
    cr_assert(eq(int, pool_target_start(target), 0));
    fake_run(&world, 1);
    cr_assert(eq(uint, testing_peer_attempts(first), 0));
    cr_assert(eq(uint, testing_peer_open(second), 1));
    cr_assert(eq(int, pool_host_state(pool_target_host(target, 0)), LINK_DRAINING));
    fake_world_end(&world);
}

/* ---- targets ---- */

Test(review_pool, a_targets_drain_ends_leases_on_hosts_that_have_left_it_since)
{
    struct pool_endpoint left;
    struct fake_user user = {0};

    begin();
    fake_echo(&world, a);
    fake_echo(&world, b);
    struct pool_target *target = fake_target(&world, "db", &pool_pick_first, both, 2);
    fake_hold(&world, &user, "db");
    cr_assert(eq(str, (char *)pool_host_address(user.lease.host), (char *)a));
    fake_endpoints(&left, both + 1, 1);
    cr_assert(eq(int, pool_target_update(target, &left, 1), 0));
    cr_assert(eq(int, pool_target_drain(target, 2, NULL, NULL), 0));
    fake_run(&world, 1.9);
    cr_assert(eq(uint, user.closed, 0));
    fake_run(&world, 0.2);
    cr_assert(eq(uint, user.closed, 1));
    fake_world_end(&world);
}

Test(review_pool, attempts_at_a_host_that_leaves_its_last_target_end)
{
    struct pool_endpoint left;
    struct fake_user user = {0};

    begin();
    fake_peer(&world, a, TESTING_BLACK_HOLE);
    fake_echo(&world, b);
    struct pool_target *target = fake_target(&world, "db", &pool_pick_first, both, 2);
    cr_assert(eq(int, fake_ask(&world, &user, "db"), POOL_PENDING));
    fake_settle(&world);
    fake_endpoints(&left, both + 1, 1);
    cr_assert(eq(int, pool_target_update(target, &left, 1), 0));
    fake_settle(&world);
    cr_assert(eq(int, user.status, POOL_READY));
    cr_assert(eq(uint, fake_stats(&world).connecting, 0));
    cr_assert(eq(uint, testing_open_descriptors(world.t), 1));
    fake_world_end(&world);
}

/* Two who take turns on one link: at the end of each turn somebody has still to be told. */
static struct fake_user turns[2];
static unsigned n_turns;

static void take_a_turn(struct pool_lease *lease)
{
    n_turns++;
    cr_assert(eq(int, lease->status, POOL_READY));
    cr_assert(eq(int, pool_release(lease, POOL_REUSE), 0));
    cr_assert(eq(int, pool_acquire(world.pool, a, lease), POOL_PENDING));
}

static unsigned n_closed;

static void count_closed(void *data, const struct pool_target *target, enum link_state from, enum link_state to)
{
    (void)data, (void)target, (void)from;
    n_closed += to == LINK_CLOSED;
}

Test(review_pool, a_removed_target_goes_and_is_told_closed_though_somebody_is_told_in_every_turn)
{
    struct pool_observer observer = {.size = sizeof observer, .target = count_closed};

    fake_world_begin(&world);
    world.host.max_links = 1;
    world.options.observer = &observer;
    fake_world_open(&world);
    fake_echo(&world, a);
    for (int i = 0; i < 2; i++) {
        turns[i].lease.done = take_a_turn;
        cr_assert(eq(int, pool_acquire(world.pool, a, &turns[i].lease), POOL_PENDING));
    }
    for (int i = 0; i < 10; i++)
        fake_turn(&world);
    fake_target(&world, "first", &pool_pick_first, both, 1); /* the table of names has grown by then */
    size_t blocks = testing_blocks(world.t);
    struct pool_target *target = fake_target(&world, "db", &pool_pick_first, both, 1);
    cr_assert(lt(sz, blocks, testing_blocks(world.t)));
    unsigned before = n_turns;
    pool_target_remove(target);
    for (int i = 0; i < 10; i++)
        fake_turn(&world);
    cr_assert(eq(uint, n_turns - before, 10)); /* the load was there */
    cr_assert(eq(sz, testing_blocks(world.t), blocks));
    cr_assert(eq(uint, n_closed, 1));
    turns[0].lease.done = turns[1].lease.done = NULL;
    pool_cancel(&turns[0].lease);
    pool_cancel(&turns[1].lease);
    fake_world_end(&world);
}

static enum pool_host_can all_can(const struct pool_host *host)
{
    (void)host;
    return POOL_HOST_CAN_SERVE;
}

Test(review_pool, asking_pick_first_what_it_takes_changes_nothing)
{
    unsigned char state[64] = {0}, was[64] = {0};
    struct pool_lease lease = {0};

    begin();
    fake_echo(&world, a);
    fake_echo(&world, b);
    struct pool_host *hosts[] = {pinned(a), pinned(b)};
    struct pool_pick pick = {.n = 2, .hosts = hosts, .can = all_can, .state = state};
    cr_assert(le(sz, pool_pick_first.state_size, sizeof state));
    cr_assert(pool_pick_first.takes(&pick, &lease, 0));
    cr_assert(not(pool_pick_first.takes(&pick, &lease, 1)));
    cr_assert(eq(int, memcmp(state, was, sizeof state), 0));
    cr_assert(eq(int, pool_pick_first.pick(&pick, &lease, 0), 0));
    cr_assert(ne(int, memcmp(state, was, sizeof state), 0)); /* as picking does */
    fake_world_end(&world);
}

/* ---- recycling at a rate ---- */

Test(review_pool, a_link_to_be_recycled_later_still_ends_by_its_age)
{
    struct fake_user user = {0};

    fake_world_begin(&world);
    world.host.max_age = 20;
    fake_world_open(&world);
    struct testing_peer *peer = fake_echo(&world, a);
    fake_hold(&world, &user, a);
    fake_give_back(&user);
    cr_assert(eq(int, pool_host_recycle(user.lease.host, 0.02), 0)); /* in 50 s */
    fake_run(&world, 17.9);
    cr_assert(eq(uint, testing_peer_open(peer), 1));
    fake_run(&world, 2.2);
    cr_assert(eq(uint, testing_peer_open(peer), 0));
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_TOO_OLD], 1));
    fake_world_end(&world);
}

Test(review_pool, a_link_to_be_recycled_later_is_proven_in_its_time)
{
    struct fake_user first = {0}, user = {.lease = {.flags = POOL_WAIT_FOR_READY}};

    begin();
    struct testing_peer *peer = fake_peer(&world, a, TESTING_REFUSE);
    fake_ask(&world, &first, a);
    fake_settle(&world);
    testing_peer_behave(peer, TESTING_ACCEPT);
    fake_hold(&world, &user, a);
    struct pool_host *host = user.lease.host;
    cr_assert(eq(int, pool_host_recycle(host, 0.02), 0));
    fake_run(&world, 9.9);
    cr_assert(eq(uint, fake_host_stats(host).failures, 1));
    fake_run(&world, 0.2);
    cr_assert(eq(uint, fake_host_stats(host).failures, 0));
    fake_world_end(&world);
}

static void expect_it_is_recycled_in_10_s(struct testing_peer *peer)
{
    fake_run(&world, 9.9);
    cr_assert(eq(uint, testing_peer_open(peer), 1));
    fake_run(&world, 0.2);
    cr_assert(eq(uint, testing_peer_open(peer), 0));
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_DRAINED], 1));
    fake_world_end(&world);
}

Test(review_pool, cleaning_does_not_bring_recycling_forward)
{
    struct fake_user user = {0};

    fake_world_begin(&world);
    world.host.protocol = &fake_session;
    fake_world_open(&world);
    struct testing_peer *peer = fake_echo(&world, a);
    fake_hold(&world, &user, a);
    cr_assert(eq(int, pool_host_recycle(user.lease.host, 0.1), 0));
    fake_give_back(&user);
    expect_it_is_recycled_in_10_s(peer);
}

Test(review_pool, a_link_that_is_being_cleaned_is_recycled_in_its_turn)
{
    struct fake_user user = {0};

    fake_world_begin(&world);
    world.host.protocol = &fake_session;
    fake_world_open(&world);
    struct testing_peer *peer = fake_echo(&world, a);
    fake_hold(&world, &user, a);
    testing_peer_delay(peer, 0, 1);
    fake_give_back(&user);
    cr_assert(eq(uint, fake_host_stats(user.lease.host).links[LINK_RESETTING], 1));
    cr_assert(eq(int, pool_host_recycle(user.lease.host, 0.1), 0));
    expect_it_is_recycled_in_10_s(peer);
}

/* ---- options of a running host, memory ---- */

Test(review_pool, a_new_max_age_reaches_the_links_there_are)
{
    struct pool_host_options options;
    struct fake_user user = {0};

    fake_world_begin(&world);
    world.host.idle_timeout = 0;
    fake_world_open(&world);
    struct testing_peer *peer = fake_echo(&world, a);
    fake_hold(&world, &user, a);
    fake_give_back(&user);
    fake_run(&world, 20); /* proven: no timer of the link runs any more */
    options = world.host;
    options.max_age = 60;
    cr_assert(eq(int, pool_host_set_options(fake_host(&world, a), &options), 0));
    fake_run(&world, 33);
    cr_assert(eq(uint, testing_peer_open(peer), 1));
    fake_run(&world, 8);
    cr_assert(eq(uint, testing_peer_open(peer), 0));
    fake_world_end(&world);
}

Test(review_pool, without_memory_for_a_link_only_those_fail_whom_no_attempt_will_serve)
{
    struct fake_user users[2] = {0};

    begin();
    testing_peer_delay(fake_echo(&world, a), 1, 0);
    cr_assert(eq(int, fake_ask(&world, &users[0], a), POOL_PENDING));
    fake_turn(&world);
    cr_assert(eq(int, fake_ask(&world, &users[1], a), POOL_PENDING));
    testing_fail_allocation(world.t, 1, true);
    fake_run(&world, 0.5);
    testing_fail_allocation(world.t, 0, false);
    cr_assert(eq(int, users[1].status, LINKPOOL_ENOMEM));
    cr_assert(eq(int, users[0].status, POOL_PENDING));
    fake_run(&world, 1);
    cr_assert(eq(int, users[0].status, POOL_READY));
    fake_world_end(&world);
}

/* ---- a child after fork() ---- */

static unsigned n_transitions, n_drained;
static struct link_transition last;

static void note_transition(void *data, const struct pool_host *host, const struct link_transition *transition)
{
    (void)data, (void)host;
    n_transitions++;
    last = *transition;
}

static void note_drained(struct pool *pool, void *data)
{
    (void)pool, (void)data;
    n_drained++;
}

static const struct pool_observer noting = {.size = sizeof noting, .transition = note_transition};

static void begin_observed(void)
{
    fake_world_begin(&world);
    world.options.observer = &noting;
    fake_world_open(&world);
    fake_echo(&world, a);
}

Test(review_pool, a_child_hears_nothing_of_links_and_drains_that_were_its_parents)
{
    struct fake_user user = {0}, next = {0};

    begin_observed();
    fake_hold(&world, &user, a);
    cr_assert(eq(int, pool_drain(world.pool, 100, note_drained, NULL), 0));
    unsigned before = n_transitions;
    pool_after_fork(world.pool);
    cr_assert(eq(uint, n_transitions, before));
    fake_run(&world, 200);
    cr_assert(eq(uint, n_drained, 0));
    cr_assert(eq(uint, n_transitions, before));
    fake_hold(&world, &next, a);
    fake_exchange(&world, &next);
    cr_assert(lt(uint, before, n_transitions));
    fake_world_end(&world);
}

Test(review_pool, a_child_of_a_drained_pool_may_use_its_own_and_drain_it)
{
    struct fake_user user = {0};

    begin_observed();
    cr_assert(eq(int, pool_drain(world.pool, 1, note_drained, NULL), 0));
    fake_settle(&world);
    cr_assert(eq(uint, n_drained, 1));
    pool_after_fork(world.pool);
    fake_hold(&world, &user, a);
    cr_assert(eq(int, pool_drain(world.pool, 1, note_drained, NULL), 0));
    fake_run(&world, 2);
    cr_assert(eq(uint, user.closed, 1));
    cr_assert(eq(uint, n_drained, 2));
    fake_world_end(&world);
}

/* ---- what is said of a failure ---- */

Test(review_pool, the_errno_that_a_holder_met_is_that_of_the_links_end)
{
    struct fake_user user = {0};
    char byte;

    begin_observed();
    fake_hold(&world, &user, a);
    testing_fail_call(world.t, TESTING_RECVMSG, 1, ETIMEDOUT, false);
    cr_assert(eq(long, channel_read(user.lease.channel, &byte, 1), LINKPOOL_ELOST));
    cr_assert(eq(int, user.lease.reason, LINK_TIMED_OUT));
    fake_give_back(&user);
    cr_assert(eq(int, last.reason, LINK_TIMED_OUT));
    cr_assert(eq(int, last.system_errno, ETIMEDOUT));
    fake_world_end(&world);
}

Test(review_pool, a_lease_that_times_out_in_line_is_not_told_of_failures_before_it)
{
    struct fake_user first = {0}, holder = {.lease = {.flags = POOL_WAIT_FOR_READY}}, late = {0};

    fake_world_begin(&world);
    world.host.max_links = 1;
    fake_world_open(&world);
    struct testing_peer *peer = fake_peer(&world, a, TESTING_REFUSE);
    fake_ask(&world, &first, a);
    fake_settle(&world);
    cr_assert(eq(int, first.lease.reason, LINK_REFUSED));
    testing_peer_behave(peer, TESTING_ACCEPT);
    fake_hold(&world, &holder, a);
    fake_run(&world, 20);
    cr_assert(eq(int, fake_ask(&world, &late, a), POOL_PENDING));
    fake_run(&world, 6);
    cr_assert(eq(int, late.status, LINKPOOL_ETIMEDOUT));
    cr_assert(eq(int, late.lease.stage, POOL_STAGE_LINE));
    cr_assert(eq(int, late.lease.reason, LINK_NO_REASON));
    cr_assert(eq(int, late.lease.system_errno, 0));
    fake_world_end(&world);
}

Test(review_pool, nowhere_is_no_place_to_ask_for)
{
    struct pool_lease lease = {0};
    struct fake_user user = {0};

    begin();
    fake_echo(&world, a);
    fake_hold(&world, &user, a);
    fake_give_back(&user);
    lease.done = user.lease.done;
    cr_assert(eq(int, pool_acquire(world.pool, NULL, &lease), LINKPOOL_EINVAL));
    cr_assert(eq(int, lease.status, LINKPOOL_EINVAL));
    fake_world_end(&world);
}

Test(review_pool, leases_that_fail_in_line_by_a_verdict_are_counted_as_failed_fast)
{
    struct fake_user users[3] = {0};

    begin();
    fake_peer(&world, a, TESTING_REFUSE);
    for (int i = 0; i < 3; i++)
        cr_assert(eq(int, fake_ask(&world, &users[i], a), POOL_PENDING));
    fake_settle(&world);
    for (int i = 0; i < 3; i++)
        cr_assert(eq(int, users[i].status, LINKPOOL_EUNAVAILABLE));
    cr_assert(eq(u64, fake_stats(&world).failed_fast, 3));
    fake_world_end(&world);
}
