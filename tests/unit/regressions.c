/* regressions.c - faults that random play and failing allocations have found, each as the smallest scenario. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <math.h>

#include "tests/fakes/shared.h"
#include "tests/fakes/world.h"

#define A "10.0.0.1:80"
#define B "10.0.0.2:80"
#define C "10.0.0.3:80"
#define D "10.0.0.4:80"
#define E "10.0.0.5:80"
#define F "10.0.0.6:80"

static struct fake_world world;

static void begin(void)
{
    fake_world_begin(&world);
}

/* ---- a protocol whose link and channel the test calls up itself, from a timer ---- */

static struct protocol_link *a_link;
static struct protocol_channel *a_channel;

static int keep(struct protocol_link *pl, struct protocol_channel *pc)
{
    a_link = pl;
    a_channel = pc;
    return 0;
}

static int read_nothing(struct protocol_link *pl, unsigned events)
{
    (void)pl, (void)events;
    return 0;
}

static const struct protocol kept = {.size = sizeof kept,
    .name = "kept",
    .flags = PROTOCOL_SHARED,
    .max_channels = 2,
    .input = read_nothing,
    .open = keep};

static struct pool_host *host_of(const struct protocol *protocol, const char *address)
{
    struct pool_endpoint endpoint = {.size = sizeof endpoint, .address = address, .protocol = protocol};

    return pool_host_for(world.pool, &endpoint, NULL);
}

static void hold_host(struct fake_user *user, struct pool_host *host)
{
    cr_assert(ge(int, fake_ask_host(&world, user, host), 0));
    fake_run(&world, 0.1);
    cr_assert(ne(ptr, user->lease.channel, NULL));
}

/* ---- hooks that end their link ---- */

static const struct fake_shared_ways speaking = {.speaks_at_open = true, .speaks_at_close = true};
static struct protocol speaks;

static struct pool_host *speaking_host(void)
{
    speaks = fake_shared;
    speaks.config = &speaking;
    fake_echo(&world, A);
    fake_world_open(&world);
    return host_of(&speaks, A);
}

Test(regressions, a_link_that_ends_within_open_is_lost_by_its_holders_alone)
{
    struct fake_user first = {0}, second = {.lease = {.flags = POOL_WAIT_FOR_READY}};

    begin();
    struct pool_host *host = speaking_host();
    hold_host(&first, host);
    testing_fail_call(world.t, TESTING_SENDMSG, 1, EPIPE, false);
    cr_assert(eq(int, fake_ask_host(&world, &second, host), POOL_PENDING));
    fake_run(&world, 1);
    cr_assert(eq(uint, first.closed, 1));
    cr_assert(eq(uint, second.closed, 0));
    cr_assert(eq(int, second.status, POOL_READY));
    cr_assert(eq(uint, fake_stats(&world).leased, 1));
    fake_world_end(&world);
}

Test(regressions, a_link_that_ends_within_close_is_not_taken_from_who_gave_back)
{
    struct fake_user first = {0}, second = {0};

    begin();
    struct pool_host *host = speaking_host();
    hold_host(&first, host);
    hold_host(&second, host);
    testing_fail_call(world.t, TESTING_SENDMSG, 1, EPIPE, false);
    fake_give_back(&first);
    fake_run(&world, 1);
    cr_assert(eq(uint, first.closed, 0));
    cr_assert(eq(uint, second.closed, 1));
    cr_assert(eq(uint, fake_stats(&world).leased, 0));
    fake_world_end(&world);
}

/* ---- call-ups from outside ---- */

static void free_at_message(struct channel *channel, const void *bytes, size_t n)
{
    (void)channel, (void)bytes, (void)n;
    pool_free(world.pool);
    world.pool = NULL;
}

static void deliver(void *data)
{
    *(int *)data = protocol_deliver(a_channel, "x", 1);
}

Test(regressions, a_pool_freed_within_a_message_from_a_timer)
{
    static const struct channel_events events = {.message = free_at_message};
    struct fake_user user = {0};
    int answer = 0;

    begin();
    fake_echo(&world, A);
    fake_world_open(&world);
    hold_host(&user, host_of(&kept, A));
    cr_assert(eq(int, channel_watch(user.lease.channel, &events, 0), 0));
    testing_at(world.t, testing_now(world.t), deliver, &answer);
    fake_run(&world, 1);
    cr_assert(eq(int, answer, LINKPOOL_ELOST));
    cr_assert(eq(uint, user.closed, 1));
    fake_world_end(&world);
}

static void end_channel(void *data)
{
    (void)data;
    protocol_end(a_channel, LINK_CLOSED_BY_PEER, true);
}

