/* channel.c - what the holder of a channel may do with it: on a link on its own, and as a lease of a pool. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <string.h>

#include "tests/fakes/owner.h"
#include "tests/fakes/shared.h"
#include "tests/fakes/world.h"

static const struct channel_events deaf;

static ssize_t say(struct channel *channel, const char *bytes)
{
    struct iovec part = {(void *)(uintptr_t)bytes, strlen(bytes)};

    return channel_writev(channel, &part, 1);
}

static void begin(struct fake_owner *owner, const struct protocol *protocol)
{
    fake_owner_begin(owner, TESTING_ACCEPT);
    owner->options.protocol = protocol;
    fake_owner_start(owner);
    fake_owner_until(owner, LINK_READY, 1);
    fake_owner_settle(owner);
    cr_assert(ne(ptr, owner->channel, NULL));
}

/* ---- reading and writing ---- */

Test(channel, read_gives_what_came_and_says_when_there_is_nothing)
{
    struct fake_owner owner;
    char bytes[8];

    begin(&owner, &protocol_raw);
    cr_assert(eq(long, channel_read(owner.channel, bytes, sizeof bytes), LINKPOOL_EAGAIN));
    cr_assert(eq(long, channel_read(owner.channel, bytes, 0), LINKPOOL_EINVAL));
    testing_peer_say(owner.peer, "hello", 5);
    fake_owner_settle(&owner);
    cr_assert(eq(long, channel_read(owner.channel, bytes, 3), 3));
    cr_assert(eq(int, memcmp(bytes, "hel", 3), 0));
    cr_assert(eq(long, channel_read(owner.channel, bytes, sizeof bytes), 2));
    cr_assert(eq(int, memcmp(bytes, "lo", 2), 0));
    cr_assert(eq(long, channel_read(owner.channel, bytes, sizeof bytes), LINKPOOL_EAGAIN));
    fake_owner_end(&owner);
}

Test(channel, an_end_of_file_is_read_as_often_as_asked_until_the_turn_ends)
{
    struct fake_owner owner;
    char bytes[8];

    begin(&owner, &protocol_raw);
    struct channel *channel = owner.channel;
    testing_peer_say(owner.peer, "bye", 3);
    fake_owner_settle(&owner);
    testing_peer_cut(owner.peer, LINK_CLOSED_BY_PEER);
    fake_owner_settle(&owner); /* bytes before the end: reading is paused, and the end waits behind them */
    cr_assert(eq(int, link_state(owner.link), LINK_READY));
    testing_peer_behave(owner.peer, TESTING_REFUSE);
    ssize_t got;
    unsigned ends = 0;
    while ((got = channel_read(channel, bytes, sizeof bytes)) > 0)
        cr_assert(eq(long, got, 3));
    for (; ends < 3; ends++)
        cr_assert(eq(long, channel_read(channel, bytes, sizeof bytes), 0));
    cr_assert(eq(int, link_state(owner.link), LINK_READY));
    fake_owner_settle(&owner);
    cr_assert(eq(int, link_state(owner.link), LINK_BACKOFF));
    cr_assert(eq(int, fake_owner_told(&owner, "disconnected", 0)->reason, LINK_CLOSED_BY_PEER));
    cr_assert(eq(long, channel_read(channel, bytes, sizeof bytes), LINKPOOL_ELOST));
    fake_owner_end(&owner);
}

Test(channel, writev_gathers_its_parts)
{
    struct fake_owner owner;
    struct iovec parts[] = {{"one", 3}, {"", 0}, {"two", 3}};
    size_t n;

    begin(&owner, &protocol_raw);
    cr_assert(eq(long, channel_writev(owner.channel, parts, 3), 6));
    fake_owner_settle(&owner);
    cr_assert(eq(int, memcmp(testing_peer_received(owner.peer, &n), "onetwo", 6), 0));
    cr_assert(eq(sz, n, 6));
    fake_owner_end(&owner);
}

static unsigned rings;

static void on_writable(struct channel *channel)
{
    (void)channel;
    rings++;
}

static const struct channel_events writing = {.writable = on_writable};

