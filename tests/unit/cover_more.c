/* cover_more.c - sockets with settings and local addresses of each family, and calls on what is draining. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "tests/fakes/session.h"
#include "tests/fakes/shared.h"
#include "tests/fakes/world.h"

#define ADDRESS "10.0.0.1:80"
#define SIXTH   "[fd00::1]:80"
#define PATH    "unix:/run/x"

/* ---- sockets ---- */

static struct transport transport;
static struct transport_tcp_options settings;

static void hold_one(const char *address, const char *local)
{
    struct fake_user user = {0};
    struct fake_world world;

    transport = transport_tcp;
    transport.config = &settings;
    settings.size = sizeof settings;
    settings.local = local;
    fake_world_begin(&world);
    world.host.transport = &transport;
    fake_echo(&world, address);
    fake_world_open(&world);
    fake_hold(&world, &user, address);
    fake_give_back(&user);
    fake_world_end(&world);
}

Test(cover_more, settings_of_tcp_are_left_out_of_unix_sockets)
{
    settings = (struct transport_tcp_options){.keepalive = true, .user_timeout = 20};
    hold_one(ADDRESS, NULL);
    hold_one(PATH, NULL);
    settings = (struct transport_tcp_options){.nagle = true};
    hold_one(ADDRESS, "");
}

Test(cover_more, sockets_of_each_family_have_local_addresses)
{
    settings = (struct transport_tcp_options){0};
    hold_one(ADDRESS, "10.0.0.9:0");
    hold_one(ADDRESS, "10.0.0.9:7");
    hold_one(SIXTH, "[fd00::9]:0");
    hold_one(PATH, "unix:/run/mine");
}

Test(cover_more, local_texts_that_are_no_address_are_refused)
{
    static const char too_long[] = /* and a port */
        "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678"
        "901234567890123456789012345678901234567890123456789012345678901234567890123456789:0";
    static const char *const wrong[] = {":0", "x:0", "10.0.0.9", too_long};
    struct link_options options;

    for (unsigned i = 0; i < 4; i++) {
        link_options_init(&options);
        options.local = wrong[i];
        cr_assert(eq(int, link_options_check(&options, NULL, 0), LINKPOOL_EINVAL));
    }
}

static struct transport_link *seen;
static unsigned calls;
static enum transport_step open_late(struct transport_link *tl, unsigned events)
{
    seen = tl;
    if (calls++ == 0) {
        transport_want(tl, LINKPOOL_READ); /* there is no descriptor yet */
        transport_moved(tl, -1);
        transport_retry(tl, -1); /* at once */
        return TRANSPORT_AGAIN;
    }
    return transport_tcp_open(tl, events);
}

Test(cover_more, a_transport_may_begin_without_a_descriptor_and_lose_it_again)
{
    struct fake_user user = {0};
    struct fake_world world;

    transport = transport_tcp;
    transport.open = open_late;
    calls = 0;
    fake_world_begin(&world);
    world.host.transport = &transport;
    fake_echo(&world, ADDRESS);
    fake_world_open(&world);
    fake_hold(&world, &user, ADDRESS);
    cr_assert(lt(uint, 1, calls));
    int fd = seen->fd;
    transport_moved(seen, -1); /* none for now */
    fake_run(&world, 0.1);
    transport_moved(seen, fd);
    fake_exchange(&world, &user);
    fake_world_end(&world);
}

static unsigned rang;
static void on_writable(struct channel *channel)
{
    rang++;
    channel_want(channel, LINKPOOL_READ);
}

static unsigned readable;
static void on_readable(struct channel *channel)
{
    readable++;
    channel_want(channel, 0);
}

Test(cover_more, what_is_wanted_while_there_is_no_descriptor_is_heard_once_there_is_one)
{
    static const struct channel_events events = {.readable = on_readable, .writable = on_writable};
    struct fake_user user = {0};
    struct fake_world world;

    transport = transport_tcp;
    transport.open = open_late;
    calls = rang = 0;
    fake_world_begin(&world);
    world.host.transport = &transport;
    fake_echo(&world, ADDRESS);
    fake_world_open(&world);
    fake_hold(&world, &user, ADDRESS);
    int fd = seen->fd;
    transport_moved(seen, -1);
    cr_assert(eq(int, channel_watch(user.lease.channel, &events, LINKPOOL_READ | LINKPOOL_WRITE), 0));
    fake_run(&world, 0.1);
    cr_assert(eq(uint, rang, 0));
    transport_moved(seen, fd);
    fake_run(&world, 0.1);
    cr_assert(eq(uint, rang, 1));
    fake_world_end(&world);
}