Test(regressions, a_channel_that_its_peer_ended_leaves_its_room_to_others)
{
    struct fake_user first = {0}, second = {0}, third = {0};

    begin();
    world.host.max_links = 1;
    struct testing_peer *peer = fake_echo(&world, A);
    fake_world_open(&world);
    struct pool_host *host = host_of(&kept, A);
    hold_host(&first, host);
    hold_host(&second, host);
    cr_assert(eq(int, fake_ask_host(&world, &third, host), POOL_PENDING));
    testing_at(world.t, testing_now(world.t), end_channel, NULL);
    fake_run(&world, 0.1);
    cr_assert(eq(uint, second.closed, 1));
    cr_assert(eq(int, third.status, POOL_READY));
    cr_assert(ne(ptr, third.lease.channel, NULL));
    fake_give_back(&first);
    fake_give_back(&third);
    cr_assert(eq(uint, fake_stats(&world).idle, 1));
    cr_assert(eq(uint, testing_peer_accepted(peer), 1));
    fake_world_end(&world);
}

/* ---- unix: connected at once ---- */

static bool was_heard;

static void hear(struct channel *channel)
{
    char byte;

    was_heard = channel_read(channel, &byte, 1) == 1;
}

Test(regressions, a_unix_channel_hears_what_comes)
{
    static const struct channel_events events = {.readable = hear};
    struct fake_user user = {0};

    begin();
    fake_echo(&world, "unix:/run/x.sock");
    fake_world_open(&world);
    fake_hold(&world, &user, "unix:/run/x.sock");
    cr_assert(eq(int, channel_watch(user.lease.channel, &events, LINKPOOL_READ), 0));
    fake_send(&user, "x");
    fake_run(&world, 0.1);
    cr_assert(was_heard);
    fake_world_end(&world);
}

/* ---- winners whose link dies before they are told ---- */

static struct fake_user *holders[2];
static struct pool_target *removed;
static struct testing_peer *resetting;

/* Told at the end of a turn: what is decided here is told after the next poll, which brings the reset. */
static void let_win_and_reset(struct pool_lease *lease)
{
    (void)lease;
    for (unsigned i = 0; i < 2 && holders[i]; i++)
        fake_give_back(holders[i]);
    pool_target_remove(removed);
    testing_conn_reset(testing_peer_conn(resetting, 0));
}

static void trigger(struct pool_lease *lease)
{
    lease->done = let_win_and_reset;
    cr_assert(eq(int, pool_acquire(world.pool, B, lease), POOL_PENDING));
    fake_run(&world, 0.1);
}

Test(regressions, a_winner_that_lost_its_link_takes_another_that_is_free)
{
    struct fake_user first = {0}, second = {0}, waiter = {0};
    struct pool_lease lease = {0};

    begin();
    world.host.max_links = 2;
    resetting = fake_echo(&world, A);
    fake_echo(&world, B);
    fake_world_open(&world);
    fake_hold(&world, &first, A);
    fake_hold(&world, &second, A);
    cr_assert(eq(int, fake_ask(&world, &waiter, A), POOL_PENDING));
    holders[0] = &first;
    holders[1] = &second;
    trigger(&lease);
    cr_assert(eq(int, waiter.status, POOL_READY));
    cr_assert(eq(uint, waiter.done, 1));
    cr_assert(eq(uint, testing_peer_accepted(resetting), 2));
    fake_exchange(&world, &waiter);
    fake_world_end(&world);
}

Test(regressions, a_winner_that_lost_its_link_does_not_wait_for_a_removed_target)
{
    struct fake_user first = {0}, waiter = {.lease = {.timeout = INFINITY}};
    struct pool_lease lease = {0};

    begin();
    world.host.max_links = 1;
    resetting = fake_echo(&world, A);
    fake_echo(&world, B);
    fake_world_open(&world);
    removed = fake_target(&world, "target", &pool_pick_first, (const char *const[]){A}, 1);
    fake_hold(&world, &first, "target");
    cr_assert(eq(int, fake_ask(&world, &waiter, "target"), POOL_PENDING));
    holders[0] = &first;
    trigger(&lease);
    cr_assert(eq(uint, waiter.done, 1));
    cr_assert(eq(int, waiter.status, LINKPOOL_ECLOSED));
    fake_world_end(&world);
}

/* ---- lines and hosts ---- */

Test(regressions, pick_first_falls_back_on_a_link_that_is_there)
{
    struct fake_user user = {0}, waiter = {0};

    begin();
    fake_peer(&world, A, TESTING_BLACK_HOLE);
    struct testing_peer *second = fake_echo(&world, B);
    fake_world_open(&world);
    fake_target(&world, "target", &pool_pick_first, (const char *const[]){A, B}, 2);
    fake_hold(&world, &user, B);
    fake_give_back(&user);
    cr_assert(eq(int, fake_ask(&world, &waiter, "target"), POOL_PENDING));
    fake_run(&world, 3.1);
    cr_assert(eq(int, waiter.status, POOL_READY));
    cr_assert(eq(uint, waiter.done, 1));
    cr_assert(eq(uint, testing_peer_attempts(second), 1));
    fake_world_end(&world);
}

