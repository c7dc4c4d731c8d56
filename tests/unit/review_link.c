/* review_link.c - faults that a strict reading of link/ has found, each as the smallest scenario: links on their own,
 * hooks, shared links, bytes between two holders. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <ev.h>
#include <string.h>

#include "tests/fakes/owner.h"
#include "tests/fakes/session.h"
#include "tests/fakes/shared.h"
#include "tests/fakes/world.h"

static const char a[] = "10.0.0.1:80";

static struct fake_world world;

/* ---- links on their own ---- */

Test(review_link, the_last_link_may_go_before_the_turn_it_asked_for_ends)
{
    struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
    struct driver *driver = driver_ev_new(loop);
    struct link *link = link_new(driver, "127.0.0.1:9", NULL);

    cr_assert(ne(ptr, link, NULL));
    cr_assert(eq(int, link_start(link), 0));
    link_stop(link);
    link_free(link);
    for (int i = 0; i < 3; i++)
        ev_run(loop, EVRUN_NOWAIT);
    link = link_new(driver, "127.0.0.1:9", NULL); /* and others come after it */
    cr_assert(ne(ptr, link, NULL));
    link_free(link);
    driver_free(driver);
    ev_loop_destroy(loop);
}

Test(review_link, options_without_a_size_are_the_defaults)
{
    struct testing *t = testing_new(1);
    struct driver *driver = testing_driver(t);
    struct pool_observer observer = {0};
    struct link_options options = {0};
    struct link *link;

    cr_assert(ne(ptr, link = link_new(driver, a, &options), NULL));
    link_free(link);
    link_options_init(&options);
    options.observer = &observer;
    options.env = testing_env(t);
    cr_assert(ne(ptr, link = link_new(driver, a, &options), NULL));
    cr_assert(eq(int, link_start(link), 0));
    cr_assert(testing_run_for(t, 1));
    link_free(link);
    driver_free(driver);
    testing_free(t);
}

/* ---- a shared protocol whose hooks call up, and remember what they were answered ---- */

static struct protocol calling;
static struct link_attempt attempts[8];
static unsigned n_attempts;
static struct protocol_channel *kept; /* the first channel that was opened */
static int told_open[2], told_close[2], told_leave[2], leaves, messages, writables;

static int keep_attempt(struct protocol_link *pl)
{
    attempts[n_attempts++ % 8] = protocol_attempt(pl);
    return protocol_ready(pl);
}

static void call_up(int answers[2])
{
    if (!kept)
        return;
    answers[0] = protocol_deliver(kept, "m", 1);
    answers[1] = protocol_writable(kept);
}

static int call_at_open(struct protocol_link *pl, struct protocol_channel *pc)
{
    call_up(told_open);
    if (!kept)
        kept = pc;
    return fake_shared.open(pl, pc);
}

static void call_at_close(struct protocol_link *pl, struct protocol_channel *pc, bool cancelled)
{
    (void)pl, (void)pc, (void)cancelled;
    call_up(told_close);
}

static void call_at_leave(struct protocol_link *pl)
{
    leaves++;
    cr_assert(eq(ptr, protocol_next_channel(pl, NULL), NULL)); /* all are over by then */
    call_up(told_leave);
}

static void on_message(struct channel *channel, const void *bytes, size_t n)
{
    (void)channel, (void)bytes, (void)n;
    messages++;
}

static void on_writable(struct channel *channel)
{
    (void)channel;
    writables++;
}

static const struct channel_events hearing = {.message = on_message, .writable = on_writable};

static struct testing_peer *begin_with(struct protocol protocol, unsigned max_links)
{
    calling = protocol;
    fake_world_begin(&world);
    world.host.protocol = &calling;
    world.host.max_links = max_links;
    fake_world_open(&world);
    return fake_echo(&world, a);
}

