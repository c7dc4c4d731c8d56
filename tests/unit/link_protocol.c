/* link_protocol.c - what protocols may ask of the library, on links on their own: handshakes, room, leaving, ends. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <string.h>

#include "tests/fakes/owner.h"
#include "tests/fakes/shared.h"

/* ---- handshakes ---- */

static struct {
    unsigned starts, inputs, ends, leaves;
    unsigned char seen; /* the state's first byte as start() found it */
} hooks;

static int count_start(struct protocol_link *pl)
{
    hooks.starts++;
    hooks.seen |= *(unsigned char *)pl->state;
    *(unsigned char *)pl->state = 0xff;
    return fake_hello.start(pl);
}

static int count_input(struct protocol_link *pl, unsigned events)
{
    hooks.inputs++;
    return fake_hello.input(pl, events);
}

static void count_end(struct protocol_link *pl)
{
    (void)pl;
    hooks.ends++;
}

static void count_leave(struct protocol_link *pl)
{
    (void)pl;
    hooks.leaves++;
}

static const struct protocol counting = {
    .size = sizeof counting,
    .name = "counting",
    .link_size = 8,
    .start = count_start,
    .input = count_input,
    .end = count_end,
    .leave = count_leave,
};

static void begin(struct fake_owner *owner, const struct protocol *protocol)
{
    fake_owner_begin(owner, TESTING_ACCEPT);
    owner->options.protocol = protocol;
}

Test(link_protocol, each_start_is_followed_by_one_end_and_its_state_begins_zeroed)
{
    struct fake_owner owner;

    begin(&owner, &counting);
    testing_peer_serve(owner.peer, fake_ack, NULL);
    fake_owner_start(&owner);
    for (unsigned i = 1; i <= 5; i++) {
        fake_owner_until(&owner, LINK_READY, 10);
        cr_assert(eq(uint, hooks.starts, i));
        cr_assert(eq(uint, hooks.ends, i - 1));
        testing_peer_cut(owner.peer, LINK_RESET);
        fake_owner_settle(&owner);
        cr_assert(eq(uint, hooks.ends, i));
    }
    cr_assert(eq(uint, hooks.seen, 0));
    cr_assert(eq(uint, hooks.leaves, 0)); /* there was nobody to say goodbye to */
    testing_peer_behave(owner.peer, TESTING_REFUSE);
    fake_owner_run(&owner, 10); /* no transport, no start */
    cr_assert(eq(uint, hooks.starts, 5));
    testing_peer_behave(owner.peer, TESTING_ACCEPT);
    fake_owner_until(&owner, LINK_READY, 60);
    link_stop(owner.link);
    cr_assert(eq(uint, hooks.leaves, 1)); /* now there is */
    cr_assert(eq(uint, hooks.ends, 6));
    fake_owner_end(&owner);
}

Test(link_protocol, what_comes_after_the_handshake_is_the_holders)
{
    struct fake_owner owner;

    begin(&owner, &counting);
    owner.hears = true;
    testing_peer_serve(owner.peer, fake_ack, NULL);
    fake_owner_start(&owner);
    fake_owner_until(&owner, LINK_READY, 1);
    fake_owner_settle(&owner);
    unsigned inputs = hooks.inputs;
    testing_peer_say(owner.peer, "ACK?", 4);
    fake_owner_settle(&owner);
    cr_assert(eq(uint, hooks.inputs, inputs));
    cr_assert(eq(str, owner.heard, "ACK?"));
    fake_owner_end(&owner);
}

Test(link_protocol, connecting_and_shaking_hands_share_one_deadline)
{
    struct fake_owner owner;

    begin(&owner, &fake_hello);
    testing_peer_behave(owner.peer, TESTING_SILENT);
    testing_peer_delay(owner.peer, 2, 0);
    fake_owner_start(&owner);
    fake_owner_run(&owner, 2.999);
    cr_assert(eq(int, link_state(owner.link), LINK_HANDSHAKING));
    fake_owner_run(&owner, 0.002);
    cr_assert(eq(int, link_state(owner.link), LINK_BACKOFF));
    cr_assert(eq(int, link_last_reason(owner.link, NULL, NULL), LINK_TIMED_OUT));
    fake_owner_end(&owner);
}