Test(regressions, channels_of_a_shared_link_end_when_their_targets_drain_is_up)
{
    struct fake_user by_target = {0}, by_host = {0};
    struct pool_target_options options;
    struct pool_endpoint endpoint = {.size = sizeof endpoint, .address = A, .protocol = &fake_shared};

    begin();
    fake_echo(&world, A);
    fake_world_open(&world);
    pool_target_options_init(&options);
    options.endpoints = &endpoint;
    options.n_endpoints = 1;
    struct pool_target *target = pool_target_add(world.pool, "target", &options);
    fake_hold(&world, &by_target, "target");
    hold_host(&by_host, host_of(&fake_shared, A));
    cr_assert(eq(int, pool_target_drain(target, 0.5, NULL, NULL), 0));
    fake_run(&world, 0.6);
    cr_assert(eq(uint, by_target.closed, 1));
    cr_assert(eq(uint, by_host.closed, 0));
    cr_assert(eq(uint, fake_stats(&world).links, 1));
    fake_world_end(&world);
}

Test(regressions, an_attempt_too_many_does_not_take_a_ready_host_down)
{
    struct fake_user holder = {0}, waiter = {0};

    begin();
    world.backoff.max_attempts = 1;
    struct testing_peer *peer = fake_echo(&world, A);
    fake_world_open(&world);
    fake_hold(&world, &holder, A);
    testing_peer_behave(peer, TESTING_REFUSE);
    cr_assert(eq(int, fake_ask(&world, &waiter, A), POOL_PENDING));
    fake_run(&world, 1);
    cr_assert(eq(uint, waiter.done, 0));
    cr_assert(eq(int, pool_host_state(holder.lease.host), LINK_READY));
    fake_give_back(&holder);
    fake_run(&world, 0.1);
    cr_assert(eq(int, waiter.status, POOL_READY));
    fake_world_end(&world);
}

Test(regressions, a_host_is_forgotten_though_somebody_waited_as_its_time_came)
{
    struct fake_user holder = {0}, waiter = {.lease = {.timeout = 3}};

    begin();
    world.options.max_links = 1;
    world.options.host_timeout = 1;
    fake_echo(&world, A);
    fake_echo(&world, B);
    fake_world_open(&world);
    fake_hold(&world, &holder, A);
    cr_assert(eq(int, fake_ask(&world, &waiter, B), POOL_PENDING));
    fake_run(&world, 10);
    cr_assert(eq(int, waiter.status, LINKPOOL_ETIMEDOUT));
    cr_assert(eq(uint, fake_stats(&world).hosts, 1));
    fake_world_end(&world);
}

/* ---- dialled in a circle ---- */

Test(regressions, links_kept_up_to_a_peer_that_hangs_up_come_at_growing_gaps)
{
    begin();
    world.host.min_links = 2;
    struct testing_peer *peer = fake_peer(&world, A, TESTING_ACCEPT_AND_CLOSE);
    fake_world_open(&world);
    cr_assert(ne(ptr, pool_host(world.pool, A), NULL));
    fake_run(&world, 20);
    cr_assert(ge(uint, testing_peer_attempts(peer), 5));
    cr_assert(le(uint, testing_peer_attempts(peer), 100));
    fake_world_end(&world);
}

Test(regressions, what_is_kept_up_does_not_take_the_place_of_what_is_kept_up)
{
    begin();
    world.options.max_links = 1;
    world.host.min_links = 1;
    struct testing_peer *a = fake_echo(&world, A), *b = fake_echo(&world, B);
    fake_world_open(&world);
    cr_assert(ne(ptr, pool_host(world.pool, A), NULL));
    fake_run(&world, 0.1);
    cr_assert(ne(ptr, pool_host(world.pool, B), NULL));
    fake_run(&world, 10);
    cr_assert(eq(uint, testing_peer_attempts(a) + testing_peer_attempts(b), 1));
    fake_world_end(&world);
}

Test(regressions, a_drained_pool_opens_nothing_that_was_asked_for_before)
{
    begin();
    world.options.max_links = 1;
    struct testing_peer *peer = fake_echo(&world, A);
    fake_world_open(&world);
    cr_assert(eq(int, pool_host_start(pool_host(world.pool, A)), 0));
    cr_assert(eq(int, pool_drain(world.pool, INFINITY, NULL, NULL), 0));
    fake_run(&world, 10);
    cr_assert(eq(uint, testing_peer_attempts(peer), 0));
    fake_world_end(&world);
}