Test(review_link, hooks_that_run_inside_the_users_calls_reach_no_holder)
{
    struct fake_user holder = {0}, other = {0};
    struct protocol protocol = fake_shared;

    protocol.open = call_at_open;
    protocol.close = call_at_close;
    protocol.leave = call_at_leave;
    begin_with(protocol, 64);
    fake_hold(&world, &holder, a);
    cr_assert(eq(int, channel_watch(holder.lease.channel, &hearing, LINKPOOL_READ | LINKPOOL_WRITE), 0));
    cr_assert(eq(int, fake_ask(&world, &other, a), POOL_READY));
    fake_give_back(&other);
    cr_assert(eq(int, pool_host_drain(holder.lease.host, 1), 0)); /* the holder stays to its end */
    fake_run(&world, 2);
    for (int i = 0; i < 2; i++) {
        cr_assert(eq(int, told_open[i], LINKPOOL_ESTATE));
        cr_assert(eq(int, told_close[i], LINKPOOL_ESTATE));
        cr_assert(eq(int, told_leave[i], LINKPOOL_ESTATE));
    }
    cr_assert(eq(int, leaves, 1));
    cr_assert(eq(int, messages, 0));
    cr_assert(eq(int, writables, 0));
    cr_assert(eq(uint, holder.closed, 1));
    fake_world_end(&world);
}

/* ---- an ending link is lent to nobody, and its last words reach nobody ---- */

static struct fake_user late;

static void ask_again(struct channel *channel, const void *bytes, size_t n)
{
    on_message(channel, bytes, n);
    fake_ask(&world, &late, a);
}

static void free_pool(struct channel *channel, const void *bytes, size_t n)
{
    on_message(channel, bytes, n);
    pool_free(world.pool);
    world.pool = NULL;
}

/* Says goodbye as HTTP/2 would: what it has of the channels' messages is still delivered. */
static void deliver_the_rest(struct protocol_link *pl)
{
    struct protocol_channel *pc = NULL;

    leaves++;
    while ((pc = protocol_next_channel(pl, pc)))
        if (protocol_deliver(pc, "m", 1))
            return;
}

static void end_while_it_is_held(void (*message)(struct channel *channel, const void *bytes, size_t n))
{
    struct channel_events events = {.message = message};
    struct protocol protocol = fake_shared;
    struct fake_user holder = {0};

    protocol.start = keep_attempt;
    protocol.leave = deliver_the_rest;
    begin_with(protocol, 64);
    fake_hold(&world, &holder, a);
    cr_assert(eq(int, channel_watch(holder.lease.channel, &events, LINKPOOL_READ), 0));
    protocol_fail(protocol_attempt_link(attempts[0]), LINK_STOPPED, NULL);
    fake_run(&world, 1);
    cr_assert(eq(int, leaves, 1));
    cr_assert(eq(int, messages, 0));
    cr_assert(eq(uint, holder.closed, 1));
    fake_world_end(&world);
}

Test(review_link, what_a_leaving_link_still_delivers_lends_it_to_nobody)
{
    end_while_it_is_held(ask_again);
}

Test(review_link, what_a_leaving_link_still_delivers_frees_no_pool)
{
    end_while_it_is_held(free_pool);
}

/* ---- one waiting lease has one channel ---- */

static struct fake_user users[5];

static void give_back_all(struct channel *channel)
{
    static const int order[] = {0, 2, 3, 1};
    char bytes[8];

    cr_assert(eq(long, channel_read(channel, bytes, sizeof bytes), 1));
    for (int i = 0; i < 4; i++)
        fake_give_back(&users[order[i]]);
}

Test(review_link, a_winner_whose_link_died_is_given_one_channel_though_the_next_is_dead_as_well)
{
    static const struct channel_events events = {.readable = give_back_all};
    char byte;

    struct testing_peer *peer = begin_with(protocol_raw, 4);
    for (int i = 0; i < 4; i++)
        fake_hold(&world, &users[i], a);
    fake_send(&users[1], "x");
    fake_settle(&world);
    cr_assert(eq(long, channel_read(users[1].lease.channel, &byte, 1), 1)); /* all, but it cannot know that */
    cr_assert(eq(int, channel_watch(users[3].lease.channel, &events, LINKPOOL_READ), 0));
    cr_assert(eq(int, fake_ask(&world, &users[4], a), POOL_PENDING));
    fake_settle(&world);
    testing_conn_send(testing_peer_conn(peer, 3), "x", 1);
    struct testing_conn *first = testing_peer_conn(peer, 0), *second = testing_peer_conn(peer, 1);
    testing_conn_close(first);
    testing_conn_close(second);
    fake_run(&world, 1);
    cr_assert(eq(uint, users[4].done, 1));
    cr_assert(eq(int, users[4].status, POOL_READY));
    cr_assert(eq(uint, fake_stats(&world).leased, 1));
    fake_exchange(&world, &users[4]);
    fake_give_back(&users[4]);
    cr_assert(eq(uint, fake_stats(&world).leased, 0));
    fake_world_end(&world);
}

