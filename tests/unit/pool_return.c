/* pool_return.c - what is lent again: only a link proven clean; and what its holder knows when it is not. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#include "tests/fakes/shared.h"
#include "tests/fakes/world.h"

static const char a[] = "10.0.0.1:80";

static struct testing_peer *begin(struct fake_world *world, const struct protocol *protocol)
{
    fake_world_begin(world);
    if (protocol)
        world->host.protocol = protocol;
    fake_world_open(world);
    return fake_echo(world, a);
}

static uint64_t ends(const struct fake_world *world, enum link_reason reason)
{
    return fake_stats(world).ends[reason];
}

/* ---- clean, and not ---- */

Test(pool_return, an_exchange_that_is_complete_leaves_the_link_for_the_next)
{
    struct fake_user user = {0};
    struct fake_world world;

    struct testing_peer *peer = begin(&world, NULL);
    for (int i = 0; i < 10; i++) {
        fake_hold(&world, &user, a);
        fake_exchange(&world, &user);
        cr_assert(eq(u64, user.lease.bytes_sent, 1));
        cr_assert(eq(u64, user.lease.bytes_received, 1));
        fake_give_back(&user);
    }
    cr_assert(eq(uint, testing_peer_accepted(peer), 1));
    cr_assert(eq(u64, fake_host_stats(fake_host(&world, a)).bytes_sent, 10));
    fake_world_end(&world);
}

Test(pool_return, a_raw_link_whose_holder_sent_last_is_not_lent_again)
{
    struct fake_user user = {0};
    struct fake_world world;

    begin(&world, NULL);
    fake_hold(&world, &user, a);
    fake_send(&user, "question");
    fake_give_back(&user);
    cr_assert(eq(uint, fake_stats(&world).links, 0));
    cr_assert(eq(u64, ends(&world, LINK_UNEXPECTED_DATA), 1));
    fake_world_end(&world);
}

Test(pool_return, one_way_a_holder_that_sent_last_leaves_the_link_clean)
{
    struct protocol one_way = protocol_raw;
    struct fake_user user = {0};
    struct fake_world world;

    one_way.flags |= PROTOCOL_ONE_WAY;
    struct testing_peer *peer = begin(&world, &one_way);
    testing_peer_serve(peer, NULL, NULL);
    for (int i = 0; i < 3; i++) {
        fake_hold(&world, &user, a);
        fake_send(&user, "log");
        fake_give_back(&user);
    }
    fake_settle(&world);
    cr_assert(eq(uint, testing_peer_accepted(peer), 1));
    cr_assert(eq(u64, testing_peer_bytes(peer), 9));
    fake_world_end(&world);
}

Test(pool_return, discard_closes)
{
    struct fake_user user = {0};
    struct fake_world world;

    begin(&world, NULL);
    fake_hold(&world, &user, a);
    cr_assert(eq(int, pool_release(&user.lease, POOL_DISCARD), 0));
    cr_assert(eq(u64, ends(&world, LINK_DISCARDED), 1));
    cr_assert(eq(uint, fake_stats(&world).links, 0));
    fake_world_end(&world);
}

Test(pool_return, a_link_that_carries_an_identity_is_closed)
{
    struct fake_user user = {0};
    struct fake_world world;

    begin(&world, NULL);
    fake_hold(&world, &user, a);
    fake_exchange(&world, &user);
    channel_keep_private(user.lease.channel);
    fake_give_back(&user);
    cr_assert(eq(u64, ends(&world, LINK_DISCARDED), 1));
    fake_world_end(&world);
}

Test(pool_return, a_half_closed_link_is_closed)
{
    struct fake_user user = {0};
    struct fake_world world;

    begin(&world, NULL);
    fake_hold(&world, &user, a);
    fake_exchange(&world, &user);
    cr_assert(eq(int, channel_shutdown(user.lease.channel), 0));
    fake_give_back(&user);
    cr_assert(eq(uint, fake_stats(&world).links, 0));
    fake_world_end(&world);
}

/* Lets something come. */
static void come(struct fake_world *world, struct testing_peer *peer, enum link_reason what)
{
    if (what == LINK_UNEXPECTED_DATA)
        testing_peer_say(peer, "late", 4);
    else
        testing_peer_cut(peer, what);
    fake_settle(world);
}