Test(regressions, the_spread_after_a_loss_over_each_who_waits_has_an_attempt)
{
    struct fake_user holder = {0}, first = {0}, second = {0};

    begin();
    struct testing_peer *peer = fake_echo(&world, A);
    fake_world_open(&world);
    fake_target(&world, "target", &pool_pick_first, (const char *const[]){A}, 1);
    fake_hold(&world, &holder, A);
    fake_run(&world, 11); /* stable: what ends it is a loss */
    fake_give_back(&holder);
    testing_peer_cut(peer, LINK_RESET);
    testing_peer_delay(peer, 1, 0);
    fake_run(&world, 0.001);
    cr_assert(eq(int, fake_ask(&world, &first, A), POOL_PENDING));
    cr_assert(eq(int, fake_ask(&world, &second, "target"), POOL_PENDING));
    fake_run(&world, 0.3);
    cr_assert(eq(uint, testing_peer_attempts(peer), 3));
    fake_world_end(&world);
}

Test(regressions, an_attempt_under_way_does_not_undo_a_start_that_came_after_it)
{
    begin();
    world.backoff.max_attempts = 1;
    struct testing_peer *peer = fake_peer(&world, A, TESTING_BLACK_HOLE);
    fake_world_open(&world);
    struct pool_host *host = pool_host(world.pool, A);
    cr_assert(eq(int, pool_host_start(host), 0));
    fake_run(&world, 2.9);
    cr_assert(eq(int, pool_host_start(host), 0));
    fake_run(&world, 0.101); /* the attempt under way times out */
    testing_peer_behave(peer, TESTING_ACCEPT);
    fake_run(&world, 5);
    cr_assert(eq(int, pool_host_state(host), LINK_READY));
    fake_world_end(&world);
}

/* ---- places ---- */

Test(regressions, an_unused_link_is_opened_in_the_place_of_one_given_back)
{
    struct fake_user holder = {0}, waiter = {.lease = {.flags = POOL_FRESH}};

    begin();
    world.host.max_links = 1;
    fake_echo(&world, A);
    fake_world_open(&world);
    fake_hold(&world, &holder, A);
    cr_assert(eq(int, fake_ask(&world, &waiter, A), POOL_PENDING));
    fake_run(&world, 0.1);
    fake_give_back(&holder);
    fake_run(&world, 0.1);
    cr_assert(eq(int, waiter.status, POOL_READY));
    cr_assert(eq(uint, waiter.done, 1));
    cr_assert(not(waiter.lease.reused));
    fake_world_end(&world);
}

Test(regressions, an_unused_link_takes_the_place_of_its_hosts_idle_one_when_the_pool_is_full)
{
    struct fake_user holder = {0}, waiter = {.lease = {.flags = POOL_FRESH}};

    begin();
    world.options.max_links = 1;
    fake_echo(&world, A);
    fake_world_open(&world);
    fake_hold(&world, &holder, A);
    fake_give_back(&holder);
    cr_assert(eq(int, fake_ask(&world, &waiter, A), POOL_PENDING));
    fake_run(&world, 0.1);
    cr_assert(eq(int, waiter.status, POOL_READY));
    cr_assert(eq(uint, waiter.done, 1));
    fake_world_end(&world);
}

Test(regressions, a_link_that_came_up_for_nobody_gives_its_place_to_who_waits)
{
    struct fake_user gone = {0}, waiter = {0};

    begin();
    world.options.max_links = 1;
    testing_peer_delay(fake_echo(&world, A), 0.5, 0);
    fake_echo(&world, B);
    fake_world_open(&world);
    cr_assert(eq(int, fake_ask(&world, &gone, A), POOL_PENDING));
    fake_run(&world, 0.1);
    cr_assert(eq(int, fake_ask(&world, &waiter, B), POOL_PENDING));
    fake_run(&world, 0.1);
    cr_assert(eq(int, pool_cancel(&gone.lease), 0));
    fake_run(&world, 0.5);
    cr_assert(eq(int, waiter.status, POOL_READY));
    cr_assert(eq(uint, waiter.done, 1));
    fake_world_end(&world);
}

/* ---- a picker by lease ---- */

static const struct pool_picker hashed = {
    .size = sizeof hashed, .name = "hashed", .pick = fake_pick_by_hash, .takes = fake_takes_by_hash};