/* Writes ten bytes through a buffer of four. */
static size_t written;

static int write_rest(struct protocol_link *pl)
{
    static const char greeting[] = "0123456789";
    struct iovec part = {(void *)(uintptr_t)(greeting + written), 10 - written};
    ssize_t sent = protocol_write(pl, &part, 1);

    if (sent > 0)
        written += (size_t)sent;
    if (sent < 0 && sent != LINKPOOL_EAGAIN)
        return (int)sent;
    return written == 10 ? protocol_ready(pl) : 0;
}

static int go_on_writing(struct protocol_link *pl, unsigned events)
{
    return events & LINKPOOL_WRITE ? write_rest(pl) : 0;
}

Test(link_protocol, a_write_that_did_not_all_go_is_followed_by_input_when_there_is_room)
{
    static const struct protocol wordy = {
        .size = sizeof wordy, .name = "wordy", .start = write_rest, .input = go_on_writing};
    struct fake_owner owner;
    size_t n;

    begin(&owner, &wordy);
    testing_send_buffer(owner.t, 4);
    fake_owner_start(&owner);
    fake_owner_until(&owner, LINK_READY, 1);
    fake_owner_settle(&owner);
    cr_assert(eq(int, memcmp(testing_peer_received(owner.peer, &n), "0123456789", 10), 0));
    cr_assert(eq(sz, n, 10));
    fake_owner_end(&owner);
}

static int leave_at_once(struct protocol_link *pl)
{
    return protocol_going(pl, NULL, LINK_NO_REASON, NULL);
}

Test(link_protocol, a_peer_that_leaves_before_it_has_come_is_a_failure)
{
    static const struct protocol leaving = {.size = sizeof leaving, .name = "leaving", .start = leave_at_once};
    struct fake_owner owner;
    const char *text;

    begin(&owner, &leaving);
    fake_owner_start(&owner);
    fake_owner_run(&owner, 0.5);
    cr_assert(eq(int, link_state(owner.link), LINK_BACKOFF));
    cr_assert(eq(int, link_last_reason(owner.link, NULL, &text), LINK_CLOSED_BY_PEER));
    cr_assert(eq(str, (char *)text, "the peer is leaving"));
    fake_owner_end(&owner);
}

/* ---- call-ups ---- */

Test(link_protocol, call_ups_with_an_attempt_that_is_over_answer_lost)
{
    cr_assert(eq(int, protocol_ready(NULL), LINKPOOL_ELOST));
    cr_assert(eq(int, protocol_fail(NULL, LINK_PROTOCOL_ERROR, "no"), LINKPOOL_ELOST));
    cr_assert(eq(int, protocol_set_room(NULL, 1), LINKPOOL_ELOST));
    cr_assert(eq(int, protocol_going(NULL, NULL, LINK_NO_REASON, NULL), LINKPOOL_ELOST));
    cr_assert(eq(int, protocol_pong(NULL), LINKPOOL_ELOST));
    cr_assert(eq(int, transport_lost(NULL, LINK_RESET, 0, NULL), LINKPOOL_ELOST));
}

static struct link_attempt attempt;
static unsigned first_room;

static int start_and_keep(struct protocol_link *pl)
{
    attempt = protocol_attempt(pl);
    if (pl->protocol->flags & PROTOCOL_SHARED && protocol_set_room(pl, first_room))
        return LINKPOOL_ELOST;
    return protocol_ready(pl);
}

static struct protocol_link *now_of_attempt(void)
{
    struct protocol_link *pl = protocol_attempt_link(attempt);

    cr_assert(ne(ptr, pl, NULL));
    return pl;
}