Test(channel, writev_takes_what_there_is_room_for_and_writable_rings_when_there_is_again)
{
    struct fake_owner owner;

    fake_owner_begin(&owner, TESTING_ACCEPT);
    testing_send_buffer(owner.t, 8);
    testing_peer_window(owner.peer, 0);
    fake_owner_start(&owner);
    fake_owner_run(&owner, 1);
    cr_assert(eq(long, say(owner.channel, "0123456789"), 8));
    cr_assert(eq(long, say(owner.channel, "89"), LINKPOOL_EAGAIN));
    cr_assert(eq(int, channel_watch(owner.channel, &writing, LINKPOOL_WRITE), 0));
    fake_owner_run(&owner, 1);
    cr_assert(eq(uint, rings, 0));
    testing_peer_window(owner.peer, SIZE_MAX);
    testing_turn(owner.t);
    testing_turn(owner.t);
    cr_assert(ge(uint, rings, 1));
    cr_assert(eq(long, say(owner.channel, "89"), 2));
    channel_want(owner.channel, 0);
    rings = 0;
    fake_owner_run(&owner, 1);
    cr_assert(eq(uint, rings, 0));
    cr_assert(eq(u64, testing_peer_bytes(owner.peer), 10));
    fake_owner_end(&owner);
}

Test(channel, writable_rings_while_there_is_room_and_it_is_wanted)
{
    struct fake_owner owner;

    begin(&owner, &protocol_raw);
    cr_assert(eq(int, channel_watch(owner.channel, &writing, LINKPOOL_WRITE), 0));
    for (unsigned i = 1; i <= 3; i++) {
        testing_turn(owner.t);
        cr_assert(eq(uint, rings, i));
    }
    cr_assert(eq(int, channel_want(owner.channel, 0), 0));
    fake_owner_run(&owner, 1);
    cr_assert(eq(uint, rings, 3));
    fake_owner_end(&owner);
}

Test(channel, a_write_to_a_broken_connection_loses_it)
{
    struct fake_owner owner;

    begin(&owner, &protocol_raw);
    testing_fail_call(owner.t, TESTING_SENDMSG, 1, EPIPE, false);
    cr_assert(eq(long, say(owner.channel, "x"), LINKPOOL_ELOST));
    fake_owner_settle(&owner);
    cr_assert(eq(int, link_state(owner.link), LINK_BACKOFF));
    cr_assert(eq(int, fake_owner_told(&owner, "disconnected", 0)->reason, LINK_RESET));
    int error;
    link_last_reason(owner.link, &error, NULL);
    cr_assert(eq(int, error, EPIPE));
    fake_owner_end(&owner);
}

static unsigned n_ended;

static void on_ended(void *data, struct testing_conn *conn)
{
    (void)data, (void)conn;
    n_ended++;
}

Test(channel, shutdown_ends_the_sending_side_alone)
{
    struct testing_server server = {.size = sizeof server, .ended = on_ended};
    struct fake_owner owner;
    char bytes[8];

    begin(&owner, &protocol_raw);
    testing_peer_on(owner.peer, &server);
    cr_assert(eq(int, channel_shutdown(owner.channel), 0));
    fake_owner_settle(&owner);
    cr_assert(eq(uint, n_ended, 1));
    testing_peer_say(owner.peer, "still", 5);
    fake_owner_settle(&owner);
    cr_assert(eq(long, channel_read(owner.channel, bytes, sizeof bytes), 5));
    cr_assert(eq(int, link_state(owner.link), LINK_READY));
    fake_owner_end(&owner);
}

/* ---- interest ---- */

Test(channel, watch_and_want_refuse_what_makes_no_sense)
{
    struct fake_owner owner;

    begin(&owner, &protocol_raw);
    cr_assert(eq(int, channel_watch(owner.channel, NULL, LINKPOOL_READ), LINKPOOL_EINVAL));
    cr_assert(eq(int, channel_watch(owner.channel, &deaf, 4), LINKPOOL_EINVAL));
    cr_assert(eq(int, channel_want(owner.channel, 8), LINKPOOL_EINVAL));
    cr_assert(eq(int, channel_watch(owner.channel, &deaf, LINKPOOL_READ | LINKPOOL_WRITE), 0));
    fake_owner_run(&owner, 1); /* wanted by nobody who listens: it must not ring for ever */
    fake_owner_end(&owner);
}