Test(regressions, who_comes_to_the_head_of_its_line_is_looked_at)
{
    struct fake_user user = {0}, head = {.lease = {.timeout = 0.5, .hash = 0}}, next = {.lease = {.hash = 1}};

    begin();
    fake_peer(&world, A, TESTING_BLACK_HOLE);
    fake_echo(&world, B);
    fake_world_open(&world);
    fake_target(&world, "target", &hashed, (const char *const[]){A, B}, 2);
    fake_hold(&world, &user, B);
    cr_assert(eq(int, fake_ask(&world, &head, "target"), POOL_PENDING));
    cr_assert(eq(int, fake_ask(&world, &next, "target"), POOL_PENDING));
    fake_run(&world, 0.1);
    fake_give_back(&user);
    fake_run(&world, 0.5);
    cr_assert(eq(int, head.status, LINKPOOL_ETIMEDOUT));
    cr_assert(eq(int, next.status, POOL_READY));
    cr_assert(eq(uint, next.done, 1));
    fake_world_end(&world);
}

Test(regressions, who_is_next_behind_a_wish_is_looked_at)
{
    struct fake_user user = {0}, wish = {.lease = {.hash = 0, .flags = POOL_FRESH}},
                     block = {.lease = {.timeout = 0.5, .hash = 0}}, next = {.lease = {.hash = 1}};

    begin();
    world.host.connect_timeout = 10;
    fake_peer(&world, A, TESTING_BLACK_HOLE);
    fake_echo(&world, B);
    fake_world_open(&world);
    fake_target(&world, "target", &hashed, (const char *const[]){A, B}, 2);
    fake_hold(&world, &user, B);
    cr_assert(eq(int, fake_ask(&world, &wish, "target"), POOL_PENDING));
    cr_assert(eq(int, fake_ask(&world, &block, "target"), POOL_PENDING));
    cr_assert(eq(int, fake_ask(&world, &next, "target"), POOL_PENDING));
    fake_run(&world, 0.1);
    fake_give_back(&user);
    fake_run(&world, 0.5);
    cr_assert(eq(int, wish.status, POOL_PENDING));
    cr_assert(eq(int, block.status, LINKPOOL_ETIMEDOUT));
    cr_assert(eq(int, next.status, POOL_READY));
    fake_world_end(&world);
}

/* The first host while it is READY, else the second. */
static int by_state(const struct pool_pick *pick, const struct pool_lease *lease, uint64_t draw)
{
    (void)lease, (void)draw;
    return pool_host_state(pick->hosts[0]) == LINK_READY ? 0 : 1;
}

static bool is_by_state(const struct pool_pick *pick, const struct pool_lease *lease, size_t i)
{
    return by_state(pick, lease, 0) == (int)i;
}

static const struct pool_picker stately = {
    .size = sizeof stately, .name = "stately", .pick = by_state, .takes = is_by_state};

static void stately_target(struct pool_endpoint *endpoints)
{
    struct pool_target_options options;

    pool_target_options_init(&options);
    options.picker = &stately;
    options.endpoints = endpoints;
    options.n_endpoints = 2;
    cr_assert(ne(ptr, pool_target_add(world.pool, "target", &options), NULL));
}

Test(regressions, a_line_in_want_of_a_link_is_served_when_its_picker_takes_another_host)
{
    struct fake_user first = {0}, stream = {0}, older = {0}, waiter = {0};
    struct pool_endpoint endpoints[] = {
        {.size = sizeof *endpoints, .address = A}, {.size = sizeof *endpoints, .address = B, .protocol = &fake_shared}};

    begin();
    world.options.max_links = 2;
    fake_echo(&world, A);
    fake_echo(&world, B);
    fake_peer(&world, "10.0.0.3:80", TESTING_BLACK_HOLE);
    fake_world_open(&world);
    stately_target(endpoints);
    fake_hold(&world, &first, A);
    hold_host(&stream, pool_host_for(world.pool, &endpoints[1], NULL));
    cr_assert(eq(int, fake_ask(&world, &older, "10.0.0.3:80"), POOL_PENDING));
    cr_assert(eq(int, fake_ask(&world, &waiter, "target"), POOL_PENDING));
    fake_run(&world, 0.1);
    fake_give_back(&first); /* its link makes room for the older one, and its host is no longer READY */
    fake_run(&world, 0.1);
    cr_assert(eq(int, waiter.status, POOL_READY));
    fake_world_end(&world);
}