static int the_fd;
static enum transport_step open_and_hide(struct transport_link *tl, unsigned events)
{
    enum transport_step step = transport_tcp_open(tl, events);

    seen = tl;
    the_fd = tl->fd;
    if (step == TRANSPORT_UP)
        transport_moved(tl, -1);
    return step;
}

/* As of a client library that opens its socket by itself: the link is up before there is a descriptor to watch. */
Test(cover_more, a_link_that_is_up_without_a_descriptor_is_watched_once_it_has_one)
{
    static const struct channel_events events = {.readable = on_readable};
    struct fake_user user = {0};
    struct fake_world world;

    transport = transport_tcp;
    transport.open = open_and_hide;
    fake_world_begin(&world);
    world.host.transport = &transport;
    struct testing_peer *peer = fake_echo(&world, PATH);
    fake_world_open(&world);
    fake_hold(&world, &user, PATH);
    readable = 0;
    cr_assert(eq(int, channel_watch(user.lease.channel, &events, LINKPOOL_READ), 0));
    transport_moved(seen, the_fd);
    testing_peer_say(peer, "?", 1);
    fake_run(&world, 0.1);
    cr_assert(eq(uint, readable, 1));
    fake_world_end(&world);
}

/* ---- protocols ---- */

static struct protocol protocol;
static struct protocol_link *the_link;
static int note_link(struct protocol_link *pl)
{
    the_link = pl;
    return protocol_ready(pl);
}

static bool never(const struct protocol_channel *pc)
{
    (void)pc;
    return false;
}

Test(cover_more, whom_a_leaving_peer_has_served_is_asked_of_shared_links_alone)
{
    struct fake_user user = {0};
    struct fake_world world;

    protocol = protocol_raw;
    protocol.start = note_link;
    fake_world_begin(&world);
    world.host.protocol = &protocol;
    fake_echo(&world, ADDRESS);
    fake_world_open(&world);
    fake_hold(&world, &user, ADDRESS);
    cr_assert(eq(int, protocol_going(the_link, never, LINK_NO_REASON, NULL), 0));
    cr_assert(eq(uint, user.closed, 0));
    fake_give_back(&user);
    cr_assert(eq(uint, fake_stats(&world).links, 0));
    fake_world_end(&world);
}

Test(cover_more, whoever_holds_an_exclusive_link_that_is_sent_away_stays_and_that_counts_at_once)
{
    struct fake_user user = {0};
    struct fake_world world;

    protocol = protocol_raw;
    protocol.start = note_link;
    fake_world_begin(&world);
    world.host.protocol = &protocol;
    fake_echo(&world, ADDRESS);
    fake_world_open(&world);
    fake_hold(&world, &user, ADDRESS);
    cr_assert(eq(int, protocol_going(the_link, never, LINK_SENT_AWAY, "go"), 0));
    fake_settle(&world);
    cr_assert(eq(uint, user.closed, 0));
    cr_assert(eq(uint, fake_host_stats(fake_host(&world, ADDRESS)).failures, 1));
    fake_give_back(&user);
    cr_assert(eq(uint, fake_stats(&world).links, 0));
    cr_assert(eq(int, pool_host_state(fake_host(&world, ADDRESS)), LINK_BACKOFF));
    cr_assert(eq(uint, fake_host_stats(fake_host(&world, ADDRESS)).failures, 1));
    fake_world_end(&world);
}

static const struct channel_events deaf;

Test(cover_more, room_for_a_channel_that_does_not_listen_for_it_is_told_to_nobody)
{
    struct fake_user user = {0};
    struct fake_world world;

    protocol = fake_shared;
    protocol.start = note_link;
    fake_world_begin(&world);
    world.host.protocol = &protocol;
    fake_echo(&world, ADDRESS);
    fake_world_open(&world);
    fake_hold(&world, &user, ADDRESS);
    cr_assert(eq(int, channel_watch(user.lease.channel, &deaf, 0), 0));
    cr_assert(eq(int, protocol_writable(protocol_next_channel(the_link, NULL)), 0));
    cr_assert(eq(int, protocol_deliver(protocol_next_channel(the_link, NULL), "x", 1), 0));
    cr_assert(eq(ulong, user.lease.bytes_received, 1));
    fake_world_end(&world);
}