Test(review_link, a_winner_whose_shared_link_died_is_given_one_channel_though_the_next_ends_at_open)
{
    static const struct fake_shared_ways ways = {.speaks_at_open = true};
    static const int order[] = {0, 2, 3, 1};
    struct protocol protocol = fake_shared;

    protocol.max_channels = 1;
    protocol.config = &ways;
    protocol.start = keep_attempt;
    begin_with(protocol, 4);
    for (int i = 0; i < 4; i++)
        fake_hold(&world, &users[i], a);
    cr_assert(eq(int, fake_ask(&world, &users[4], a), POOL_PENDING));
    fake_settle(&world);
    for (int i = 0; i < 4; i++)
        fake_give_back(&users[order[i]]);
    testing_fail_call(world.t, TESTING_SENDMSG, 1, EPIPE, false); /* the next open() */
    cr_assert(eq(int, protocol_fail(protocol_attempt_link(attempts[0]), LINK_RESET, NULL), LINKPOOL_ELOST));
    fake_run(&world, 1);
    cr_assert(eq(uint, users[4].done, 1));
    cr_assert(eq(int, users[4].status, POOL_READY));
    cr_assert(eq(uint, fake_stats(&world).leased, 1));
    fake_give_back(&users[4]);
    cr_assert(eq(uint, fake_stats(&world).leased, 0));
    fake_world_end(&world);
}

static bool none_was(const struct protocol_channel *pc)
{
    (void)pc;
    return false;
}

Test(review_link, a_winner_that_the_leaving_peer_denies_is_not_given_the_leaving_link_again)
{
    struct protocol protocol = fake_shared;

    protocol.max_channels = 1;
    protocol.start = keep_attempt;
    struct testing_peer *peer = begin_with(protocol, 1);
    fake_hold(&world, &users[0], a);
    users[1].lease.flags = POOL_WAIT_FOR_READY; /* for the peer has answered nothing yet */
    cr_assert(eq(int, fake_ask(&world, &users[1], a), POOL_PENDING));
    fake_settle(&world);
    fake_give_back(&users[0]);
    protocol_going(protocol_attempt_link(attempts[0]), none_was, LINK_NO_REASON, NULL);
    fake_run(&world, 1);
    cr_assert(eq(int, users[1].status, POOL_READY));
    cr_assert(eq(uint, testing_peer_accepted(peer), 2));
    cr_assert(eq(int, link_state(channel_link(users[1].lease.channel)), LINK_READY));
    fake_world_end(&world);
}

/* ---- a link that leaves while nobody holds it ---- */

static int leave_when_idle(struct protocol_link *pl)
{
    char bytes[8];

    protocol_read(pl, bytes, sizeof bytes);
    protocol_going(pl, NULL, LINK_NO_REASON, NULL);
    return 1;
}

Test(review_link, idle_bytes_that_announce_the_peers_leaving_keep_the_link_from_being_lent)
{
    struct fake_user first = {0}, next = {0};
    struct protocol protocol = protocol_raw;
    char byte;

    protocol.idle_input = leave_when_idle;
    struct testing_peer *peer = begin_with(protocol, 64);
    fake_hold(&world, &first, a);
    fake_send(&first, "xy");
    fake_settle(&world);
    cr_assert(eq(long, channel_read(first.lease.channel, &byte, 1), 1)); /* one byte is left */
    fake_give_back(&first);
    cr_assert(eq(int, fake_ask(&world, &next, a), POOL_PENDING));
    fake_settle(&world);
    cr_assert(eq(int, next.status, POOL_READY));
    cr_assert(eq(uint, testing_peer_accepted(peer), 2));
    fake_exchange(&world, &next);
    fake_world_end(&world);
}