Test(channel, what_is_not_wanted_waits_and_costs_nothing)
{
    struct fake_owner owner;

    fake_owner_begin(&owner, TESTING_ACCEPT);
    owner.hears = true;
    fake_owner_start(&owner);
    fake_owner_run(&owner, 1);
    cr_assert(eq(int, channel_want(owner.channel, 0), 0));
    testing_peer_say(owner.peer, "later", 5);
    fake_owner_settle(&owner);
    uint64_t calls = testing_calls(owner.t, TESTING_RECVMSG);
    for (int i = 0; i < 100; i++) {
        testing_peer_say(owner.peer, ".", 1);
        fake_owner_run(&owner, 0.01);
    }
    cr_assert(eq(sz, owner.n_heard, 0));
    cr_assert(eq(u64, testing_calls(owner.t, TESTING_RECVMSG), calls)); /* nobody looks any more */
    cr_assert(eq(int, channel_want(owner.channel, LINKPOOL_READ), 0));
    fake_owner_settle(&owner);
    cr_assert(eq(sz, owner.n_heard, 105));
    fake_owner_end(&owner);
}

/* ---- what it says of itself ---- */

Test(channel, it_knows_its_link_and_keeps_its_holders_pointer_until_the_end)
{
    struct fake_owner owner;
    int mine;

    begin(&owner, &protocol_raw);
    struct channel *channel = owner.channel;
    cr_assert(eq(ptr, channel_link(channel), owner.link));
    cr_assert(eq(ptr, channel_lease(channel), NULL));
    cr_assert(eq(ptr, channel_data(channel), NULL));
    channel_set_data(channel, &mine);
    cr_assert(eq(ptr, channel_data(channel), &mine));
    link_stop(owner.link);
    link_start(owner.link);
    fake_owner_until(&owner, LINK_READY, 1);
    cr_assert(eq(ptr, channel_data(channel), NULL));
    fake_owner_end(&owner);
}

Test(channel, it_lends_its_descriptor_while_it_is_held)
{
    struct fake_owner owner;

    begin(&owner, &protocol_raw);
    int fd = channel_fd(owner.channel);
    cr_assert(ge(int, fd, 0));
    struct msghdr message = {.msg_iov = &(struct iovec){"direct", 6}, .msg_iovlen = 1};
    cr_assert(eq(long, owner.env.sendmsg(owner.env.data, fd, &message, MSG_NOSIGNAL), 6));
    fake_owner_settle(&owner);
    cr_assert(eq(u64, testing_peer_bytes(owner.peer), 6));
    cr_assert(eq(ptr, channel_native(owner.channel), NULL));
    fake_owner_end(&owner);
}

Test(channel, an_exclusive_one_has_no_messages)
{
    struct fake_owner owner;

    begin(&owner, &protocol_raw);
    cr_assert(eq(int, channel_send(owner.channel, "x", 1), LINKPOOL_EOPTION));
    fake_owner_end(&owner);
}

Test(channel, a_shared_one_has_messages_alone)
{
    struct fake_owner owner;
    char byte;

    begin(&owner, &fake_shared);
    cr_assert(eq(long, channel_read(owner.channel, &byte, 1), LINKPOOL_EOPTION));
    cr_assert(eq(long, say(owner.channel, "x"), LINKPOOL_EOPTION));
    cr_assert(eq(int, channel_shutdown(owner.channel), LINKPOOL_EOPTION));
    cr_assert(eq(int, channel_fd(owner.channel), -1));
    cr_assert(eq(ptr, channel_native(owner.channel), NULL));
    cr_assert(eq(int, channel_send(owner.channel, "x", 1), 0));
    fake_owner_end(&owner);
}

static struct transport without_bytes(void)
{
    struct transport transport = transport_tcp;

    transport.readv = NULL;
    transport.writev = NULL;
    transport.shutdown = NULL;
    transport.flags = 0;
    return transport;
}

static void *a_native_object(struct transport_link *tl)
{
    return &tl->fd;
}

