/* pool_ends.c - of which kind the end of a link is, quiet, a loss or a failure, and what it costs those who come next.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>

#include "tests/fakes/world.h"

static const char a[] = "10.0.0.1:80", b[] = "10.0.0.2:80";

/* Backoff 0.5, 1, 2, 4, 4, ... without jitter; options may be changed before open_world(). */
static void begin(struct fake_world *world)
{
    fake_world_begin(world);
    world->backoff.jitter = BACKOFF_NONE;
    world->backoff.base = 0.5;
    world->backoff.factor = 2;
    world->backoff.cap = 4;
}

static struct testing_peer *open_world(struct fake_world *world)
{
    fake_world_open(world);
    return fake_echo(world, a);
}

/* The next use finds a new link at once. */
static void expect_no_cost(struct fake_world *world)
{
    struct fake_user next = {0};
    double asked = testing_now(world->t);

    cr_assert(eq(uint, fake_host_stats(fake_host(world, a)).failures, 0));
    cr_assert(ge(int, fake_ask(world, &next, a), POOL_READY));
    fake_settle(world);
    cr_assert(ne(ptr, next.lease.channel, NULL));
    cr_assert(epsilon_eq(dbl, testing_now(world->t) - asked, 0, 2e-6));
    cr_assert(not(next.lease.reused));
    fake_give_back(&next);
}

/* ---- quiet ---- */

enum way {
    AGE,
    USES,
    IDLE,
    DRAIN,
    RECYCLE,
    ROOM,
    UNCLEAN,
    DISCARD,
    WAYS
};

static void set_up(struct fake_world *world, enum way way)
{
    begin(world);
    if (way == AGE)
        world->host.max_age = 0.2;
    if (way == USES)
        world->host.max_uses = 1;
    if (way == IDLE)
        world->host.idle_timeout = 0.2;
    if (way == ROOM)
        world->options.max_links = 1;
    open_world(world);
    fake_echo(world, b);
}

/* Ends a link that is younger than 10 s and has never answered. */
static void end_it(struct fake_world *world, enum way way)
{
    struct fake_user user = {0}, other = {0};

    fake_hold(world, &user, a);
    struct pool_host *host = user.lease.host;
    if (way == UNCLEAN)
        fake_send(&user, "x");
    cr_assert(eq(int, pool_release(&user.lease, way == DISCARD ? POOL_DISCARD : POOL_REUSE), 0));
    if (way == AGE || way == IDLE)
        fake_run(world, 0.3);
    if (way == RECYCLE)
        cr_assert(eq(int, pool_host_recycle(host, 0), 0));
    if (way == DRAIN) {
        cr_assert(eq(int, pool_host_drain(host, 0), 0));
        fake_settle(world);
        cr_assert(eq(int, pool_host_start(host), 0));
    }
    if (way == ROOM) {
        fake_hold(world, &other, b);
        cr_assert(eq(int, pool_release(&other.lease, POOL_DISCARD), 0));
    }
}

Test(pool_ends, an_end_of_ours_is_quiet_at_any_age)
{
    static const enum link_reason reasons[WAYS] = {LINK_TOO_OLD, LINK_USED_UP, LINK_IDLE_TIMEOUT, LINK_DRAINED,
        LINK_DRAINED, LINK_MADE_ROOM, LINK_UNEXPECTED_DATA, LINK_DISCARDED};

    for (int way = 0; way < WAYS; way++) {
        struct fake_world world;
        set_up(&world, (enum way)way);
        end_it(&world, (enum way)way);
        cr_assert(eq(u64, fake_stats(&world).ends[reasons[way]], 1, "%d", way));
        cr_assert(ne(int, pool_host_state(fake_host(&world, a)), LINK_BACKOFF), "%d", way);
        cr_assert(eq(int, fake_host_stats(fake_host(&world, a)).last_reason, LINK_NO_REASON));
        expect_no_cost(&world);
        fake_world_end(&world);
    }
}