Test(cover_more, options_change_while_a_link_is_being_cleaned)
{
    struct pool_host_options options;
    struct fake_user user = {0};
    struct fake_world world;

    fake_world_begin(&world);
    world.host.protocol = &fake_session;
    fake_echo(&world, ADDRESS);
    fake_world_open(&world);
    fake_hold(&world, &user, ADDRESS);
    fake_give_back(&user);
    options = world.host;
    options.max_age = 1;
    cr_assert(eq(int, pool_host_set_options(user.lease.host, &options), 0));
    fake_run(&world, 0.1);
    cr_assert(eq(uint, fake_stats(&world).idle, 1));
    fake_run(&world, 1);
    cr_assert(eq(uint, fake_stats(&world).idle, 0));
    fake_world_end(&world);
}

/* ---- targets that drain ---- */

static unsigned drained;
static void count_drained(struct pool_target *target, void *data)
{
    (void)target, (void)data;
    drained++;
}

Test(cover_more, a_target_that_drains_takes_nothing_new_while_its_pool_goes_on)
{
    static const char *const addresses[] = {ADDRESS};
    struct pool_endpoint endpoint;
    struct fake_user users[3] = {0};
    struct fake_world world;

    fake_world_begin(&world);
    world.host.max_links = 1;
    fake_echo(&world, ADDRESS);
    fake_world_open(&world);
    drained = 0;
    struct pool_target *target = fake_target(&world, "target", &pool_pick_first, addresses, 1);
    cr_assert(eq(int, pool_target_update(target, NULL, 1), LINKPOOL_EINVAL));
    fake_hold(&world, &users[0], "target");
    fake_ask(&world, &users[1], "target");
    cr_assert(eq(int, pool_target_drain(target, INFINITY, count_drained, NULL), 0));
    fake_run(&world, 0.1);
    cr_assert(eq(uint, drained, 0)); /* one holds, and one waits */
    fake_endpoints(&endpoint, addresses, 1);
    cr_assert(eq(int, fake_ask_target(&world, &users[2], target), LINKPOOL_ECLOSED));
    cr_assert(eq(int, pool_target_update(target, &endpoint, 1), LINKPOOL_ECLOSED));
    cr_assert(eq(int, pool_target_start(target), LINKPOOL_ECLOSED));
    cr_assert(eq(int, (int)pool_target_state(target), LINK_CLOSED));
    fake_give_back(&users[0]);
    fake_run(&world, 0.1);
    fake_give_back(&users[1]);
    fake_run(&world, 0.1);
    cr_assert(eq(uint, drained, 1));
    fake_world_end(&world);
}

/* Who waits at a target whose only host is down, and by the host's own address, passes each other by. */
Test(cover_more, those_who_wait_for_a_host_that_is_out_of_service_get_nothing_of_it)
{
    static const char *const addresses[] = {ADDRESS};
    struct fake_user users[2] = {0};
    struct fake_world world;

    fake_world_begin(&world);
    world.host.max_links = 1;
    fake_echo(&world, ADDRESS);
    fake_world_open(&world);
    struct pool_target *target = fake_target(&world, "target", &pool_pick_first, addresses, 1);
    fake_hold(&world, &users[0], ADDRESS);
    users[1].lease.flags = POOL_WAIT_FOR_READY;
    fake_ask_target(&world, &users[1], target);
    cr_assert(eq(int, pool_host_drain(users[0].lease.host, 1), 0));
    fake_give_back(&users[0]);
    fake_run(&world, 0.1);
    cr_assert(eq(int, users[1].status, POOL_PENDING));
    cr_assert(eq(uint, fake_stats(&world).links, 0));
    cr_assert(eq(int, pool_host_start(fake_host(&world, ADDRESS)), 0));
    fake_run(&world, 0.1);
    cr_assert(eq(int, users[1].status, POOL_READY));
    fake_give_back(&users[1]);
    fake_world_end(&world);
}

/* ---- what a hook of the return leaves unsent ---- */

static unsigned inputs;
static int count_input(struct protocol_link *pl, unsigned events)
{
    (void)pl, (void)events;
    inputs++;
    return 0;
}

static int say_too_much(struct protocol_link *pl)
{
    static char much[4];

    cr_assert(eq(long, protocol_write(pl, &(struct iovec){much, sizeof much}, 1), 2));
    return PROTOCOL_CLEAN;
}