/* ---- what a hook could not write in full ---- */

static int take_idle(struct protocol_link *pl)
{
    return calling.input(pl, LINKPOOL_READ) ? 0 : 1;
}

Test(review_link, what_close_could_not_write_in_full_goes_on_though_nobody_holds_the_link)
{
    static const struct fake_shared_ways ways = {.speaks_at_close = true};
    struct protocol protocol = fake_shared;
    struct fake_user user = {0};

    protocol.config = &ways;
    protocol.idle_input = take_idle;
    struct testing_peer *peer = begin_with(protocol, 64);
    testing_peer_serve(peer, NULL, NULL);
    testing_send_buffer(world.t, 1);
    fake_hold(&world, &user, a);
    fake_give_back(&user);
    fake_run(&world, 1); /* and does not spin */
    cr_assert(eq(u64, testing_peer_bytes(peer), 4));
    cr_assert(eq(int, fake_ask(&world, &user, a), POOL_READY));
    fake_world_end(&world);
}

static int say_bye(struct protocol_link *pl)
{
    protocol_write(pl, &(struct iovec){(void *)(uintptr_t) "bye", 3}, 1);
    return PROTOCOL_CLEAN;
}

Test(review_link, what_released_could_not_write_in_full_does_not_spin)
{
    struct protocol protocol = protocol_raw;
    struct fake_user user = {0};

    protocol.released = say_bye;
    struct testing_peer *peer = begin_with(protocol, 64);
    testing_peer_serve(peer, NULL, NULL);
    testing_send_buffer(world.t, 1);
    fake_hold(&world, &user, a);
    fake_give_back(&user);
    fake_run(&world, 1);
    cr_assert(eq(uint, testing_peer_open(peer), 1));
    cr_assert(eq(int, fake_ask(&world, &user, a), POOL_READY));
    fake_world_end(&world);
}

/* ---- a transport that holds bytes back ---- */

struct record {
    char bytes[64];
    size_t n, at;
};

static ssize_t read_record(struct transport_link *tl, const struct iovec *parts, int n)
{
    struct record *record = tl->state;
    size_t take;

    (void)n;
    if (record->at == record->n) {
        ssize_t got = transport_tcp_readv(tl, &(struct iovec){record->bytes, sizeof record->bytes}, 1);
        if (got <= 0)
            return got;
        record->n = (size_t)got;
        record->at = 0;
    }
    take = record->n - record->at < parts->iov_len ? record->n - record->at : parts->iov_len;
    memcpy(parts->iov_base, record->bytes + record->at, take);
    record->at += take;
    return (ssize_t)take;
}

static size_t held_back(const struct transport_link *tl)
{
    const struct record *record = tl->state;

    return record->n - record->at;
}

static char heard[64];
static size_t n_heard;

static void read_two(struct channel *channel)
{
    ssize_t got = channel_read(channel, heard + n_heard, 2);

    if (got > 0)
        n_heard += (size_t)got;
}

Test(review_link, a_holder_that_reads_a_part_of_what_is_held_back_is_called_for_the_rest)
{
    static const struct channel_events events = {.readable = read_two};
    struct transport transport = transport_tcp;
    struct fake_user user = {0};

    transport.readv = read_record;
    transport.pending = held_back;
    transport.state_size = sizeof(struct record);
    fake_world_begin(&world);
    world.host.transport = &transport;
    fake_world_open(&world);
    fake_echo(&world, a);
    fake_hold(&world, &user, a);
    cr_assert(eq(int, channel_watch(user.lease.channel, &events, LINKPOOL_READ), 0));
    fake_send(&user, "abcdefg");
    fake_run(&world, 1); /* and does not spin when nothing is left */
    cr_assert(eq(str, heard, (char *)"abcdefg"));
    fake_give_back(&user);
    cr_assert(eq(int, fake_ask(&world, &user, a), POOL_READY));
    fake_world_end(&world);
}

/* ---- a descriptor that moves while memory is out ---- */

