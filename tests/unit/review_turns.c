/* review_turns.c - what a strict reading of the simulator's mends found, each as the smallest scenario. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <string.h>

#include "pool/internal.h"
#include "tests/fakes/shared.h"
#include "tests/fakes/world.h"

static const char a[] = "10.0.0.1:80", b[] = "10.0.0.2:80";

/* ---- numbers ---- */

/* How often a host that refuses is tried in ten minutes, so many attempts after its last failure. */
static unsigned tries_after(uint64_t attempts)
{
    struct fake_user first = {.lease = {.timeout = INFINITY, .flags = POOL_WAIT_FOR_READY}}, second = first;
    struct fake_world world;

    fake_world_begin(&world);
    fake_world_open(&world);
    struct testing_peer *peer = fake_peer(&world, a, TESTING_REFUSE);
    fake_ask(&world, &first, a);
    fake_run(&world, 0.5);
    testing_peer_behave(peer, TESTING_ACCEPT);
    fake_run(&world, 60);
    cr_assert(eq(int, pool_release(&first.lease, POOL_DISCARD), 0));
    world.pool->core.serial += attempts;
    testing_peer_behave(peer, TESTING_REFUSE);
    unsigned before = testing_peer_attempts(peer);
    fake_ask(&world, &second, a);
    fake_run(&world, 600);
    cr_assert(eq(int, pool_host_state(fake_host(&world, a)), LINK_BACKOFF));
    unsigned tries = testing_peer_attempts(peer) - before;
    fake_world_end(&world);
    return tries;
}

Test(review_turns, a_verdict_does_not_depend_on_how_many_attempts_there_were)
{
    unsigned usual = tries_after(0);

    cr_assert(eq(uint, tries_after((UINT64_C(1) << 31) + 100), usual));
    cr_assert(eq(uint, tries_after((UINT64_C(1) << 32) + 100), usual));
}

/* ---- a link for this lease, and for no other ---- */

Test(review_turns, a_lease_for_an_unused_link_ends_none_while_an_attempt_will_serve_it)
{
    struct fake_user users[2] = {0}, fresh = {.lease = {.timeout = INFINITY, .flags = POOL_FRESH}};
    struct fake_world world;

    fake_world_begin(&world);
    world.host.min_links = world.host.max_links = 2;
    fake_world_open(&world);
    struct testing_peer *peer = fake_echo(&world, a);
    struct pool_host *host = pool_host(world.pool, a);
    fake_hold(&world, &users[0], a);
    fake_hold(&world, &users[1], a);
    testing_peer_delay(peer, 1, 0);
    cr_assert(eq(int, pool_release(&users[1].lease, POOL_DISCARD), 0));
    fake_give_back(&users[0]);
    fake_run(&world, 0.5);
    cr_assert(eq(uint, fake_host_stats(host).links[LINK_CONNECTING], 1));
    cr_assert(eq(int, fake_ask(&world, &fresh, a), POOL_PENDING));
    fake_run(&world, 2);
    cr_assert(ne(ptr, fresh.lease.channel, NULL));
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_MADE_ROOM], 0));
    cr_assert(eq(uint, fake_host_stats(host).idle, 1));
    fake_world_end(&world);
}

Test(review_turns, a_lease_for_an_unused_link_ends_none_while_no_attempt_may_begin)
{
    struct fake_user users[3] = {0}, waiter = {.lease = {.timeout = INFINITY}};
    struct fake_user fresh = {.lease = {.timeout = INFINITY, .flags = POOL_FRESH}};
    struct fake_world world;

    fake_world_begin(&world);
    world.host.max_links = 4;
    world.options.max_connecting = 2; /* of which one for one host */
    fake_world_open(&world);
    struct testing_peer *peer = fake_echo(&world, a);
    for (int i = 0; i < 3; i++)
        fake_hold(&world, &users[i], a);
    testing_peer_delay(peer, 5, 0);
    cr_assert(eq(int, fake_ask(&world, &waiter, a), POOL_PENDING));
    fake_run(&world, 0.1);
    for (int i = 0; i < 3; i++)
        fake_exchange(&world, &users[i]);
    cr_assert(eq(int, pool_cancel(&waiter.lease), 0));
    for (int i = 0; i < 3; i++)
        fake_give_back(&users[i]);
    cr_assert(eq(int, fake_ask(&world, &fresh, a), POOL_PENDING));
    fake_run(&world, 0.1);
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_MADE_ROOM], 0));
    fake_world_end(&world);
}