/* An exclusive protocol that calls a link clean has nothing left to say on it. */
Test(cover_more, an_exclusive_link_that_is_clean_hears_of_no_room)
{
    struct fake_user user = {0};
    struct fake_world world;

    protocol = protocol_raw;
    protocol.input = count_input;
    protocol.released = say_too_much;
    inputs = 0;
    fake_world_begin(&world);
    world.host.protocol = &protocol;
    struct testing_peer *peer = fake_peer(&world, ADDRESS, TESTING_ACCEPT);
    testing_peer_serve(peer, NULL, NULL);
    testing_send_buffer(world.t, 2);
    fake_world_open(&world);
    fake_hold(&world, &user, ADDRESS);
    fake_give_back(&user);
    fake_run(&world, 1);
    cr_assert(eq(uint, inputs, 0));
    cr_assert(eq(uint, fake_stats(&world).idle, 1));
    fake_world_end(&world);
}

static void say_at_close(struct protocol_link *pl, struct protocol_channel *pc, bool cancelled)
{
    static char much[8];

    (void)pc, (void)cancelled;
    protocol_write(pl, &(struct iovec){much, sizeof much}, 1);
}

static int give_up_at_room(struct protocol_link *pl, unsigned events)
{
    inputs++;
    return events & LINKPOOL_WRITE ? protocol_fail(pl, LINK_PROTOCOL_ERROR, "no more") : 0;
}

static int take_none(struct protocol_link *pl)
{
    (void)pl;
    inputs += 100;
    return 0;
}

/* Room and bytes come in one poll, and the first ends the link: it is not looked at any more. */
Test(cover_more, a_shared_link_that_ends_at_room_is_not_looked_at)
{
    struct fake_user user = {0};
    struct fake_world world;

    protocol = fake_shared;
    protocol.close = say_at_close;
    protocol.input = give_up_at_room;
    protocol.idle_input = take_none;
    inputs = 0;
    fake_world_begin(&world);
    world.host.protocol = &protocol;
    struct testing_peer *peer = fake_peer(&world, ADDRESS, TESTING_ACCEPT);
    testing_send_buffer(world.t, 2);
    fake_world_open(&world);
    fake_ask(&world, &user, ADDRESS);
    fake_run(&world, 0.01);
    cr_assert(eq(int, user.status, POOL_READY));
    fake_give_back(&user); /* with bytes that found no room */
    testing_peer_say(peer, "?", 1);
    fake_run(&world, 0.1);
    cr_assert(eq(uint, inputs, 1));
    cr_assert(eq(ulong, fake_stats(&world).ends[LINK_PROTOCOL_ERROR], 1));
    fake_world_end(&world);
}

static struct protocol_link *shared_link;
static int note_shared(struct protocol_link *pl)
{
    shared_link = pl;
    return protocol_ready(pl);
}

/* One link in all, of one channel. @return the peer at ADDRESS. */
static struct testing_peer *open_full_pool(struct fake_world *world, int (*start)(struct protocol_link *pl))
{
    protocol = fake_shared;
    protocol.max_channels = 1;
    protocol.start = start;
    fake_world_begin(world);
    world->host.protocol = &protocol;
    world->options.max_links = 1;
    fake_world_open(world);
    fake_echo(world, SIXTH);
    return fake_echo(world, ADDRESS);
}

/* Who waits for its host does not keep it: it has no room for them. */
Test(cover_more, a_link_without_room_makes_room_for_another_host)
{
    struct fake_user user = {0}, own = {0}, other = {0};
    struct fake_world world;

    open_full_pool(&world, note_shared);
    fake_hold(&world, &user, ADDRESS);
    fake_ask(&world, &other, SIXTH);
    fake_ask(&world, &own, ADDRESS);
    fake_settle(&world);
    cr_assert(eq(int, protocol_set_room(shared_link, 0), 0));
    fake_give_back(&user);
    fake_run(&world, 0.1);
    cr_assert(eq(ulong, fake_stats(&world).ends[LINK_MADE_ROOM], 1));
    cr_assert(eq(int, other.status, POOL_READY));
    fake_give_back(&other);
    fake_run(&world, 0.1);
    cr_assert(eq(int, own.status, POOL_READY));
    fake_give_back(&own);
    fake_world_end(&world);
}

static int begin_without_room(struct protocol_link *pl)
{
    return protocol_set_room(pl, 0) ? LINKPOOL_ELOST : protocol_ready(pl);
}