static struct driver_ops ops;
static int (*real_start)(struct driver *driver, struct driver_io *io, int fd, unsigned events);
static bool no_memory;

static int start_or_fail(struct driver *driver, struct driver_io *io, int fd, unsigned events)
{
    return no_memory ? LINKPOOL_ENOMEM : real_start(driver, io, fd, events);
}

static ssize_t read_and_move(struct transport_link *tl, const struct iovec *parts, int n)
{
    transport_moved(tl, tl->fd);
    return transport_tcp_readv(tl, parts, n);
}

Test(review_link, a_link_that_nobody_watches_any_more_ends_for_want_of_memory)
{
    struct transport transport = transport_tcp;
    struct fake_user user = {0};
    char byte;

    transport.readv = read_and_move;
    fake_world_begin(&world);
    world.host.transport = &transport;
    struct driver *driver = testing_driver(world.t);
    ops = *driver->ops;
    real_start = ops.io_start;
    ops.io_start = start_or_fail;
    driver->ops = &ops;
    cr_assert(ne(ptr, world.pool = pool_new_on(driver, &world.options), NULL));
    fake_echo(&world, a);
    fake_hold(&world, &user, a);
    fake_send(&user, "x");
    fake_settle(&world);
    no_memory = true;
    cr_assert(eq(long, channel_read(user.lease.channel, &byte, 1), 1)); /* the hook is left in peace */
    cr_assert(eq(int, channel_read(user.lease.channel, &byte, 1), LINKPOOL_EAGAIN));
    no_memory = false;
    fake_settle(&world);
    cr_assert(eq(uint, user.closed, 1));
    cr_assert(eq(int, user.lease.reason, LINK_NO_MEMORY));
    fake_world_end(&world);
}

/* ---- bytes of one holder never reach the next ---- */

static void ignore(struct channel *channel)
{
    (void)channel;
}

static void expect_nothing_to_read(struct fake_user *user)
{
    char bytes[8];

    fake_settle(&world);
    cr_assert(eq(int, user->status, POOL_READY));
    cr_assert(eq(long, channel_read(user->lease.channel, bytes, sizeof bytes), LINKPOOL_EAGAIN));
    fake_exchange(&world, user);
}

Test(review_link, bytes_that_came_while_reading_was_paused_do_not_reach_the_next_holder)
{
    static const struct channel_events events = {.readable = ignore};
    struct fake_user first = {0}, next = {0};

    struct testing_peer *peer = begin_with(protocol_raw, 64);
    fake_hold(&world, &first, a);
    fake_exchange(&world, &first);
    cr_assert(eq(int, channel_watch(first.lease.channel, &events, 0), 0));
    testing_peer_say(peer, "late", 4);
    fake_settle(&world);
    cr_assert(eq(int, channel_want(first.lease.channel, LINKPOOL_READ), 0));
    fake_give_back(&first);
    fake_ask(&world, &next, a);
    expect_nothing_to_read(&next);
    fake_world_end(&world);
}

static struct fake_user reader, follower;

static void give_back_unread(struct channel *channel)
{
    (void)channel;
    fake_give_back(&reader);
    fake_ask(&world, &follower, a);
}

Test(review_link, bytes_that_readable_left_unread_do_not_reach_the_next_holder)
{
    static const struct channel_events events = {.readable = give_back_unread};

    struct testing_peer *peer = begin_with(protocol_raw, 64);
    fake_hold(&world, &reader, a);
    fake_exchange(&world, &reader); /* its read is short, in this turn */
    cr_assert(eq(int, channel_watch(reader.lease.channel, &events, LINKPOOL_READ), 0));
    testing_peer_say(peer, "late", 4);
    fake_settle(&world);
    expect_nothing_to_read(&follower);
    fake_world_end(&world);
}

/* ---- shared links that take no new leases ---- */

