/* cover_link.c - what transports and protocols may do that the usual ones do not: hooks that are left out, answers that
 * come too early or too late, and a loop that will not watch a descriptor. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <string.h>

#include "tests/fakes/owner.h"
#include "tests/fakes/session.h"
#include "tests/fakes/shared.h"
#include "tests/fakes/world.h"

#define ADDRESS "10.0.0.1:80"

static struct transport transport; /* of this test: transport_tcp with something else */
static struct protocol protocol;   /* of this test */

static struct testing_peer *begin(struct fake_world *world)
{
    transport = transport_tcp;
    protocol = protocol_raw;
    fake_world_begin(world);
    world->host.transport = &transport;
    world->host.protocol = &protocol;
    return fake_echo(world, ADDRESS);
}

/* Its only host's reason of the last failure. */
static struct pool_host_stats only_host(const struct fake_world *world)
{
    return fake_host_stats(pool_next_host(world->pool, NULL));
}

static struct fake_user *ask(struct fake_world *world, struct fake_user *user)
{
    fake_ask(world, user, ADDRESS);
    fake_run(world, 0.1);
    return user;
}

/* ---- transports ---- */

static enum transport_step fail_without_a_word(struct transport_link *tl, unsigned events)
{
    (void)tl, (void)events;
    return TRANSPORT_FAILED;
}

Test(cover_link, a_transport_that_fails_without_a_word_is_unreachable)
{
    struct fake_user user = {0};
    struct fake_world world;

    begin(&world);
    transport.open = fail_without_a_word;
    fake_world_open(&world);
    ask(&world, &user);
    cr_assert(eq(int, user.status, LINKPOOL_EUNAVAILABLE));
    cr_assert(eq(int, user.lease.reason, LINK_UNREACHABLE));
    fake_world_end(&world);
}

static enum transport_step lose_within(struct transport_link *tl, unsigned events)
{
    (void)events;
    transport_lost(tl, LINK_TLS_FAILED, 0, "");
    return TRANSPORT_AGAIN;
}

Test(cover_link, a_transport_may_lose_the_connection_from_within_its_hook)
{
    struct fake_user user = {0};
    struct fake_world world;

    begin(&world);
    transport.open = lose_within;
    fake_world_open(&world);
    ask(&world, &user);
    cr_assert(eq(int, user.lease.reason, LINK_TLS_FAILED));
    fake_world_end(&world);
}

static size_t held_back;
static size_t pending(const struct transport_link *tl)
{
    (void)tl;
    return held_back;
}

static int unclean;
static int reset(struct transport_link *tl)
{
    (void)tl;
    return unclean;
}

static unsigned interest(const struct transport_link *tl, unsigned want)
{
    (void)tl;
    return want | LINKPOOL_READ;
}

/* Used once, and given back. Says how many links ended of it. */
static uint64_t ends_after_use(struct fake_world *world)
{
    struct fake_user user = {0};
    uint64_t before = fake_stats(world).ends[LINK_UNEXPECTED_DATA];

    fake_hold(world, &user, ADDRESS);
    fake_give_back(&user);
    fake_settle(world);
    return fake_stats(world).ends[LINK_UNEXPECTED_DATA] - before;
}

Test(cover_link, a_transport_says_at_the_return_whether_the_link_is_clean)
{
    struct fake_world world;

    begin(&world);
    held_back = 0;
    unclean = 0;
    transport.pending = pending;
    transport.interest = interest;
    fake_world_open(&world);
    cr_assert(eq(ulong, ends_after_use(&world), 0));
    held_back = 1; /* of what was decrypted, a byte was not read */
    cr_assert(eq(ulong, ends_after_use(&world), 1));
    held_back = 0;
    fake_world_end(&world);

    begin(&world);
    transport.reset = reset;
    fake_world_open(&world);
    cr_assert(eq(ulong, ends_after_use(&world), 0));
    unclean = 1; /* an open transaction */
    cr_assert(eq(ulong, ends_after_use(&world), 1));
    fake_world_end(&world);
}

static const struct channel_events nothing_to_hear;
static void on_readable(struct channel *channel)
{
    char bytes[8];

    held_back = 0;
    channel_read(channel, bytes, sizeof bytes);
}
static const struct channel_events listens = {.readable = on_readable};