/* In a full pool such a link is in the way of those at its own host as well. */
Test(cover_more, a_link_without_room_makes_room_for_its_own_host)
{
    struct fake_user user = {0}, own = {0}, other = {0};
    struct fake_world world;

    open_full_pool(&world, note_shared);
    fake_hold(&world, &user, ADDRESS);
    fake_ask(&world, &own, ADDRESS);
    fake_ask(&world, &other, SIXTH);
    fake_settle(&world);
    cr_assert(eq(int, protocol_set_room(shared_link, 0), 0));
    fake_give_back(&user);
    fake_run(&world, 0.1);
    cr_assert(eq(int, own.status, POOL_READY)); /* by another link: it has waited longer */
    fake_give_back(&own);
    fake_run(&world, 0.1);
    cr_assert(eq(int, other.status, POOL_READY));
    fake_give_back(&other);
    fake_world_end(&world);
}

Test(cover_more, a_link_without_room_makes_room_for_who_asks_at_its_own_host_later)
{
    struct fake_user user = {0}, own = {0};
    struct fake_world world;

    open_full_pool(&world, note_shared);
    fake_hold(&world, &user, ADDRESS);
    cr_assert(eq(int, protocol_set_room(shared_link, 0), 0));
    fake_give_back(&user);
    fake_run(&world, 1);
    fake_ask(&world, &own, ADDRESS);
    fake_run(&world, 0.1);
    cr_assert(eq(int, own.status, POOL_READY));
    fake_give_back(&own);
    fake_world_end(&world);
}

/* And one that never took anybody is not dialled in a circle. */
Test(cover_more, a_link_that_never_has_room_stays_while_its_own_host_alone_waits)
{
    struct fake_user late = {.lease = {.timeout = INFINITY}};
    struct fake_world world;

    struct testing_peer *peer = open_full_pool(&world, begin_without_room);
    fake_ask(&world, &late, ADDRESS);
    fake_run(&world, 10);
    cr_assert(eq(uint, testing_peer_attempts(peer), 1));
    cr_assert(eq(int, late.status, POOL_PENDING));
    fake_world_end(&world);
}

/* ---- what is of shared links alone, or of links that stay ---- */

Test(cover_more, an_exclusive_link_has_neither_a_later_nor_room)
{
    struct fake_user user = {0};
    struct fake_world world;

    protocol = protocol_raw;
    protocol.start = note_link;
    fake_world_begin(&world);
    world.host.protocol = &protocol;
    fake_echo(&world, ADDRESS);
    fake_world_open(&world);
    fake_hold(&world, &user, ADDRESS);
    cr_assert(eq(int, protocol_later(the_link), LINKPOOL_EOPTION));
    cr_assert(eq(int, protocol_set_room(the_link, 2), LINKPOOL_EOPTION));
    fake_give_back(&user);
    fake_world_end(&world);
}

static int begin_and_count(struct protocol_link *pl, unsigned events)
{
    inputs += !events;
    return fake_shared.input(pl, events);
}

static void ask_for_later(struct protocol_link *pl)
{
    cr_assert(eq(int, protocol_later(pl), 0));
}

/* One link at ADDRESS, of the protocol of this test. */
static struct testing_peer *open_shared(struct fake_world *world)
{
    protocol = fake_shared;
    protocol.start = note_shared;
    protocol.input = begin_and_count;
    inputs = 0;
    fake_world_begin(world);
    world->host.protocol = &protocol;
    fake_world_open(world);
    return fake_echo(world, ADDRESS);
}

Test(cover_more, a_link_that_ends_has_no_later)
{
    struct fake_user user = {0};
    struct fake_world world;

    open_shared(&world);
    protocol.leave = ask_for_later;
    fake_hold(&world, &user, ADDRESS);
    ask_for_later(shared_link);
    fake_settle(&world);
    cr_assert(eq(uint, inputs, 1));
    fake_give_back(&user);
    cr_assert(eq(int, pool_host_drain(fake_host(&world, ADDRESS), 1), 0)); /* it says goodbye */
    fake_run(&world, 1);
    cr_assert(eq(uint, fake_stats(&world).links, 0));
    cr_assert(eq(uint, inputs, 1));
    fake_world_end(&world);
}

static unsigned pieces;
static void on_piece(struct channel *channel, const void *bytes, size_t n, bool last)
{
    (void)channel, (void)bytes, (void)n, (void)last;
    pieces++;
}