static void expect_it_ends_with_its_last(struct testing_peer *peer, struct fake_user *first, struct fake_user *second)
{
    struct fake_user next = {0};

    fake_run(&world, 50); /* longer than drain_timeout, which bounds a peer's leaving */
    cr_assert(eq(uint, first->closed + second->closed, 0));
    fake_hold(&world, &next, a);
    cr_assert(ne(ptr, (void *)channel_link(next.lease.channel), (void *)channel_link(first->lease.channel)));
    cr_assert(eq(uint, testing_peer_open(peer), 2));
    fake_give_back(first);
    fake_settle(&world);
    cr_assert(eq(uint, testing_peer_open(peer), 2));
    fake_give_back(second);
    fake_settle(&world);
    cr_assert(eq(uint, testing_peer_open(peer), 1));
    fake_world_end(&world);
}

Test(review_link, a_private_shared_link_is_not_lent_again_and_ends_with_its_last_channel)
{
    struct fake_user first = {0}, second = {0};

    struct testing_peer *peer = begin_with(fake_shared, 64);
    fake_hold(&world, &first, a);
    fake_hold(&world, &second, a);
    channel_keep_private(first.lease.channel);
    expect_it_ends_with_its_last(peer, &first, &second);
}

Test(review_link, a_recycled_shared_link_is_not_lent_again_and_ends_with_its_last_channel)
{
    struct fake_user first = {0}, second = {0};

    struct testing_peer *peer = begin_with(fake_shared, 64);
    fake_hold(&world, &first, a);
    fake_hold(&world, &second, a);
    cr_assert(eq(int, pool_host_recycle(first.lease.host, 0), 0));
    expect_it_ends_with_its_last(peer, &first, &second);
}

Test(review_link, a_shared_link_that_is_too_old_is_not_lent_again_and_ends_with_its_last_channel)
{
    struct fake_user first = {0}, second = {0};

    fake_world_begin(&world);
    calling = fake_shared;
    world.host.protocol = &calling;
    world.host.max_age = 40;
    fake_world_open(&world);
    struct testing_peer *peer = fake_echo(&world, a);
    fake_hold(&world, &first, a);
    fake_hold(&world, &second, a);
    fake_run(&world, 41);
    expect_it_ends_with_its_last(peer, &first, &second);
}

/* ---- a protocol that cleans between two holders ---- */

Test(review_link, a_link_that_is_cleaned_between_holders_is_replaced_after_max_uses)
{
    struct fake_user user = {0};

    fake_world_begin(&world);
    world.host.protocol = &fake_session;
    world.host.max_uses = 2;
    fake_world_open(&world);
    struct testing_peer *peer = fake_echo(&world, a);
    for (int i = 0; i < 4; i++) {
        fake_hold(&world, &user, a);
        fake_exchange(&world, &user);
        fake_give_back(&user);
        fake_settle(&world);
    }
    cr_assert(eq(uint, testing_peer_accepted(peer), 2));
    cr_assert(eq(uint, testing_peer_open(peer), 0));
    fake_world_end(&world);
}

Test(review_link, a_link_that_is_cleaned_between_holders_is_quiet_from_its_return_on)
{
    struct fake_user first = {0}, second = {0};

    fake_world_begin(&world);
    world.host.protocol = &fake_session;
    world.host.idle_timeout = 10;
    fake_world_open(&world);
    struct testing_peer *peer = fake_echo(&world, a);
    fake_hold(&world, &first, a);
    fake_hold(&world, &second, a);
    fake_run(&world, 30);
    fake_give_back(&second); /* its end, after 10 s, is when the host looks */
    fake_run(&world, 4);
    fake_give_back(&first);
    fake_run(&world, 9.9);
    cr_assert(eq(uint, testing_peer_open(peer), 1));
    fake_run(&world, 0.2);
    cr_assert(eq(uint, testing_peer_open(peer), 0));
    fake_world_end(&world);
}

/* ---- local addresses, interest ---- */

Test(review_link, a_unix_path_that_ends_in_colon_0_is_bound_as_it_is)
{
    static const char path[] = "unix:/run/b.sock";
    struct pool_endpoint endpoint = {.size = sizeof endpoint, .address = path, .local = "unix:/run/a:0"};
    struct fake_user user = {0};

    fake_world_begin(&world);
    fake_world_open(&world);
    struct testing_peer *peer = fake_echo(&world, path);
    struct pool_host *host = pool_host_for(world.pool, &endpoint, NULL);
    cr_assert(ne(ptr, host, NULL));
    cr_assert(eq(int, fake_ask_host(&world, &user, host), POOL_PENDING));
    fake_settle(&world);
    cr_assert(eq(int, user.status, POOL_READY));
    cr_assert(eq(str, (char *)testing_conn_client(testing_peer_conn(peer, 0)), (char *)"unix:/run/a:0"));
    pool_host_drop(host);
    fake_world_end(&world);
}