Test(pool_return, what_came_while_reading_was_paused_makes_it_unclean)
{
    static const enum link_reason reasons[] = {LINK_UNEXPECTED_DATA, LINK_CLOSED_BY_PEER, LINK_RESET};

    for (int i = 0; i < 6; i++) {
        struct fake_user user = {0}, next = {0};
        struct fake_world world;
        struct testing_peer *peer = begin(&world, NULL);
        fake_hold(&world, &user, a);
        if (i >= 3)
            fake_exchange(&world, &user); /* what comes after it is not seen at all: the descriptor is not watched */
        come(&world, peer, reasons[i % 3]);
        fake_give_back(&user);
        cr_assert(ne(int, fake_ask(&world, &next, a), POOL_READY), "%d", i);
        cr_assert(eq(u64, ends(&world, reasons[i % 3]), 1), "%d", i);
        fake_world_end(&world);
    }
}

static void no_more(struct channel *channel)
{
    (void)channel;
}

Test(pool_return, nothing_of_the_last_holder_is_left)
{
    static const struct channel_events events = {.readable = no_more, .writable = no_more};
    struct fake_user user = {0}, next = {0};
    struct fake_world world;

    struct testing_peer *peer = begin(&world, NULL);
    fake_hold(&world, &user, a);
    fake_exchange(&world, &user);
    channel_set_data(user.lease.channel, &user);
    channel_watch(user.lease.channel, &events, LINKPOOL_READ);
    fake_give_back(&user);
    cr_assert(eq(int, fake_ask(&world, &next, a), POOL_READY));
    cr_assert(eq(ptr, channel_data(next.lease.channel), NULL));
    cr_assert(eq(ptr, channel_lease(next.lease.channel), &next.lease));
    testing_peer_say(peer, "x", 1);
    fake_settle(&world); /* would spin, or call the old watcher, if that were still there */
    char byte;
    cr_assert(eq(long, channel_read(next.lease.channel, &byte, 1), 1));
    fake_world_end(&world);
}

/* ---- between leases ---- */

Test(pool_return, what_comes_to_an_idle_link_closes_it)
{
    static const enum link_reason expected[] = {LINK_UNEXPECTED_DATA, LINK_CLOSED_BY_PEER, LINK_RESET};

    for (int i = 0; i < 3; i++) {
        struct fake_user user = {0};
        struct fake_world world;
        struct testing_peer *peer = begin(&world, NULL);
        fake_hold(&world, &user, a);
        fake_exchange(&world, &user);
        fake_give_back(&user);
        come(&world, peer, expected[i]);
        cr_assert(eq(u64, ends(&world, expected[i]), 1), "%d", i);
        cr_assert(eq(uint, fake_stats(&world).links, 0));
        fake_world_end(&world);
    }
}

static int swallow(struct protocol_link *pl)
{
    char bytes[16];

    while (protocol_read(pl, bytes, sizeof bytes) > 0)
        continue;
    return 1;
}

Test(pool_return, a_protocol_may_take_what_comes_to_an_idle_link)
{
    struct protocol taking = protocol_raw;
    struct fake_user user = {0};
    struct fake_world world;

    taking.idle_input = swallow;
    struct testing_peer *peer = begin(&world, &taking);
    fake_hold(&world, &user, a);
    fake_give_back(&user);
    testing_peer_say(peer, "notice", 6);
    fake_settle(&world);
    cr_assert(eq(int, fake_ask(&world, &user, a), POOL_READY));
    fake_exchange(&world, &user); /* nothing of the notice is left */
    fake_world_end(&world);
}

/* ---- handed on before the loop has polled ---- */

enum holder {
    TOUCHED_NOTHING,
    READ_SHORT,
    READ_FULL,
    LENT_ITS_DESCRIPTOR,
    HOLDERS
};

static void read_it(struct channel *channel)
{
    char bytes[8];

    cr_assert(eq(long, channel_read(channel, bytes, *(size_t *)channel_data(channel)), 1));
}