Test(pool_ends, a_close_after_the_holder_ended_its_own_side_is_quiet)
{
    for (int ends_its_side = 0; ends_its_side < 2; ends_its_side++) {
        struct fake_user user = {0};
        struct fake_world world;
        char byte;
        begin(&world);
        struct testing_peer *peer = open_world(&world);
        fake_hold(&world, &user, a);
        struct pool_host *host = user.lease.host;
        if (ends_its_side)
            cr_assert(eq(int, channel_shutdown(user.lease.channel), 0));
        else
            testing_peer_cut(peer, LINK_CLOSED_BY_PEER);
        fake_settle(&world);
        cr_assert(eq(long, channel_read(user.lease.channel, &byte, 1), 0));
        fake_give_back(&user);
        cr_assert(eq(u64, fake_stats(&world).ends[LINK_CLOSED_BY_PEER], 1));
        cr_assert(eq(int, pool_host_state(host), ends_its_side ? LINK_IDLE : LINK_BACKOFF));
        fake_world_end(&world);
    }
}

/* ---- under a policy that takes READY for proof ---- */

/* Where the host is once its link was reset at that age. */
static enum link_state reset_at(double age, bool used)
{
    struct fake_user user = {0};
    struct fake_world world;

    begin(&world);
    world.backoff.stable_after = 0;
    struct testing_peer *peer = open_world(&world);
    struct pool_host *host = pool_host(world.pool, a);
    if (used) {
        fake_hold(&world, &user, a);
        fake_give_back(&user);
    } else {
        cr_assert(eq(int, pool_host_start(host), 0));
    }
    fake_run(&world, age);
    cr_assert(eq(int, pool_host_state(host), LINK_READY));
    testing_peer_cut(peer, LINK_RESET);
    fake_settle(&world);
    enum link_state state = pool_host_state(host);
    fake_world_end(&world);
    return state;
}

Test(pool_ends, a_link_that_dies_at_once_and_unused_is_a_failure_whatever_the_policy)
{
    cr_assert(eq(int, reset_at(0.09, false), LINK_BACKOFF));
    cr_assert(eq(int, reset_at(0.11, false), LINK_IDLE)); /* a loss: no verdict */
    cr_assert(eq(int, reset_at(0.09, true), LINK_IDLE));
}

Test(pool_ends, who_hangs_up_at_once_is_not_dialled_in_a_circle_whatever_the_policy)
{
    struct fake_world world;

    begin(&world);
    world.backoff.stable_after = world.backoff.reconnect_spread = 0;
    world.host.min_links = 1;
    struct testing_peer *peer = open_world(&world);
    testing_peer_behave(peer, TESTING_ACCEPT_AND_CLOSE);
    pool_host(world.pool, a);
    fake_run(&world, 10.1);
    cr_assert(eq(uint, testing_peer_accepted(peer), 21)); /* the first, and one each half second */
    fake_world_end(&world);
}

static int await_greeting(struct protocol_link *pl)
{
    (void)pl;
    return 0;
}

/* READY by the greeting; then whatever has come with it. */
static int take_greeting(struct protocol_link *pl, unsigned events)
{
    char bytes[8];
    ssize_t got;

    (void)events;
    while ((got = protocol_read(pl, bytes, sizeof bytes)) > 0)
        protocol_ready(pl);
    return got == LINKPOOL_ELOST ? LINKPOOL_ELOST : 0;
}

static const struct protocol greeted = {.size = sizeof greeted,
    .name = "greeted",
    .flags = PROTOCOL_SHARED,
    .start = await_greeting,
    .input = take_greeting};

/* The end comes with the greeting: who has won the link is never told, and that is no use of it. */
Test(pool_ends, who_hangs_up_as_it_greets_is_not_dialled_in_a_circle)
{
    struct fake_user waiter = {.lease = {.flags = POOL_WAIT_FOR_READY, .timeout = INFINITY}};
    struct pool_endpoint endpoint = {.size = sizeof endpoint, .address = a, .protocol = &greeted};
    struct fake_world world;

    begin(&world);
    world.backoff.stable_after = world.backoff.reconnect_spread = 0;
    struct testing_peer *peer = open_world(&world);
    testing_peer_behave(peer, TESTING_ACCEPT_AND_CLOSE);
    testing_peer_greet(peer, "hello", 5);
    cr_assert(eq(int, fake_ask_host(&world, &waiter, pool_host_for(world.pool, &endpoint, NULL)), POOL_PENDING));
    fake_run(&world, 10.1);
    cr_assert(eq(uint, testing_peer_accepted(peer), 21)); /* the first, and one each half second */
    cr_assert(eq(int, pool_cancel(&waiter.lease), 0));
    fake_world_end(&world);
}