/* ---- what a win given up, and a place given up, leave behind ---- */

Test(review_turns, a_win_given_up_is_no_use_of_a_shared_link)
{
    struct fake_user first = {0}, waiter = {.lease = {.timeout = INFINITY}};
    struct protocol one_channel = fake_shared;
    struct fake_world world;

    one_channel.max_channels = 1;
    fake_world_begin(&world);
    world.host.protocol = &one_channel;
    world.host.max_uses = 2;
    world.host.max_links = 1;
    fake_world_open(&world);
    fake_echo(&world, a);
    fake_hold(&world, &first, a);
    cr_assert(eq(int, fake_ask(&world, &waiter, a), POOL_PENDING));
    cr_assert(eq(int, pool_release(&first.lease, POOL_REUSE), 0)); /* the waiter has won, and is told later */
    cr_assert(eq(int, pool_cancel(&waiter.lease), 0));
    fake_run(&world, 0.1);
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_USED_UP], 0));
    cr_assert(eq(uint, fake_stats(&world).idle, 1));
    fake_world_end(&world);
}

Test(review_turns, a_place_given_up_shortens_no_longer_pause_of_what_is_kept_up)
{
    struct fake_world world;

    fake_world_begin(&world);
    fake_world_open(&world);
    struct pool_host *host = pool_host(world.pool, a);
    pool__keep_after(host, 2);
    pool__keep_after(host, 0.25);
    cr_assert(epsilon_eq(dbl, host->keep_after, testing_now(world.t) + 2, 1e-9));
    fake_world_end(&world);
}

/* ---- two pools on one loop ---- */

static struct {
    struct fake_world world;
    struct pool *other;
    struct fake_user next;
} two;

static void ask_the_other(struct channel *channel)
{
    struct pool *own = two.world.pool;

    channel_want(channel, 0);
    two.world.pool = two.other;
    fake_ask(&two.world, &two.next, b);
    two.world.pool = own;
}

/* The other pool's idle link has its end in the poll in which this one's holder reads, and asks the other. */
static void meet(bool end_is_first)
{
    static const struct channel_events events = {.readable = ask_the_other};
    struct fake_user reader = {0}, user = {0};

    memset(&two, 0, sizeof two);
    fake_world_begin(&two.world);
    fake_world_open(&two.world);
    struct testing_peer *peer = fake_echo(&two.world, a), *others = fake_echo(&two.world, b);
    fake_hold(&two.world, &reader, a);
    struct pool *own = two.world.pool;
    two.other = two.world.pool = pool_new_on(testing_driver(two.world.t), &two.world.options);
    fake_hold(&two.world, &user, b);
    fake_exchange(&two.world, &user);
    fake_give_back(&user);
    two.world.pool = own;
    fake_run(&two.world, 20);
    cr_assert(eq(int, channel_watch(reader.lease.channel, &events, LINKPOOL_READ), 0));
    if (end_is_first)
        testing_peer_cut(others, LINK_CLOSED_BY_PEER);
    testing_peer_say(peer, "x", 1);
    if (!end_is_first)
        testing_peer_cut(others, LINK_CLOSED_BY_PEER);
    fake_run(&two.world, 1);
    cr_assert(eq(int, two.next.status, POOL_READY));
    cr_assert(not(two.next.lease.reused));
    pool_free(two.other);
    fake_world_end(&two.world);
}

Test(review_turns, a_link_handed_out_within_another_pools_callback_has_no_news_of_its_own)
{
    meet(false);
    meet(true);
}

/* ---- a link that hears nothing ---- */

static struct driver_ops ops;
static int (*real_start)(struct driver *driver, struct driver_io *io, int fd, unsigned events);
static int fails;

static int maybe_start(struct driver *driver, struct driver_io *io, int fd, unsigned events)
{
    return fails-- > 0 ? LINKPOOL_ENOMEM : real_start(driver, io, fd, events);
}

static struct transport_link *seen;