static void act(struct fake_world *world, struct fake_user *user, enum holder holder)
{
    static const struct channel_events events = {.readable = read_it};
    size_t room = holder == READ_FULL ? 1 : 8;

    channel_set_data(user->lease.channel, &room);
    channel_watch(user->lease.channel, &events, LINKPOOL_READ);
    if (holder == READ_SHORT || holder == READ_FULL) {
        fake_send(user, "x");
        fake_settle(world);
        cr_assert(eq(u64, user->lease.bytes_received, 1));
    }
    if (holder == LENT_ITS_DESCRIPTOR)
        cr_assert(ge(int, channel_fd(user->lease.channel), 0));
}

Test(pool_return, a_link_handed_on_within_its_turn_is_looked_at_only_where_something_may_be_left)
{
    static const uint64_t expected[HOLDERS] = {0, 0, 1, 1};

    for (int holder = 0; holder < HOLDERS; holder++) {
        struct fake_user user = {0};
        struct fake_world world;
        begin(&world, NULL);
        fake_hold(&world, &user, a);
        act(&world, &user, (enum holder)holder);
        fake_give_back(&user);
        cr_assert(eq(int, fake_ask(&world, &user, a), POOL_READY));
        cr_assert(eq(u64, fake_stats(&world).peeked, expected[holder], "%d", holder));
        act(&world, &user, (enum holder)holder);
        fake_give_back(&user);
        fake_settle(&world);
        testing_turn(world.t); /* the loop has polled */
        cr_assert(eq(int, fake_ask(&world, &user, a), POOL_READY));
        cr_assert(eq(u64, fake_stats(&world).peeked, expected[holder]));
        fake_world_end(&world);
    }
}

Test(pool_return, bytes_left_unread_are_found_before_the_link_is_handed_on)
{
    struct fake_user user = {0}, next = {0};
    struct fake_world world;
    char byte;

    struct testing_peer *peer = begin(&world, NULL);
    fake_hold(&world, &user, a);
    fake_send(&user, "xy");
    fake_settle(&world);
    cr_assert(eq(int, channel_want(user.lease.channel, 0), 0));
    cr_assert(eq(long, channel_read(user.lease.channel, &byte, 1), 1));
    fake_give_back(&user);
    cr_assert(eq(int, fake_ask(&world, &next, a), POOL_PENDING));
    fake_settle(&world);
    cr_assert(eq(int, next.status, POOL_READY));
    cr_assert(eq(uint, testing_peer_accepted(peer), 2));
    cr_assert(eq(u64, ends(&world, LINK_UNEXPECTED_DATA), 1));
    fake_world_end(&world);
}

/* ---- handed out within a turn, before the link's own news of it ---- */

static struct {
    struct fake_world world;
    struct fake_user reader, next;
} turn;

static void ask_for_another(struct channel *channel)
{
    channel_want(channel, 0);
    fake_ask(&turn.world, &turn.next, a);
}

/* Two links hear of something with one poll: the holder of one asks for another, which may be told first, or not. */
static void both_hear(void (*happens)(struct testing_peer *peer), bool reader_is_older, bool is_known)
{
    static const struct channel_events events = {.readable = ask_for_another};
    struct fake_user other = {0};

    memset(&turn, 0, sizeof turn);
    fake_world_begin(&turn.world);
    struct driver *driver = testing_driver(turn.world.t);
    struct driver_ops ops = *driver->ops;
    if (!is_known)
        ops.io_pending = NULL;
    driver->ops = &ops;
    turn.world.pool = pool_new_on(driver, &turn.world.options);
    struct testing_peer *peer = fake_echo(&turn.world, a);
    fake_hold(&turn.world, reader_is_older ? &turn.reader : &other, a);
    fake_hold(&turn.world, reader_is_older ? &other : &turn.reader, a);
    fake_exchange(&turn.world, &other);
    fake_give_back(&other);
    fake_run(&turn.world, 1);
    cr_assert(eq(int, channel_watch(turn.reader.lease.channel, &events, LINKPOOL_READ), 0));
    turn.next.lease.flags = POOL_WAIT_FOR_READY;
    happens(peer);
    fake_run(&turn.world, 1);
    cr_assert(eq(int, turn.next.status, POOL_READY));
    cr_assert(eq(uint, testing_peer_accepted(peer), 3)); /* a new one: the idle one is no use any more */
    fake_world_end(&turn.world);
}

static void say(struct testing_peer *peer)
{
    testing_peer_say(peer, "late", 4);
}