Test(cover_link, what_a_transport_holds_back_is_read_without_a_poll)
{
    struct fake_user user = {0};
    struct fake_world world;

    begin(&world);
    transport.pending = pending;
    held_back = 0;
    fake_world_open(&world);
    fake_hold(&world, &user, ADDRESS);
    cr_assert(eq(int, channel_watch(user.lease.channel, &listens, LINKPOOL_READ), 0));
    cr_assert(eq(int, channel_want(user.lease.channel, 0), 0));
    held_back = 3;
    cr_assert(
        eq(int, channel_want(user.lease.channel, LINKPOOL_READ), 0)); /* wanted again: room to write stands for it */
    fake_settle(&world);
    held_back = 0;
    cr_assert(eq(int, channel_watch(user.lease.channel, &nothing_to_hear, LINKPOOL_READ), 0));
    cr_assert(eq(long, channel_writev(user.lease.channel, &(struct iovec){"", 0}, 1), 0));
    cr_assert(eq(int, channel_want(user.lease.channel, 8), LINKPOOL_EINVAL));
    fake_world_end(&world);
}

static struct transport_link *seen;
static enum transport_step see_and_open(struct transport_link *tl, unsigned events)
{
    seen = tl;
    return transport_tcp_open(tl, events);
}

Test(cover_link, a_link_that_rests_has_no_attempt_to_keep)
{
    struct fake_owner owner;

    transport = transport_tcp;
    transport.open = see_and_open;
    fake_owner_begin(&owner, TESTING_ACCEPT);
    owner.options.transport = &transport;
    fake_owner_start(&owner);
    fake_owner_until(&owner, LINK_READY, 1);
    cr_assert(ne(ulong, transport_attempt(seen).id, 0));
    link_stop(owner.link);
    cr_assert(eq(ulong, transport_attempt(seen).id, 0));
    fake_owner_end(&owner);
}

/* ---- a loop that watches nothing more ---- */

static struct driver_ops ops;
static int (*real_io_start)(struct driver *driver, struct driver_io *io, int fd, unsigned events);
static bool is_deaf;
static struct driver_io *watched_last;

static int maybe_start(struct driver *driver, struct driver_io *io, int fd, unsigned events)
{
    watched_last = io;
    return is_deaf ? LINKPOOL_ENOMEM : real_io_start(driver, io, fd, events);
}

static void open_on_a_loop_that_may_be_deaf(struct fake_world *world)
{
    struct driver *driver = testing_driver(world->t);

    is_deaf = false;
    ops = *driver->ops;
    real_io_start = ops.io_start;
    ops.io_start = maybe_start;
    driver->ops = &ops;
    world->pool = pool_new_on(driver, &world->options);
    cr_assert(ne(ptr, world->pool, NULL));
}

Test(cover_link, a_connection_that_the_loop_will_not_watch_is_no_use)
{
    struct fake_user user = {0}, late = {.lease.flags = POOL_WAIT_FOR_READY};
    struct fake_world world;

    begin(&world);
    fake_echo(&world, "unix:/run/x");
    open_on_a_loop_that_may_be_deaf(&world);
    is_deaf = true;
    fake_ask(&world, &user, "unix:/run/x"); /* up at once: it is watched from its handshake on */
    fake_run(&world, 0.1);
    cr_assert(eq(int, user.status, LINKPOOL_EUNAVAILABLE));
    cr_assert(eq(int, user.lease.reason, LINK_NO_MEMORY));
    user = (struct fake_user){.lease.flags = POOL_WAIT_FOR_READY};
    fake_ask(&world, &user, ADDRESS); /* the same of one that is to be heard of when it has connected */
    fake_run(&world, 5.1);
    cr_assert(eq(int, user.status, LINKPOOL_ETIMEDOUT));
    cr_assert(eq(int, user.lease.reason, LINK_NO_MEMORY));
    cr_assert(eq(ulong, fake_stats(&world).ends[LINK_TIMED_OUT], 0));
    is_deaf = false;
    fake_ask(&world, &late, ADDRESS);
    fake_run(&world, 4);
    cr_assert(eq(int, late.status, POOL_READY));
    fake_give_back(&late);
    fake_world_end(&world);
}