static enum transport_step see(struct transport_link *tl, unsigned events)
{
    seen = tl;
    return transport_tcp_open(tl, events);
}

static int moves;

/* Its descriptor is watched anew, so many times; the first fails. */
static int move_and_be_ready(struct protocol_link *pl)
{
    fails = moves > 0;
    for (int i = 0; i < moves; i++)
        transport_moved(seen, seen->fd);
    return protocol_ready(pl);
}

static void open_moving_world(struct fake_world *world, int times)
{
    static struct transport transport;
    static struct protocol protocol;

    moves = times;
    transport = transport_tcp;
    transport.open = see;
    protocol = protocol_raw;
    protocol.start = move_and_be_ready;
    fake_world_begin(world);
    world->host.transport = &transport;
    world->host.protocol = &protocol;
    struct driver *driver = testing_driver(world->t);
    ops = *driver->ops;
    real_start = ops.io_start;
    ops.io_start = maybe_start;
    driver->ops = &ops;
    world->pool = pool_new_on(driver, &world->options);
    fake_echo(world, a);
}

Test(review_turns, a_link_that_hears_nothing_ends_though_its_state_moves)
{
    struct fake_user user = {.lease = {.timeout = INFINITY}};
    struct fake_world world;

    open_moving_world(&world, 1);
    fake_ask(&world, &user, a);
    fake_run(&world, 0.1);
    cr_assert(ge(u64, fake_stats(&world).ends[LINK_NO_MEMORY], 1));
    fake_world_end(&world);
}

Test(review_turns, a_link_that_is_heard_again_goes_on)
{
    struct fake_user user = {.lease = {.timeout = INFINITY}};
    struct fake_world world;

    open_moving_world(&world, 2);
    fake_ask(&world, &user, a);
    fake_run(&world, 20);
    cr_assert(ne(ptr, user.lease.channel, NULL));
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_NO_MEMORY], 0));
    fake_exchange(&world, &user);
    fake_give_back(&user);
    fake_world_end(&world);
}

/* ---- hooks that call up where something is under way already ---- */

static int say_room_anew(struct protocol_link *pl, struct protocol_channel *pc)
{
    (void)pc;
    return protocol_set_room(pl, 2);
}

Test(review_turns, a_hook_that_says_its_room_within_a_lease_gives_nobody_two_channels)
{
    struct protocol says_room = fake_shared;
    struct fake_user users[3] = {0};
    struct fake_world world;

    says_room.max_channels = 1;
    says_room.open = say_room_anew;
    says_room.close = NULL;
    fake_world_begin(&world);
    world.host.protocol = &says_room;
    world.host.max_links = 1;
    fake_world_open(&world);
    fake_echo(&world, a);
    for (int i = 0; i < 3; i++)
        cr_assert(eq(int, fake_ask(&world, &users[i], a), POOL_PENDING));
    fake_run(&world, 0.1);
    cr_assert(eq(uint, world.told, 2));
    cr_assert(eq(uint, fake_stats(&world).leased, 2));
    cr_assert(eq(int, pool_release(&users[0].lease, POOL_REUSE), 0));
    fake_run(&world, 0.1);
    cr_assert(eq(uint, world.told, 3));
    fake_world_end(&world);
}

static int (*call_up)(struct protocol_link *pl);
static int answered;

static void call_up_at_the_end(struct protocol_link *pl)
{
    answered = call_up(pl);
}

static int go(struct protocol_link *pl)
{
    return protocol_going(pl, NULL, LINK_NO_REASON, NULL);
}

static int wait_for_ever(struct protocol_link *pl)
{
    (void)pl;
    return 0;
}

static void end_while(int (*calls)(struct protocol_link *pl), bool shakes_hands, bool is_shared)
{
    struct protocol protocol = is_shared ? fake_shared : protocol_raw;
    struct fake_user user = {0};
    struct fake_world world;

    call_up = calls;
    answered = 0;
    protocol.start = shakes_hands ? wait_for_ever : NULL;
    protocol.end = call_up_at_the_end;
    fake_world_begin(&world);
    world.host.protocol = &protocol;
    fake_world_open(&world);
    struct testing_peer *peer = fake_echo(&world, a);
    fake_ask(&world, &user, a);
    fake_run(&world, 0.1);
    testing_peer_cut(peer, LINK_RESET);
    fake_run(&world, 60);
    if (user.lease.channel) /* an exclusive one sees the end by itself */
        cr_assert(eq(int, pool_release(&user.lease, POOL_DISCARD), 0));
    fake_run(&world, 60);
    cr_assert(eq(int, answered, LINKPOOL_ELOST));
    fake_world_end(&world);
}