static void hang_up(struct testing_peer *peer)
{
    testing_peer_cut(peer, LINK_CLOSED_BY_PEER);
}

static void reset_all(struct testing_peer *peer)
{
    testing_peer_cut(peer, LINK_RESET);
}

Test(pool_return, what_came_with_the_poll_is_seen_before_a_link_is_handed_out_within_anothers_callback)
{
    for (int way = 0; way < 4; way++) {
        both_hear(say, way & 1, way & 2);
        both_hear(hang_up, way & 1, way & 2);
        both_hear(reset_all, way & 1, way & 2);
    }
}

/* ---- cleaned by its protocol ---- */

static int be_cleaned(struct protocol_link *pl)
{
    (void)pl;
    return PROTOCOL_RESETTING;
}

static int cleaned(struct protocol_link *pl, unsigned events)
{
    char byte;

    (void)events;
    ssize_t got = protocol_read(pl, &byte, 1);
    return got == 1 ? protocol_ready(pl) : got == LINKPOOL_ELOST ? LINKPOOL_ELOST : 0;
}

static int be_refused(struct protocol_link *pl)
{
    (void)pl;
    return PROTOCOL_UNCLEAN;
}

static struct protocol with_cleaning(void)
{
    struct protocol protocol = protocol_raw;

    protocol.released = be_cleaned;
    protocol.input = cleaned;
    return protocol;
}

Test(pool_return, a_link_that_is_cleaned_is_lent_again_when_it_is_clean)
{
    struct protocol protocol = with_cleaning();
    struct fake_user user = {0}, next = {0};
    struct fake_world world;

    struct testing_peer *peer = begin(&world, &protocol);
    fake_hold(&world, &user, a);
    struct pool_host *host = user.lease.host;
    struct pool_host_options one = world.host;
    one.max_links = 1;
    cr_assert(eq(int, pool_host_set_options(host, &one), 0));
    fake_give_back(&user);
    cr_assert(eq(uint, fake_host_stats(host).links[LINK_RESETTING], 1));
    cr_assert(eq(int, fake_ask(&world, &next, a), POOL_PENDING));
    fake_run(&world, 1);
    cr_assert(eq(uint, next.done, 0));
    testing_peer_say(peer, "k", 1);
    fake_settle(&world);
    cr_assert(eq(int, next.status, POOL_READY));
    cr_assert(next.lease.reused);
    cr_assert(eq(uint, testing_peer_accepted(peer), 1));
    fake_world_end(&world);
}

Test(pool_return, a_link_that_is_not_clean_within_reset_timeout_ends)
{
    struct protocol protocol = with_cleaning();
    struct fake_user user = {0};
    struct fake_world world;

    begin(&world, &protocol);
    fake_hold(&world, &user, a);
    fake_give_back(&user);
    fake_run(&world, 2.9);
    cr_assert(eq(uint, fake_stats(&world).links, 1));
    fake_run(&world, 0.2);
    cr_assert(eq(uint, fake_stats(&world).links, 0));
    cr_assert(eq(u64, ends(&world, LINK_TIMED_OUT), 1));
    fake_world_end(&world);
}

Test(pool_return, a_protocol_may_say_that_it_is_unclean)
{
    struct protocol protocol = protocol_raw;
    struct fake_user user = {0};
    struct fake_world world;

    protocol.released = be_refused;
    begin(&world, &protocol);
    fake_hold(&world, &user, a);
    fake_give_back(&user);
    cr_assert(eq(u64, ends(&world, LINK_UNEXPECTED_DATA), 1));
    fake_world_end(&world);
}

/* ---- what became of what was sent ---- */