/* A library that owns its socket changes it after the connection is up, and the new one cannot be watched. */
static enum transport_step move_at_the_second_call(struct transport_link *tl, unsigned events)
{
    seen = tl;
    return transport_tcp_open(tl, events);
}

Test(cover_link, a_descriptor_that_moves_and_cannot_be_watched_ends_the_link)
{
    struct fake_user user = {0};
    struct fake_world world;

    begin(&world);
    transport.open = move_at_the_second_call;
    open_on_a_loop_that_may_be_deaf(&world);
    fake_hold(&world, &user, ADDRESS);
    transport_moved(seen, seen->fd); /* another socket of the same number: watched anew */
    fake_exchange(&world, &user);
    is_deaf = true;
    transport_moved(seen, seen->fd);
    fake_run(&world, 0.1);
    cr_assert(eq(ulong, fake_stats(&world).ends[LINK_NO_MEMORY], 1));
    fake_world_end(&world);
}

/* What the kernel refuses later is told as an event of its own: the link's end, whatever it is about. */
static void told_that_nobody_watches(struct fake_world *world)
{
    watched_last->on(watched_last, LINKPOOL_UNWATCHED);
    fake_settle(world);
    cr_assert(eq(ulong, fake_stats(world).ends[LINK_NO_MEMORY], 1));
    cr_assert(eq(ulong, fake_stats(world).ends[LINK_TIMED_OUT], 0));
    fake_world_end(world);
}

Test(cover_link, an_attempt_that_nobody_watches_ends_for_want_of_memory)
{
    struct fake_user user = {0};
    struct fake_world world;

    testing_peer_delay(begin(&world), 1, 0);
    open_on_a_loop_that_may_be_deaf(&world);
    ask(&world, &user);
    told_that_nobody_watches(&world);
    cr_assert(eq(int, user.status, LINKPOOL_EUNAVAILABLE));
    cr_assert(eq(int, user.lease.reason, LINK_NO_MEMORY));
}

static int wait_for_nothing(struct protocol_link *pl);

Test(cover_link, a_handshake_that_nobody_watches_ends_for_want_of_memory)
{
    struct fake_user user = {0};
    struct fake_world world;

    begin(&world);
    protocol.start = wait_for_nothing;
    open_on_a_loop_that_may_be_deaf(&world);
    ask(&world, &user);
    cr_assert(eq(int, user.status, POOL_PENDING));
    told_that_nobody_watches(&world);
    cr_assert(eq(int, user.lease.reason, LINK_NO_MEMORY));
}

Test(cover_link, an_idle_link_that_nobody_watches_ends_for_want_of_memory)
{
    struct fake_user user = {0};
    struct fake_world world;

    begin(&world);
    open_on_a_loop_that_may_be_deaf(&world);
    fake_hold(&world, &user, ADDRESS);
    fake_give_back(&user);
    told_that_nobody_watches(&world);
}

Test(cover_link, a_held_link_that_nobody_watches_ends_for_want_of_memory)
{
    struct fake_user user = {0};
    struct fake_world world;

    begin(&world);
    open_on_a_loop_that_may_be_deaf(&world);
    fake_hold(&world, &user, ADDRESS);
    told_that_nobody_watches(&world);
    cr_assert(eq(uint, user.closed, 1));
    cr_assert(eq(int, user.lease.status, LINKPOOL_ELOST));
    cr_assert(eq(int, user.lease.reason, LINK_NO_MEMORY));
}

/* ---- protocols ---- */

static int wait_for_nothing(struct protocol_link *pl)
{
    (void)pl;
    return 0;
}

Test(cover_link, what_comes_in_a_handshake_that_reads_nothing_waits)
{
    struct fake_user user = {0};
    struct fake_world world;

    testing_peer_greet(begin(&world), "hello", 5);
    protocol.start = wait_for_nothing;
    fake_world_open(&world);
    fake_ask(&world, &user, ADDRESS);
    fake_run(&world, 1);
    cr_assert(eq(int, user.status, POOL_PENDING));
    fake_run(&world, 2.5); /* its deadline */
    cr_assert(eq(int, user.lease.reason, LINK_TIMED_OUT));
    fake_world_end(&world);
}