Test(regressions, who_comes_to_the_head_while_its_line_is_served_is_looked_at)
{
    struct fake_user one = {0}, two = {0}, head = {.lease = {.hash = 1}}, next = {.lease = {.hash = 0}},
                     block = {.lease = {.hash = 2, .timeout = 0.5}};

    begin();
    fake_echo(&world, A);
    fake_echo(&world, B);
    fake_peer(&world, "10.0.0.3:80", TESTING_BLACK_HOLE);
    fake_world_open(&world);
    fake_target(&world, "target", &hashed, (const char *const[]){A, B, "10.0.0.3:80"}, 3);
    fake_hold(&world, &one, A);
    fake_hold(&world, &two, B);
    cr_assert(eq(int, fake_ask(&world, &block, "target"), POOL_PENDING));
    cr_assert(eq(int, fake_ask(&world, &head, "target"), POOL_PENDING));
    cr_assert(eq(int, fake_ask(&world, &next, "target"), POOL_PENDING));
    fake_run(&world, 0.1);
    fake_give_back(&one);
    fake_give_back(&two);
    fake_run(&world, 0.5); /* both links are free as the first of the line goes */
    cr_assert(eq(int, block.status, LINKPOOL_ETIMEDOUT));
    cr_assert(eq(int, head.status, POOL_READY));
    cr_assert(eq(int, next.status, POOL_READY));
    fake_world_end(&world);
}

Test(regressions, a_probe_in_want_of_a_link_is_made_though_nobody_waits_any_more)
{
    struct fake_user holder = {0}, waiter = {.lease = {.flags = POOL_WAIT_FOR_READY}};

    begin();
    world.options.max_links = 1;
    struct testing_peer *peer = fake_peer(&world, A, TESTING_REFUSE);
    fake_echo(&world, B);
    fake_world_open(&world);
    struct pool_host *host = pool_host(world.pool, A);
    cr_assert(eq(int, fake_ask(&world, &waiter, A), POOL_PENDING));
    fake_run(&world, 0.01);
    cr_assert(eq(int, (int)pool_host_state(host), LINK_BACKOFF));
    fake_hold(&world, &holder, B);
    testing_peer_behave(peer, TESTING_ACCEPT);
    fake_run(&world, 1); /* its probe is due, and the one link allowed is held */
    cr_assert(eq(int, pool_cancel(&waiter.lease), 0));
    fake_run(&world, 1);
    cr_assert(eq(int, pool_release(&holder.lease, POOL_DISCARD), 0));
    fake_run(&world, 10);
    cr_assert(ne(int, (int)pool_host_state(host), LINK_BACKOFF));
    fake_world_end(&world);
}

static int rotate(const struct pool_pick *pick, const struct pool_lease *lease, uint64_t draw)
{
    unsigned *next = pick->state;

    (void)lease, (void)draw;
    return (int)((*next)++ % pick->n);
}

static const struct pool_picker rotating = {
    .size = sizeof rotating, .name = "rotating", .state_size = sizeof(unsigned), .pick = rotate};

Test(regressions, a_host_with_its_half_of_the_attempts_leaves_the_others_theirs)
{
    struct fake_user first = {0}, second = {0};

    begin();
    world.options.max_connecting = 2;
    fake_peer(&world, A, TESTING_BLACK_HOLE);
    struct testing_peer *other = fake_peer(&world, B, TESTING_BLACK_HOLE);
    fake_world_open(&world);
    cr_assert(eq(int, fake_ask(&world, &first, A), POOL_PENDING));
    fake_run(&world, 0.01);
    fake_target(&world, "target", &rotating, (const char *const[]){B, A}, 2);
    cr_assert(eq(int, fake_ask(&world, &second, "target"), POOL_PENDING));
    fake_run(&world, 0.01);
    cr_assert(eq(uint, testing_peer_attempts(other), 1));
    fake_world_end(&world);
}

static int pick_none_but_the_first(const struct pool_pick *pick, const struct pool_lease *lease, uint64_t draw)
{
    (void)lease, (void)draw;
    return pick->can(pick->hosts[0]) == POOL_HOST_DOWN ? POOL_PICK_DOWN : 0;
}

/* It takes any host that falls free, though it asks for the first alone. */
static const struct pool_picker set_on_the_first = {
    .size = sizeof set_on_the_first, .name = "first", .pick = pick_none_but_the_first};

/* No attempt is left, and the line was looked at while the lease with a wish was alone in it. */
Test(regressions, whoever_joins_a_line_that_waits_for_an_attempt_has_what_is_free)
{
    struct fake_user first = {0}, second = {0}, attempt = {0}, other = {0}, choosy = {.lease.flags = POOL_FRESH},
                     plain = {0};

    begin();
    world.options.max_connecting = 1;
    fake_echo(&world, A);
    fake_echo(&world, B);
    fake_peer(&world, C, TESTING_BLACK_HOLE);
    fake_peer(&world, D, TESTING_BLACK_HOLE);
    fake_world_open(&world);
    fake_target(&world, "target", &set_on_the_first, (const char *const[]){A, B}, 2);
    fake_hold(&world, &first, A);
    fake_hold(&world, &second, B);
    cr_assert(eq(int, fake_ask(&world, &attempt, C), POOL_PENDING));
    fake_run(&world, 0.01);
    cr_assert(eq(int, fake_ask(&world, &other, D), POOL_PENDING));
    fake_run(&world, 0.01);
    cr_assert(eq(int, fake_ask(&world, &choosy, "target"), POOL_PENDING));
    fake_run(&world, 0.01);
    fake_give_back(&second);
    fake_run(&world, 0.01);
    cr_assert(eq(int, fake_ask(&world, &plain, "target"), POOL_PENDING));
    fake_run(&world, 0.01);
    cr_assert(eq(int, plain.status, POOL_READY));
    cr_assert(eq(int, choosy.status, POOL_PENDING));
    fake_world_end(&world);
}