Test(pool_return, the_fate_of_what_was_sent_is_known)
{
    static const enum pool_fate expected[] = {POOL_NOT_SENT, POOL_SENT_NO_ANSWER, POOL_PARTIAL, POOL_UNKNOWN};

    for (int i = 0; i < 4; i++) {
        struct fake_user user = {0};
        struct fake_world world;
        char bytes[8];
        struct testing_peer *peer = begin(&world, NULL);
        if (i != 2)
            testing_peer_serve(peer, NULL, NULL);
        fake_hold(&world, &user, a);
        if (i)
            fake_send(&user, "x");
        fake_settle(&world);
        if (i == 2)
            cr_assert(eq(long, channel_read(user.lease.channel, bytes, sizeof bytes), 1));
        if (i == 3)
            cr_assert(ge(int, channel_fd(user.lease.channel), 0));
        testing_peer_cut(peer, LINK_RESET);
        fake_settle(&world);
        cr_assert(eq(long, channel_read(user.lease.channel, bytes, sizeof bytes), LINKPOOL_ELOST));
        cr_assert(eq(int, user.lease.fate, expected[i], "%d", i));
        cr_assert(eq(int, user.lease.reason, LINK_RESET));
        cr_assert(ne(ptr, user.lease.channel, NULL)); /* it still is the holder's */
        fake_give_back(&user);
        cr_assert(eq(u64, ends(&world, LINK_RESET), 1));
        fake_world_end(&world);
    }
}

Test(pool_return, an_end_that_its_holder_has_seen_and_discards_is_no_quiet_one)
{
    struct fake_user user = {0};
    struct fake_world world;
    char bytes[8];

    struct testing_peer *peer = begin(&world, NULL);
    fake_hold(&world, &user, a);
    testing_peer_cut(peer, LINK_CLOSED_BY_PEER);
    fake_settle(&world);
    cr_assert(eq(long, channel_read(user.lease.channel, bytes, sizeof bytes), 0));
    struct pool_host *host = user.lease.host;
    cr_assert(eq(int, pool_release(&user.lease, POOL_DISCARD), 0));
    cr_assert(eq(int, pool_host_state(host), LINK_BACKOFF)); /* young, and unanswered: a failure */
    cr_assert(eq(u64, ends(&world, LINK_CLOSED_BY_PEER), 1));
    fake_world_end(&world);
}

Test(pool_return, a_shared_link_that_dies_tells_each_holder_closed)
{
    struct fake_user users[3] = {0};
    struct fake_world world;

    struct testing_peer *peer = begin(&world, &fake_shared);
    for (int i = 0; i < 3; i++)
        fake_hold(&world, &users[i], a);
    cr_assert(eq(uint, testing_peer_accepted(peer), 1));
    cr_assert(eq(int, channel_fd(users[0].lease.channel), -1)); /* nothing to lend: it is not one holder's */
    cr_assert(eq(int, channel_send(users[0].lease.channel, "q", 1), 0));
    testing_peer_cut(peer, LINK_RESET);
    fake_settle(&world);
    for (int i = 0; i < 3; i++) {
        cr_assert(eq(uint, users[i].closed, 1));
        cr_assert(eq(ptr, users[i].lease.channel, NULL));
        cr_assert(eq(int, users[i].lease.status, LINKPOOL_ELOST));
        cr_assert(eq(int, users[i].lease.reason, LINK_RESET));
        cr_assert(eq(int, users[i].lease.fate, i ? POOL_NOT_SENT : POOL_SENT_NO_ANSWER));
        cr_assert(eq(int, pool_release(&users[i].lease, POOL_REUSE), LINKPOOL_ESTATE));
    }
    fake_world_end(&world);
}

/* ---- misuse ---- */

Test(pool_return, a_release_of_what_is_over_changes_nothing)
{
    struct fake_user user = {0}, other = {0};
    struct fake_world world;

    begin(&world, NULL);
    cr_assert(eq(int, pool_release(&user.lease, POOL_REUSE), LINKPOOL_ESTATE)); /* never asked */
    cr_assert(eq(int, pool_cancel(&user.lease), LINKPOOL_ESTATE));
    fake_hold(&world, &user, a);
    cr_assert(eq(int, pool_release(&user.lease, (enum pool_disposition)7), LINKPOOL_EINVAL));
    cr_assert(ne(ptr, user.lease.channel, NULL));
    fake_give_back(&user);
    cr_assert(eq(int, fake_ask(&world, &other, a), POOL_READY));
    cr_assert(eq(int, pool_release(&user.lease, POOL_DISCARD), LINKPOOL_ESTATE)); /* it would be the other's link */
    fake_exchange(&world, &other);
    fake_ask(&world, &user, a);
    cr_assert(eq(int, pool_release(&user.lease, POOL_REUSE), LINKPOOL_ESTATE)); /* it waits */
    fake_world_end(&world);
}