static ssize_t answers[4];
static int ask_for_bytes(struct protocol_link *pl)
{
    char byte = 'b';

    answers[0] = protocol_read(pl, &byte, 1);
    answers[1] = protocol_write(pl, &(struct iovec){&byte, 1}, 1);
    return protocol_ready(pl);
}

Test(cover_link, bytes_of_a_transport_that_has_none_are_no_option)
{
    struct fake_user user = {0};
    struct fake_world world;

    begin(&world);
    transport.readv = NULL;
    transport.writev = NULL;
    transport.shutdown = NULL;
    protocol.start = ask_for_bytes;
    fake_world_open(&world);
    fake_hold(&world, &user, ADDRESS);
    cr_assert(eq(long, answers[0], LINKPOOL_EOPTION));
    cr_assert(eq(long, answers[1], LINKPOOL_EOPTION));
    cr_assert(eq(int, channel_shutdown(user.lease.channel), LINKPOOL_EOPTION));
    cr_assert(eq(int, channel_send(user.lease.channel, "x", 1), LINKPOOL_EOPTION));
    fake_world_end(&world);
}

static int call_it_unexpected(struct protocol_link *pl)
{
    return protocol_fail(pl, LINK_UNEXPECTED_DATA, "");
}

Test(cover_link, a_handshake_in_which_something_else_came_is_a_failure)
{
    struct fake_user user = {0};
    struct fake_world world;

    begin(&world);
    protocol.start = call_it_unexpected;
    fake_world_open(&world);
    ask(&world, &user);
    cr_assert(eq(int, user.lease.reason, LINK_UNEXPECTED_DATA));
    cr_assert(eq(uint, only_host(&world).failures, 1));
    fake_world_end(&world);
}

static struct protocol_link *the_link;
static int note_and_be_ready(struct protocol_link *pl)
{
    the_link = pl;
    return protocol_ready(pl);
}

static void say_goodbye(struct protocol_link *pl)
{
    char byte;

    answers[2] = protocol_read(pl, &byte, 1); /* it is ending already */
    answers[3] = protocol_write(pl, &(struct iovec){"bye", 3}, 1);
}

static int never_mine(struct protocol_link *pl)
{
    (void)pl;
    return 0;
}

Test(cover_link, a_protocol_has_the_last_word_and_no_more_to_hear)
{
    struct fake_user user = {0};
    struct fake_world world;
    struct testing_peer *peer = begin(&world);

    protocol.start = note_and_be_ready;
    protocol.leave = say_goodbye;
    protocol.idle_input = never_mine;
    fake_world_open(&world);
    fake_hold(&world, &user, ADDRESS);
    cr_assert(eq(ptr, protocol_next_channel(the_link, NULL), NULL)); /* one holder: no channels */
    cr_assert(eq(int, protocol_set_room(the_link, 3), LINKPOOL_EOPTION));
    cr_assert(eq(int, protocol_pong(the_link), 0));
    fake_give_back(&user);
    testing_peer_say(peer, "?", 1); /* bytes between two leases, and not the protocol's */
    fake_run(&world, 0.1);
    cr_assert(eq(ulong, fake_stats(&world).ends[LINK_UNEXPECTED_DATA], 1));
    cr_assert(eq(long, answers[2], LINKPOOL_ELOST));
    cr_assert(eq(long, answers[3], 3));
    fake_world_end(&world);
}

static void on_leave(struct protocol_link *pl)
{
    (void)pl;
    answers[0]++;
}