static const struct channel_events in_pieces = {.part = on_piece};

Test(cover_more, a_channel_that_is_over_takes_no_pieces)
{
    struct fake_user user = {0};
    struct fake_world world;

    open_shared(&world);
    pieces = 0;
    fake_hold(&world, &user, ADDRESS);
    cr_assert(eq(int, channel_watch(user.lease.channel, &in_pieces, 0), 0));
    struct protocol_channel *pc = protocol_next_channel(shared_link, NULL);
    cr_assert(protocol_takes_parts(pc));
    cr_assert(eq(int, protocol_end(pc, LINK_CLOSED_BY_PEER, false), 0));
    cr_assert(not(protocol_takes_parts(pc)));
    cr_assert(eq(int, protocol_deliver_part(pc, "x", 1, true), 0)); /* swallowed */
    fake_settle(&world);
    cr_assert(eq(uint, user.closed, 1));
    cr_assert(eq(uint, pieces, 0));
    fake_world_end(&world);
}

/* Its only holder is over already: nobody is left who would finish first. */
Test(cover_more, a_link_sent_away_after_its_last_channel_was_ended_is_one_failure)
{
    struct fake_user user = {0};
    struct fake_world world;

    open_shared(&world);
    fake_hold(&world, &user, ADDRESS);
    cr_assert(eq(int, protocol_end(protocol_next_channel(shared_link, NULL), LINK_CLOSED_BY_PEER, false), 0));
    cr_assert(eq(int, protocol_going(shared_link, NULL, LINK_SENT_AWAY, "go"), 0));
    fake_settle(&world);
    cr_assert(eq(uint, user.closed, 1));
    cr_assert(eq(int, user.lease.reason, LINK_CLOSED_BY_PEER));
    cr_assert(eq(ulong, fake_stats(&world).ends[LINK_SENT_AWAY], 1));
    cr_assert(eq(uint, fake_host_stats(fake_host(&world, ADDRESS)).failures, 1));
    fake_world_end(&world);
}

static int go_at_once(struct protocol_link *pl)
{
    return protocol_going(pl, NULL, LINK_SENT_AWAY, "come back later");
}

Test(cover_more, a_peer_may_send_us_away_in_the_handshake_and_say_why)
{
    struct fake_user user = {0};
    struct fake_world world;
    char text[400];

    open_shared(&world);
    protocol.start = go_at_once;
    fake_ask(&world, &user, ADDRESS);
    fake_run(&world, 0.05);
    cr_assert(eq(int, user.status, LINKPOOL_EUNAVAILABLE));
    cr_assert(eq(int, user.lease.reason, LINK_SENT_AWAY));
    pool_host_explain(fake_host(&world, ADDRESS), text, sizeof text);
    cr_assert(ne(ptr, strstr(text, "come back later"), NULL), "%s", text);
    fake_world_end(&world);
}

Test(cover_more, a_complaint_about_a_link_that_asks_nothing_is_no_matter)
{
    struct fake_user user = {0};
    struct fake_world world;

    open_shared(&world);
    fake_hold(&world, &user, ADDRESS);
    cr_assert(eq(int, protocol_ping_less(shared_link), 0));
    cr_assert(eq(int, channel_send(user.lease.channel, "x", 1), 0));
    fake_settle(&world);
    cr_assert(eq(ulong, user.lease.bytes_received, 1));
    fake_give_back(&user);
    fake_world_end(&world);
}

enum {
    LARGE_STATE = 100
};

static unsigned opened_large;

static int look_at_state(struct protocol_link *pl, struct protocol_channel *pc)
{
    const char *state = pc->state;

    (void)pl;
    for (int i = 0; i < LARGE_STATE; i++)
        cr_assert(eq(chr, state[i], 0));
    memset(pc->state, 'x', LARGE_STATE);
    opened_large++;
    return 0;
}

Test(cover_more, the_state_of_a_channel_is_clear_each_time_however_large)
{
    struct fake_user user = {0};
    struct fake_world world;

    open_shared(&world);
    protocol.channel_size = LARGE_STATE;
    protocol.open = look_at_state;
    protocol.close = NULL;
    opened_large = 0;
    for (int i = 0; i < 3; i++) {
        fake_hold(&world, &user, ADDRESS);
        fake_give_back(&user);
    }
    cr_assert(eq(uint, opened_large, 3));
    fake_world_end(&world);
}