/* The same where the line starves for a link: it has been looked at, and nothing happens to it. */
Test(regressions, whoever_joins_a_line_that_starves_has_what_is_free)
{
    struct fake_user three[3] = {0}, one = {0}, choosy = {.lease.flags = POOL_FRESH}, plain = {0};

    begin();
    world.options.max_links = 2;
    world.host.protocol = &fake_shared; /* three channels a link */
    fake_echo(&world, A);
    fake_echo(&world, B);
    fake_world_open(&world);
    fake_target(&world, "target", &set_on_the_first, (const char *const[]){A, B}, 2);
    for (int i = 0; i < 3; i++)
        fake_hold(&world, &three[i], A);
    fake_hold(&world, &one, B);
    cr_assert(eq(int, fake_ask(&world, &choosy, "target"), POOL_PENDING));
    fake_run(&world, 0.01);
    cr_assert(eq(int, fake_ask(&world, &plain, "target"), POOL_PENDING));
    fake_run(&world, 0.01);
    cr_assert(eq(int, plain.status, POOL_READY));
    cr_assert(eq(int, choosy.status, POOL_PENDING));
    fake_world_end(&world);
}

static struct protocol_link *latest;

static int note_latest(struct protocol_link *pl)
{
    latest = pl;
    return protocol_ready(pl);
}

static struct fake_user *newcomer;

static void ask_by_target(struct pool_lease *told)
{
    cr_assert(eq(int, told->status, POOL_READY));
    fake_ask(&world, newcomer, "target");
}

/* A winner whose link has died is back in the line of its host, where another link is free by now. In the same turn,
 * before lines are looked at, somebody is told of his and asks by a target of that host. */
Test(regressions, who_asks_by_a_target_goes_behind_the_hosts_own_line)
{
    static struct protocol noting;
    struct fake_user first = {0}, second = {0}, third = {0}, fourth = {0}, winner = {0}, comer = {0};
    struct pool_lease told = {.done = ask_by_target};

    noting = protocol_raw;
    noting.start = note_latest;
    newcomer = &comer;
    begin();
    world.host.protocol = &noting;
    world.host.max_links = 2;
    fake_echo(&world, A);
    fake_echo(&world, B);
    fake_world_open(&world);
    fake_target(&world, "target", &pool_round_robin, (const char *const[]){A}, 1);
    fake_hold(&world, &first, A);
    struct protocol_link *doomed = latest;
    fake_hold(&world, &second, A);
    fake_hold(&world, &third, B);
    fake_hold(&world, &fourth, B);
    cr_assert(eq(int, fake_ask(&world, &winner, A), POOL_PENDING));
    cr_assert(eq(int, pool_acquire(world.pool, B, &told), POOL_PENDING));
    fake_run(&world, 0.01);
    fake_give_back(&first); /* to the winner, */
    fake_give_back(&second);
    fake_give_back(&third); /* to one who asks when he is told */
    protocol_fail(doomed, LINK_RESET, NULL);
    fake_settle(&world);
    cr_assert(eq(int, winner.status, POOL_READY));
    cr_assert(eq(int, comer.status, POOL_PENDING));
    cr_assert(eq(int, pool_release(&told, POOL_REUSE), 0));
    fake_world_end(&world);
}

/* There is room for a link, turn after turn, and no attempt: who waits longest stays the first. */
Test(regressions, those_who_starve_keep_their_order_while_there_is_no_attempt)
{
    struct fake_user three[3] = {0}, attempt = {0}, older = {.lease.timeout = 20}, younger = {.lease.timeout = 20};

    begin();
    world.options.max_connecting = 1;
    world.options.max_links = 3;
    for (int i = 0; i < 3; i++)
        fake_echo(&world, (const char *const[]){A, B, E}[i]);
    fake_echo(&world, D);
    fake_echo(&world, F);
    fake_peer(&world, C, TESTING_BLACK_HOLE);
    fake_world_open(&world);
    for (int i = 0; i < 3; i++)
        fake_hold(&world, &three[i], (const char *const[]){A, B, E}[i]);
    cr_assert(eq(int, fake_ask(&world, &attempt, C), POOL_PENDING));
    fake_run(&world, 0.01);
    cr_assert(eq(int, fake_ask(&world, &older, D), POOL_PENDING));
    fake_run(&world, 0.01);
    cr_assert(eq(int, fake_ask(&world, &younger, F), POOL_PENDING));
    fake_run(&world, 0.01);
    for (int i = 0; i < 3; i++) {
        cr_assert(eq(int, pool_release(&three[i].lease, POOL_DISCARD), 0));
        fake_run(&world, 0.01);
    }
    fake_run(&world, 15);
    cr_assert(eq(int, older.status, POOL_READY));
    cr_assert(eq(int, younger.status, POOL_READY));
    cr_assert(lt(uint, older.place, younger.place));
    fake_world_end(&world);
}