/* Nothing may be said while the answer to something else is due. */
Test(cover_link, a_link_that_is_being_cleaned_goes_without_a_word_and_its_figures_are_those_of_one_that_is_up)
{
    struct fake_user user = {0};
    struct link_stats stats;
    struct fake_world world;

    begin(&world);
    protocol = fake_session;
    protocol.leave = on_leave;
    answers[0] = 0;
    fake_world_open(&world);
    fake_hold(&world, &user, ADDRESS);
    const struct link *link = channel_link(user.lease.channel);
    fake_run(&world, 1);
    fake_give_back(&user);
    cr_assert(eq(int, link_state(link), LINK_RESETTING));
    stats = fake_link_stats(link);
    cr_assert(ge(dbl, stats.age, 1));
    cr_assert(eq(uint, stats.room, 1));
    cr_assert(eq(ptr, link_data(link), NULL)); /* it is a pool's */
    link_free((struct link *)link);            /* which alone frees it */
    link_stop((struct link *)link);
    cr_assert(eq(int, link_start((struct link *)link), LINKPOOL_ESTATE));
    pool_free(world.pool);
    world.pool = NULL;
    cr_assert(eq(long, answers[0], 0));
    fake_world_end(&world);
}

/* ---- shared links ---- */

static unsigned messages;
static struct pool_lease *to_release;

static void on_message(struct channel *channel, const void *bytes, size_t n)
{
    (void)channel, (void)bytes, (void)n;
    messages++;
    if (to_release)
        pool_release(to_release, POOL_REUSE);
    to_release = NULL;
}

static const struct channel_events hears = {.message = on_message};

/* Each byte to each of its channels, which may end meanwhile: told twice, it is swallowed the second time. */
static int deliver_to_first(struct protocol_link *pl, unsigned events)
{
    struct protocol_channel *pc = protocol_next_channel(pl, NULL);
    char byte;

    (void)events;
    if (protocol_read(pl, &byte, 1) <= 0 || !pc)
        return 0;
    protocol_deliver(pc, &byte, 1);
    protocol_deliver(pc, &byte, 1);
    protocol_writable(pc);
    protocol_end(pc, LINK_PROTOCOL_ERROR, false);
    return protocol_end(pc, LINK_PROTOCOL_ERROR, false);
}

static void begin_shared(struct fake_world *world, struct testing_peer **peer)
{
    *peer = begin(world);
    protocol = fake_shared;
    protocol.start = note_and_be_ready;
    protocol.input = deliver_to_first;
    protocol.send = NULL;
    fake_world_open(world);
}

Test(cover_link, what_comes_for_a_channel_that_is_over_is_swallowed)
{
    struct fake_user users[3] = {0};
    struct testing_peer *peer;
    struct fake_world world;

    begin_shared(&world, &peer);
    for (unsigned i = 0; i < 3; i++)
        fake_hold(&world, &users[i], ADDRESS);
    cr_assert(eq(int, channel_send(users[0].lease.channel, "x", 1), LINKPOOL_EOPTION));
    messages = 0;
    to_release = &users[0].lease;
    cr_assert(eq(int, channel_watch(users[0].lease.channel, &hears, 0), 0));
    testing_peer_say(peer, "1", 1);
    fake_run(&world, 0.1);
    cr_assert(eq(uint, messages, 1)); /* it was given back within the first */
    testing_peer_say(peer, "2", 1);   /* the next one listens to nothing, and is ended twice */
    fake_run(&world, 0.1);
    cr_assert(eq(uint, users[1].closed, 1));
    cr_assert(eq(int, channel_watch(users[2].lease.channel, &nothing_to_hear, 0), 0));
    testing_peer_say(peer, "3", 1);
    fake_run(&world, 0.1);
    cr_assert(eq(uint, users[2].closed, 1));
    fake_world_end(&world);
}

static const struct protocol_channel *served;
static bool was_served(const struct protocol_channel *pc)
{
    return pc == served;
}

Test(cover_link, a_peer_that_leaves_says_which_channels_it_has_served)
{
    struct fake_user users[3] = {0};
    struct testing_peer *peer;
    struct fake_world world;

    begin_shared(&world, &peer);
    for (unsigned i = 0; i < 3; i++)
        fake_hold(&world, &users[i], ADDRESS);
    cr_assert(eq(int, protocol_end(protocol_next_channel(the_link, NULL), LINK_RESET, true), 0)); /* one is over */
    served = protocol_next_channel(the_link, NULL);
    cr_assert(eq(int, protocol_going(the_link, was_served, LINK_NO_REASON, NULL), 0));
    fake_run(&world, 0.1);
    cr_assert(eq(uint, users[1].closed + users[2].closed, 1));
    cr_assert(eq(int, (int)fake_link_stats(the_link->link).state, LINK_DRAINING));
    cr_assert(lt(dbl, 0, fake_link_stats(the_link->link).age));
    cr_assert(eq(int, protocol_going(the_link, NULL, LINK_NO_REASON, NULL), 0)); /* told again, nothing more follows */
    cr_assert(eq(int, protocol_ready(the_link), 0));                             /* nor of a late "ready" */
    fake_world_end(&world);
}