Test(review_turns, a_link_that_ends_is_lost_to_its_end_hook)
{
    for (int kind = 0; kind < 4; kind++) {
        end_while(protocol_ready, kind & 1, kind & 2);
        end_while(go, kind & 1, kind & 2);
    }
}

/* ---- what the mends brought, and nothing else takes ---- */

Test(review_turns, no_address_is_refused_as_an_empty_one)
{
    char text[160] = "", empty[160] = "";

    cr_assert(eq(int, link_address_check(NULL, text, sizeof text), LINKPOOL_EADDRESS));
    cr_assert(eq(int, link_address_check("", empty, sizeof empty), LINKPOOL_EADDRESS));
    cr_assert(eq(str, text, empty));
}

Test(review_turns, a_drain_ends_each_idle_link_once)
{
    struct fake_user users[3] = {0};
    struct fake_world world;

    fake_world_begin(&world);
    fake_world_open(&world);
    struct testing_peer *peer = fake_echo(&world, a);
    for (int i = 0; i < 3; i++)
        fake_hold(&world, &users[i], a);
    for (int i = 0; i < 3; i++)
        fake_give_back(&users[i]);
    cr_assert(eq(int, pool_host_drain(fake_host(&world, a), INFINITY), 0));
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_DRAINED], 3));
    fake_settle(&world);
    cr_assert(eq(uint, testing_peer_open(peer), 0));
    fake_world_end(&world);
}

static struct fake_user asker;
static struct fake_world *asked_world;
static struct pool_host *asked_host;

static void ask_the_shared_one(struct channel *channel)
{
    channel_want(channel, 0);
    fake_ask_host(asked_world, &asker, asked_host);
}

/* What comes to a shared link is its protocol's, and no reason not to lend it. */
Test(review_turns, a_shared_link_with_bytes_to_hear_is_handed_out_within_a_callback)
{
    static const struct channel_events events = {.readable = ask_the_shared_one};
    struct pool_endpoint endpoint = {.size = sizeof endpoint, .address = b, .protocol = &fake_shared};
    struct fake_user reader = {0}, user = {0};
    struct fake_world world;

    memset(&asker, 0, sizeof asker);
    asked_world = &world;
    fake_world_begin(&world);
    fake_world_open(&world);
    struct testing_peer *peer = fake_echo(&world, a), *others = fake_echo(&world, b);
    asked_host = pool_host_for(world.pool, &endpoint, NULL);
    fake_hold(&world, &reader, a);
    fake_ask_host(&world, &user, asked_host);
    fake_settle(&world);
    fake_give_back(&user);
    fake_run(&world, 1);
    cr_assert(eq(int, channel_watch(reader.lease.channel, &events, LINKPOOL_READ), 0));
    testing_peer_say(peer, "x", 1);
    testing_peer_say(others, "\0\0n", 4); /* a frame of the protocol's own */
    fake_run(&world, 1);
    cr_assert(eq(int, asker.status, POOL_READY));
    cr_assert(asker.lease.reused);
    cr_assert(ne(ptr, asker.lease.channel, NULL));
    fake_world_end(&world);
}

Test(review_turns, a_ready_link_that_is_heard_again_goes_on)
{
    struct fake_user user = {.lease = {.timeout = INFINITY}};
    struct fake_world world;

    open_moving_world(&world, 0);
    fake_ask(&world, &user, a);
    fails = 0;
    fake_run(&world, 1);
    cr_assert(ne(ptr, user.lease.channel, NULL));
    fails = 1;
    transport_moved(seen, seen->fd);
    transport_moved(seen, seen->fd);
    fake_run(&world, 20);
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_NO_MEMORY], 0));
    fake_exchange(&world, &user);
    fake_give_back(&user);
    fake_world_end(&world);
}