/* The attempt is a target's, whose lease is gone; the host's own lease starves until the other's place falls free. */
Test(regressions, a_drained_host_ends_its_attempt_when_its_last_lease_fails_for_want_of_memory)
{
    struct fake_user holder = {0}, gone = {0}, last = {0};
    struct pool_host_stats stats;

    begin();
    world.options.max_links = 2;
    fake_echo(&world, B);
    fake_peer(&world, A, TESTING_BLACK_HOLE);
    fake_world_open(&world);
    fake_hold(&world, &holder, B);
    fake_target(&world, "target", &pool_pick_first, (const char *const[]){A}, 1);
    cr_assert(eq(int, fake_ask(&world, &gone, "target"), POOL_PENDING));
    fake_run(&world, 0.01);
    struct pool_host *host = host_of(NULL, A);
    cr_assert(eq(int, fake_ask_host(&world, &last, host), POOL_PENDING));
    fake_run(&world, 0.01);
    cr_assert(eq(int, pool_cancel(&gone.lease), 0));
    cr_assert(eq(int, pool_host_drain(host, 60), 0));
    testing_fail_allocation(world.t, 1, true);
    cr_assert(eq(int, pool_release(&holder.lease, POOL_DISCARD), 0));
    fake_run(&world, 0.01);
    cr_assert(eq(int, last.lease.status, LINKPOOL_ENOMEM));
    pool_host_stats(host, &stats, sizeof stats);
    cr_assert(eq(uint, stats.links[LINK_CONNECTING], 0));
    testing_fail_allocation(world.t, 0, false);
    fake_world_end(&world);
}

/* One place for a host that is kept up and another that a lease waits for, whose peer hangs up: the lease goes first.
 */
Test(regressions, what_is_kept_up_takes_no_place_that_a_lease_waits_for)
{
    struct fake_user holder = {0}, waiter = {.lease = {.flags = POOL_WAIT_FOR_READY, .timeout = INFINITY}};
    struct pool_endpoint endpoint = {.size = sizeof endpoint, .address = B};
    struct pool_host_options options;

    begin();
    world.options.max_links = 1;
    fake_echo(&world, A);
    struct testing_peer *kept_up = fake_echo(&world, B);
    fake_world_open(&world);
    fake_hold(&world, &holder, A);
    options = world.host;
    options.min_links = 1;
    cr_assert(ne(ptr, pool_host_for(world.pool, &endpoint, &options), NULL));
    fake_run(&world, 0.01);
    cr_assert(eq(int, fake_ask(&world, &waiter, A), POOL_PENDING));
    cr_assert(eq(int, pool_release(&holder.lease, POOL_DISCARD), 0));
    fake_run(&world, 0.2);
    cr_assert(ne(ptr, waiter.lease.channel, NULL));
    cr_assert(eq(uint, testing_peer_attempts(kept_up), 0));
    fake_give_back(&waiter);
    fake_world_end(&world);
}

/* ---- a pool's end, as its targets show it ---- */

Test(regressions, a_target_is_closed_when_its_pool_drains)
{
    begin();
    fake_world_open(&world);
    struct pool_target *target = fake_target(&world, "target", &pool_pick_first, (const char *const[]){A}, 1);
    cr_assert(eq(int, pool_drain(world.pool, INFINITY, NULL, NULL), 0));
    cr_assert(eq(int, pool_target_state(target), LINK_CLOSED));
    fake_world_end(&world);
}

Test(regressions, a_link_of_a_pool_is_not_stopped_by_its_holder)
{
    struct fake_user user = {0};

    begin();
    fake_echo(&world, A);
    fake_world_open(&world);
    fake_hold(&world, &user, A);
    struct link *link = channel_link(user.lease.channel);
    cr_assert(eq(int, link_start(link), LINKPOOL_ESTATE));
    link_stop(link);
    link_free(link);
    fake_exchange(&world, &user);
    fake_world_end(&world);
}