Test(channel, a_transport_may_have_its_own_way_in_and_no_other)
{
    struct transport transport = without_bytes();
    struct fake_owner owner;
    char byte;

    transport.native = a_native_object;
    fake_owner_begin(&owner, TESTING_ACCEPT);
    owner.options.transport = &transport;
    fake_owner_start(&owner);
    fake_owner_run(&owner, 1);
    cr_assert(eq(long, channel_read(owner.channel, &byte, 1), LINKPOOL_EOPTION));
    cr_assert(eq(long, say(owner.channel, "x"), LINKPOOL_EOPTION));
    cr_assert(eq(int, channel_shutdown(owner.channel), LINKPOOL_EOPTION));
    cr_assert(eq(int, channel_fd(owner.channel), -1));
    cr_assert(ne(ptr, channel_native(owner.channel), NULL));
    fake_owner_end(&owner);
}

static void expect_over(struct channel *channel)
{
    char byte;

    cr_assert(eq(long, channel_read(channel, &byte, 1), LINKPOOL_ELOST));
    cr_assert(eq(long, say(channel, "x"), LINKPOOL_ELOST));
    cr_assert(eq(int, channel_send(channel, "x", 1), LINKPOOL_ELOST));
    cr_assert(eq(int, channel_shutdown(channel), LINKPOOL_ELOST));
    cr_assert(eq(int, channel_watch(channel, &deaf, LINKPOOL_READ), LINKPOOL_ESTATE));
    cr_assert(eq(int, channel_want(channel, LINKPOOL_READ), LINKPOOL_ESTATE));
    cr_assert(eq(int, channel_fd(channel), -1));
    cr_assert(eq(ptr, channel_native(channel), NULL));
    channel_keep_private(channel);
}

Test(channel, one_that_is_over_does_nothing_and_says_so)
{
    const struct protocol *const protocols[] = {&protocol_raw, &fake_shared};

    for (int i = 0; i < 2; i++) {
        struct fake_owner owner;
        begin(&owner, protocols[i]);
        struct channel *channel = owner.channel;
        link_stop(owner.link);
        expect_over(channel); /* its holder is told at the end of the turn */
        fake_owner_settle(&owner);
        expect_over(channel); /* and has been, but the link is there */
        fake_owner_end(&owner);
    }
}

/* ---- as a lease: counters and fates ---- */

static void hold(
    struct fake_world *world, struct fake_user *user, const struct protocol *protocol, struct testing_peer **peer)
{
    fake_world_begin(world);
    world->host.protocol = protocol;
    fake_world_open(world);
    *peer = fake_peer(world, FAKE_ADDRESS, TESTING_ACCEPT);
    fake_hold(world, user, FAKE_ADDRESS);
}

Test(channel, bytes_are_counted_for_the_lease_and_its_host)
{
    struct fake_world world;
    struct fake_user user = {0};
    struct testing_peer *peer;
    char bytes[16];

    hold(&world, &user, &protocol_raw, &peer);
    testing_peer_serve(peer, testing_echo, NULL);
    struct channel *channel = user.lease.channel;
    cr_assert(eq(ptr, channel_lease(channel), &user.lease));
    fake_send(&user, "four");
    fake_send(&user, "seven..");
    fake_settle(&world);
    cr_assert(eq(long, channel_read(channel, bytes, 5), 5));
    cr_assert(eq(u64, user.lease.bytes_sent, 11));
    cr_assert(eq(u64, user.lease.bytes_received, 5));
    cr_assert(eq(long, channel_read(channel, bytes, sizeof bytes), 6));
    channel_set_data(channel, &user);
    struct pool_host *host = user.lease.host;
    fake_give_back(&user);
    cr_assert(eq(ptr, channel_data(channel), NULL));
    cr_assert(eq(u64, fake_host_stats(host).bytes_sent, 11));
    cr_assert(eq(u64, fake_host_stats(host).bytes_received, 11));
    fake_world_end(&world);
}