/* ---- links on their own ---- */

static unsigned n_told;
static void free_twice(struct link *link, struct channel *channel)
{
    (void)channel;
    n_told++;
    link_free(link);
    link_free(link); /* the memory goes when the outermost call of ours returns */
}

Test(cover_link, links_of_a_driver_have_one_env_and_go_in_any_order)
{
    struct testing *t = testing_new(1);
    struct driver *driver = testing_driver(t);
    struct link_options options;
    struct link *links[4];

    testing_peer_add(t, ADDRESS, TESTING_ACCEPT);
    link_options_init(&options);
    options.env = testing_env(t);
    options.connected = free_twice;
    n_told = 0;
    for (unsigned i = 0; i < 4; i++) {
        links[i] = link_new(driver, ADDRESS, &options);
        link_start(links[i]);
    }
    options.env = &linkpool_env_system;
    cr_assert(eq(ptr, link_new(driver, ADDRESS, &options), NULL));
    cr_assert(eq(int, errno, EBUSY));
    link_free(links[1]); /* from the middle of those who wait for the end of the turn, */
    link_free(links[3]); /* the last of them, */
    link_free(links[0]); /* and the first */
    testing_run_for(t, 1);
    cr_assert(eq(uint, n_told, 1));
    driver_free(driver);
    cr_assert(eq(sz, testing_blocks(t), 0));
    testing_free(t);
}

/* ---- a descriptor that moves twice in a turn, and that the loop will not watch in between ---- */

static void move_twice(void)
{
    is_deaf = true;
    transport_moved(seen, seen->fd);
    is_deaf = false;
    transport_moved(seen, seen->fd);
}

Test(cover_link, a_link_that_is_cleaned_has_its_time_though_its_descriptor_moves)
{
    struct fake_user user = {0};
    struct fake_world world;

    struct testing_peer *peer = begin(&world);
    transport.open = see_and_open;
    protocol = fake_session;
    open_on_a_loop_that_may_be_deaf(&world);
    fake_hold(&world, &user, ADDRESS);
    testing_peer_delay(peer, 0, 2);
    fake_give_back(&user);
    cr_assert(eq(int, link_state(pool_host_next_link(fake_host(&world, ADDRESS), NULL)), LINK_RESETTING));
    move_twice();
    fake_run(&world, 1.9);
    cr_assert(eq(int, link_state(pool_host_next_link(fake_host(&world, ADDRESS), NULL)), LINK_RESETTING));
    fake_run(&world, 0.2);
    cr_assert(eq(uint, fake_stats(&world).idle, 1));
    fake_world_end(&world);
}

static bool is_served(const struct protocol_channel *pc)
{
    (void)pc;
    return true;
}

static struct protocol_link *leaving;
static int note_and_begin(struct protocol_link *pl)
{
    leaving = pl;
    return protocol_ready(pl);
}

Test(cover_link, a_link_that_is_leaving_has_its_time_though_its_descriptor_moves)
{
    struct fake_user user = {0};
    struct fake_world world;

    begin(&world);
    transport.open = see_and_open;
    protocol = fake_shared;
    protocol.start = note_and_begin;
    world.host.drain_timeout = 7;
    open_on_a_loop_that_may_be_deaf(&world);
    fake_hold(&world, &user, ADDRESS);
    cr_assert(eq(int, protocol_going(leaving, is_served, LINK_NO_REASON, NULL), 0));
    move_twice();
    fake_run(&world, 6.9);
    cr_assert(eq(uint, user.closed, 0));
    fake_run(&world, 0.2);
    cr_assert(eq(uint, user.closed, 1));
    cr_assert(eq(int, user.lease.reason, LINK_CLOSED_BY_PEER));
    fake_world_end(&world);
}