/* ---- paced, and forgiven ---- */

Test(pool_ends, a_failure_beside_a_ready_link_paces_the_next_attempts)
{
    static const double gaps[] = {0.5, 1, 2, 4, 4};
    struct fake_user holder = {0}, waiter = {.lease.timeout = INFINITY};
    struct fake_world world;

    begin(&world);
    struct testing_peer *peer = open_world(&world);
    fake_hold(&world, &holder, a);
    testing_peer_behave(peer, TESTING_REFUSE);
    cr_assert(eq(int, fake_ask(&world, &waiter, a), POOL_PENDING));
    fake_run(&world, 11.6);
    cr_assert(eq(uint, testing_peer_attempts(peer), 7));
    for (unsigned i = 0; i < 5; i++)
        cr_assert(epsilon_eq(
            dbl, testing_peer_attempt_at(peer, i + 2) - testing_peer_attempt_at(peer, i + 1), gaps[i], 1e-6));
    cr_assert(eq(int, pool_host_state(holder.lease.host), LINK_READY));
    cr_assert(eq(uint, waiter.done, 0)); /* nothing has failed: it waits for the link that is there */
    fake_world_end(&world);
}

Test(pool_ends, what_was_under_way_as_failures_were_forgiven_is_forgiven_too)
{
    struct fake_user patient = {.lease = {.flags = POOL_WAIT_FOR_READY, .timeout = INFINITY}}, hasty = {0};
    struct fake_world world;

    begin(&world);
    struct testing_peer *peer = open_world(&world);
    testing_peer_behave(peer, TESTING_REFUSE);
    testing_peer_delay(peer, 1, 0);
    fake_ask(&world, &patient, a);
    fake_run(&world, 0.5);
    pool_reset_backoff(world.pool);
    fake_run(&world, 0.500001);
    struct pool_host *host = fake_host(&world, a);
    cr_assert(eq(uint, fake_host_stats(host).failed, 1));
    cr_assert(eq(uint, fake_host_stats(host).failures, 0));
    cr_assert(eq(int, fake_ask(&world, &hasty, a), POOL_PENDING)); /* no verdict */
    fake_run(&world, 0.25);
    cr_assert(ge(uint, testing_peer_attempts(peer), 2)); /* after the spread of a loss */
    fake_run(&world, 1.1);
    cr_assert(eq(int, pool_host_state(host), LINK_BACKOFF));
    cr_assert(eq(uint, fake_host_stats(host).failures, 1));
    cr_assert(eq(int, hasty.status, LINKPOOL_EUNAVAILABLE));
    fake_world_end(&world);
}

/* ---- replaced ---- */

Test(pool_ends, a_recycled_link_ends_between_leases_from_its_turn_on)
{
    struct fake_user users[2] = {0};
    struct fake_world world;

    begin(&world);
    struct testing_peer *peer = open_world(&world);
    for (int i = 0; i < 2; i++)
        fake_hold(&world, &users[i], a);
    cr_assert(eq(int, pool_host_recycle(users[0].lease.host, 1), 0)); /* from 1 s on, and from 2 s on */
    fake_run(&world, 3);
    cr_assert(eq(uint, testing_peer_open(peer), 2));
    for (unsigned i = 0; i < 2; i++) {
        fake_exchange(&world, &users[i]);
        fake_give_back(&users[i]);
        fake_settle(&world);
        cr_assert(eq(uint, testing_peer_open(peer), 1 - i));
    }
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_DRAINED], 2));
    fake_world_end(&world);
}