Test(link_protocol, an_exclusive_link_has_no_room_to_set)
{
    static const struct protocol kept = {.size = sizeof kept, .name = "kept", .start = start_and_keep};
    struct fake_owner owner;

    begin(&owner, &kept);
    fake_owner_start(&owner);
    fake_owner_until(&owner, LINK_READY, 1);
    cr_assert(eq(int, protocol_set_room(now_of_attempt(), 3), LINKPOOL_EOPTION));
    cr_assert(eq(int, protocol_pong(now_of_attempt()), 0));
    cr_assert(eq(int, protocol_fail(now_of_attempt(), LINK_PROTOCOL_ERROR, "nonsense"), LINKPOOL_ELOST));
    cr_assert(eq(int, link_state(owner.link), LINK_BACKOFF));
    cr_assert(eq(int, link_last_reason(owner.link, NULL, NULL), LINK_PROTOCOL_ERROR));
    fake_owner_end(&owner);
}

/* ---- shared, on a link on its own ---- */

static struct protocol shared_and_kept(unsigned room)
{
    struct protocol protocol = fake_shared;

    protocol.start = start_and_keep;
    first_room = room;
    return protocol;
}

static char heard[16];

static void on_message(struct channel *channel, const void *bytes, size_t n)
{
    (void)channel;
    strncat(heard, bytes, n);
}

static const struct channel_events messages = {.message = on_message};

Test(link_protocol, the_owner_of_a_shared_link_has_one_of_its_channels)
{
    struct protocol protocol = shared_and_kept(3);
    struct fake_owner owner;

    begin(&owner, &protocol);
    fake_owner_start(&owner);
    fake_owner_until(&owner, LINK_READY, 1);
    fake_owner_settle(&owner);
    cr_assert(eq(uint, fake_link_stats(owner.link).channels, 1));
    cr_assert(eq(uint, fake_link_stats(owner.link).room, 3));
    channel_watch(owner.channel, &messages, 0);
    cr_assert(eq(int, channel_send(owner.channel, "a", 1), 0));
    fake_owner_settle(&owner);
    cr_assert(eq(int, channel_send(owner.channel, "b", 1), 0));
    fake_owner_settle(&owner);
    cr_assert(eq(str, heard, "ab"));
    testing_peer_cut(owner.peer, LINK_CLOSED_BY_PEER);
    fake_owner_run(&owner, 3);
    cr_assert(
        eq(str, (char *)fake_owner_story(&owner), "connecting connected disconnected reconnect connecting connected"));
    cr_assert(eq(int, channel_send(owner.channel, "c", 1), 0));
    fake_owner_end(&owner);
}

Test(link_protocol, a_shared_link_without_room_is_its_owners_once_it_has_some)
{
    struct protocol protocol = shared_and_kept(0);
    struct fake_owner owner;

    begin(&owner, &protocol);
    fake_owner_start(&owner);
    fake_owner_until(&owner, LINK_READY, 1);
    fake_owner_run(&owner, 10);
    cr_assert(eq(uint, fake_owner_count(&owner, "connected"), 0));
    cr_assert(eq(int, protocol_set_room(now_of_attempt(), 2), 0));
    fake_owner_settle(&owner);
    cr_assert(eq(uint, fake_owner_count(&owner, "connected"), 1));
    cr_assert(eq(int, protocol_set_room(now_of_attempt(), 5), 0)); /* one is enough */
    fake_owner_settle(&owner);
    cr_assert(eq(uint, fake_owner_count(&owner, "connected"), 1));
    cr_assert(eq(uint, fake_link_stats(owner.link).reconnects, 0));
    fake_owner_end(&owner);
}