/* What the holder finds when the connection breaks under it. */
static void break_under(const char *send, const char *answer, bool lends, enum link_reason how, enum pool_fate fate)
{
    struct fake_world world;
    struct fake_user user = {0};
    struct testing_peer *peer;
    char bytes[16];

    hold(&world, &user, &protocol_raw, &peer);
    if (send)
        fake_send(&user, send);
    if (lends)
        cr_assert(ge(int, channel_fd(user.lease.channel), 0));
    fake_settle(&world);
    if (answer) {
        testing_peer_say(peer, answer, strlen(answer));
        fake_settle(&world);
        cr_assert(eq(long, channel_read(user.lease.channel, bytes, sizeof bytes), (long)strlen(answer)));
    }
    testing_peer_cut(peer, how);
    fake_settle(&world);
    cr_assert(eq(uint, user.closed, 0)); /* read by its holder, who keeps the channel */
    long end = channel_read(user.lease.channel, bytes, sizeof bytes);
    cr_assert(eq(long, end, how == LINK_RESET ? LINKPOOL_ELOST : 0));
    cr_assert(eq(int, user.lease.reason, how));
    cr_assert(eq(int, user.lease.system_errno, how == LINK_RESET ? ECONNRESET : 0));
    cr_assert(eq(int, user.lease.fate, fate));
    cr_assert(eq(int, pool_release(&user.lease, POOL_REUSE), 0));
    cr_assert(eq(uint, fake_stats(&world).links, 0));
    fake_world_end(&world);
}

Test(channel, the_fate_of_what_was_sent_is_known_after_a_break)
{
    const enum link_reason ways[] = {LINK_RESET, LINK_CLOSED_BY_PEER};

    for (int i = 0; i < 2; i++) {
        break_under(NULL, NULL, false, ways[i], POOL_NOT_SENT);
        break_under("ask", NULL, false, ways[i], POOL_SENT_NO_ANSWER);
        break_under("ask", "half", false, ways[i], POOL_PARTIAL);
        break_under("ask", "half", true, ways[i], POOL_UNKNOWN);
        break_under(NULL, NULL, true, ways[i], POOL_UNKNOWN);
    }
}

static void break_stream(const char *send, bool answers, enum pool_fate fate)
{
    struct fake_world world;
    struct fake_user user = {0};
    struct testing_peer *peer;

    hold(&world, &user, &fake_shared, &peer);
    if (answers)
        testing_peer_serve(peer, testing_echo, NULL);
    if (send)
        cr_assert(eq(int, channel_send(user.lease.channel, send, 1), 0));
    fake_settle(&world);
    testing_peer_cut(peer, LINK_RESET);
    fake_settle(&world);
    cr_assert(eq(uint, user.closed, 1));
    cr_assert(eq(ptr, user.lease.channel, NULL));
    cr_assert(eq(int, user.lease.reason, LINK_RESET));
    cr_assert(eq(int, user.lease.fate, fate));
    cr_assert(eq(u64, user.lease.bytes_sent, send ? 1 : 0));
    cr_assert(eq(u64, user.lease.bytes_received, answers ? 1 : 0));
    fake_world_end(&world);
}

Test(channel, the_fate_of_a_stream_is_told_with_its_end)
{
    break_stream(NULL, false, POOL_NOT_SENT);
    break_stream("q", false, POOL_SENT_NO_ANSWER);
    break_stream("q", true, POOL_PARTIAL);
}

Test(channel, a_private_link_is_closed_at_the_end_of_its_lease)
{
    struct fake_world world;
    struct fake_user user = {0};
    struct testing_peer *peer;
    struct pool_stats stats;

    hold(&world, &user, &protocol_raw, &peer);
    channel_keep_private(user.lease.channel);
    fake_give_back(&user);
    stats = fake_stats(&world);
    cr_assert(eq(uint, stats.links, 0));
    cr_assert(eq(u64, stats.ends[LINK_DISCARDED], 1));
    fake_world_end(&world);
}

Test(channel, a_link_whose_sending_side_was_ended_is_not_used_again)
{
    struct fake_world world;
    struct fake_user user = {0};
    struct testing_peer *peer;

    hold(&world, &user, &protocol_raw, &peer);
    cr_assert(eq(int, channel_shutdown(user.lease.channel), 0));
    fake_give_back(&user);
    cr_assert(eq(uint, fake_stats(&world).links, 0));
    fake_world_end(&world);
}