Test(review_link, something_wanted_before_anybody_hears_of_it_is_refused)
{
    struct fake_user user = {0};

    begin_with(protocol_raw, 64);
    fake_hold(&world, &user, a);
    cr_assert(eq(int, channel_want(user.lease.channel, LINKPOOL_READ), LINKPOOL_EINVAL));
    cr_assert(eq(int, channel_want(user.lease.channel, LINKPOOL_WRITE), LINKPOOL_EINVAL));
    cr_assert(eq(int, channel_want(user.lease.channel, 0), 0)); /* nothing is nobody's */
    fake_exchange(&world, &user);
    fake_world_end(&world);
}

/* ---- what a hostile user found ---- */

static void stop_it(void *data)
{
    struct fake_owner *owner = data;

    cr_assert(eq(int, link_state(owner->link), LINK_READY));
    link_stop(owner->link);
}

Test(review_link, who_stops_before_being_told_of_ready_never_hears_of_it)
{
    struct fake_owner owner;

    fake_owner_begin(&owner, TESTING_ACCEPT);
    testing_peer_delay(owner.peer, 1, 0);
    fake_owner_open(&owner);
    link_start(owner.link);
    cr_assert(eq(int, testing_at(owner.t, testing_now(owner.t) + 1, stop_it, &owner), 0));
    fake_owner_run(&owner, 3);
    cr_assert(eq(uint, owner.n_told, 2));
    cr_assert(eq(str, owner.told[0].what, "connecting"));
    cr_assert(eq(str, owner.told[1].what, "stopped"));
    fake_owner_end(&owner);
}

Test(review_link, times_too_short_to_pass_are_refused_by_name)
{
    struct pool_host_options options;
    char text[128];

    pool_host_options_init(&options);
    options.idle_timeout = 5e-324;
    cr_assert(eq(int, pool_host_options_check(&options, text, sizeof text), LINKPOOL_EINVAL));
    cr_assert(eq(str, text, "idle_timeout is 4.94066e-324; it is 0, or from 1e-06 s to ten years"));
    options.idle_timeout = 1e-6;
    cr_assert(eq(int, pool_host_options_check(&options, text, sizeof text), 0));
}

/* ---- a channel that its peer ends ---- */

static int cancelled = -1;

static int end_the_first(struct protocol_link *pl, unsigned events)
{
    char byte;
    ssize_t n = protocol_read(pl, &byte, 1);

    (void)events;
    return n == 1                 ? protocol_end(protocol_next_channel(pl, NULL), LINK_RESET, false)
           : n == LINKPOOL_EAGAIN ? 0
                                  : (int)n;
}

static void note_close(struct protocol_link *pl, struct protocol_channel *pc, bool was_cancelled)
{
    (void)pl, (void)pc;
    cancelled = was_cancelled;
}

Test(review_link, a_channel_that_its_peer_ends_is_closed_with_no_answer_to_come)
{
    static struct protocol protocol = {.size = sizeof protocol, .name = "ends", .flags = PROTOCOL_SHARED};
    struct fake_user user = {0};

    protocol.input = end_the_first;
    protocol.close = note_close;
    fake_world_begin(&world);
    world.host.protocol = &protocol;
    fake_world_open(&world);
    struct testing_peer *peer = testing_peer_add(world.t, a, TESTING_ACCEPT);
    cr_assert(eq(int, fake_ask(&world, &user, a), POOL_PENDING));
    fake_settle(&world);
    cr_assert(eq(int, testing_peer_say(peer, "x", 1), 0));
    fake_settle(&world);
    cr_assert(eq(uint, user.closed, 1));
    cr_assert(eq(int, cancelled, 0));
    fake_world_end(&world);
}