Test(link_protocol, a_protocol_that_refuses_the_channel_is_asked_again_when_it_sets_room)
{
    static struct fake_shared_ways ways = {.refuses = true};
    struct protocol protocol = shared_and_kept(2);
    struct fake_owner owner;

    protocol.config = &ways;
    begin(&owner, &protocol);
    fake_owner_start(&owner);
    fake_owner_run(&owner, 1);
    cr_assert(eq(int, link_state(owner.link), LINK_READY));
    cr_assert(eq(str, (char *)fake_owner_story(&owner), "connecting"));
    ways.refuses = false;
    cr_assert(eq(int, protocol_set_room(now_of_attempt(), 2), 0));
    fake_owner_settle(&owner);
    cr_assert(eq(str, (char *)fake_owner_story(&owner), "connecting connected"));
    fake_owner_end(&owner);
}

Test(link_protocol, when_the_peer_ends_the_channel_alone_its_owner_gets_another)
{
    struct protocol protocol = shared_and_kept(3);
    struct fake_owner owner;

    begin(&owner, &protocol);
    fake_owner_start(&owner);
    fake_owner_until(&owner, LINK_READY, 1);
    fake_owner_settle(&owner);
    cr_assert(eq(int, protocol_end(protocol_next_channel(now_of_attempt(), NULL), LINK_RESET, false), 0));
    fake_owner_run(&owner, 1);
    cr_assert(eq(str, (char *)fake_owner_story(&owner), "connecting connected disconnected connected"));
    cr_assert(eq(int, owner.told[2].reason, LINK_RESET));
    cr_assert(eq(uint, testing_peer_attempts(owner.peer), 1));
    cr_assert(eq(int, channel_send(owner.channel, "x", 1), 0));
    fake_owner_end(&owner);
}

static bool none_was(const struct protocol_channel *pc)
{
    (void)pc;
    return false;
}

static void announce(bool (*processed)(const struct protocol_channel *pc), double lasts)
{
    struct protocol protocol = shared_and_kept(3);
    struct fake_owner owner;

    begin(&owner, &protocol);
    owner.options.drain_timeout = 7;
    fake_owner_start(&owner);
    fake_owner_until(&owner, LINK_READY, 1);
    fake_owner_run(&owner, 1);
    cr_assert(eq(int, protocol_going(now_of_attempt(), processed, LINK_NO_REASON, NULL), 0));
    cr_assert(eq(int, link_state(owner.link), LINK_DRAINING));
    cr_assert(eq(int, protocol_going(now_of_attempt(), processed, LINK_NO_REASON, NULL),
        0)); /* a second notice changes nothing */
    if (lasts > 0) {
        fake_owner_run(&owner, lasts - 0.001);
        cr_assert(eq(int, link_state(owner.link), LINK_DRAINING));
        cr_assert(eq(uint, fake_owner_count(&owner, "disconnected"), 0));
    }
    fake_owner_run(&owner, 0.002);
    cr_assert(eq(int, link_state(owner.link), LINK_BACKOFF));
    fake_owner_run(&owner, 5);
    cr_assert(
        eq(str, (char *)fake_owner_story(&owner), "connecting connected disconnected reconnect connecting connected"));
    fake_owner_end(&owner);
}

Test(link_protocol, a_peer_that_leaves_is_left_within_drain_timeout)
{
    announce(NULL, 7);
}

Test(link_protocol, a_peer_that_leaves_and_denies_the_channel_is_left_at_once)
{
    announce(none_was, 0);
}

Test(link_protocol, its_channels_can_be_walked)
{
    struct protocol protocol = shared_and_kept(3);
    struct fake_owner owner;

    begin(&owner, &protocol);
    fake_owner_start(&owner);
    fake_owner_until(&owner, LINK_READY, 1);
    struct protocol_channel *pc = protocol_next_channel(now_of_attempt(), NULL);
    cr_assert(ne(ptr, pc, NULL));
    cr_assert(eq(ptr, pc->channel, owner.channel));
    cr_assert(eq(ptr, protocol_next_channel(now_of_attempt(), pc), NULL));
    cr_assert(eq(ptr, (void *)protocol_env(now_of_attempt()), &owner.env));
    fake_owner_end(&owner);
}
