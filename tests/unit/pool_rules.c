/* pool_rules.c - what holds everywhere in a pool: defaults, the loop's part, figures, memory that runs out. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "pool/internal.h"
#include "tests/fakes/world.h"

static const char a[] = "10.0.0.1:80", b[] = "10.0.0.2:80";
static const char *const both[] = {a, b};

static struct testing_peer *begin(struct fake_world *world)
{
    fake_world_begin(world);
    fake_world_open(world);
    return fake_echo(world, a);
}

Test(pool_rules, every_bound_is_finite_by_default)
{
    struct pool_options options;
    struct pool_host_options host;
    struct rlimit limit;

    cr_assert(eq(int, getrlimit(RLIMIT_NOFILE, &limit), 0));
    limit.rlim_cur = 301; /* valgrind lets the hard limit be as it is alone */
    cr_assert(eq(int, setrlimit(RLIMIT_NOFILE, &limit), 0));
    pool_options_init(&options);
    cr_assert(eq(uint, options.max_links, 150)); /* half the soft limit */
    cr_assert(eq(uint, options.max_hosts, 65536));
    cr_assert(eq(uint, options.max_names, 65536));
    cr_assert(eq(uint, options.max_waiting, 65536));
    cr_assert(eq(uint, options.max_connecting, 256));
    cr_assert(eq(uint, options.max_line, 1024));
    cr_assert(eq(dbl, options.wait_timeout, 5));
    cr_assert(eq(dbl, options.host_timeout, 300));
    cr_assert(eq(int, pool_options_check(&options, NULL, 0), 0));
    pool_host_options_init(&host);
    cr_assert(eq(uint, host.max_links, 64));
    cr_assert(eq(uint, host.min_links, 0));
    cr_assert(eq(uint, host.first_connecting, 8));
    cr_assert(eq(uint, host.max_connecting, 128));
    cr_assert(eq(uint, host.max_uses, 0));
    cr_assert(eq(uint, host.max_channels, 0));
    cr_assert(eq(dbl, host.idle_timeout, 55));
    cr_assert(eq(dbl, host.max_age, 0));
    cr_assert(eq(dbl, host.connect_timeout, 3));
    cr_assert(eq(dbl, host.reset_timeout, 3));
    cr_assert(eq(dbl, host.drain_timeout, 30));
    cr_assert(eq(ptr, (void *)host.backoff, (void *)&backoff_default));
    cr_assert(eq(int, pool_host_options_check(&host, NULL, 0), 0));
}

Test(pool_rules, a_driver_serves_one_pool)
{
    struct fake_world world;

    fake_world_begin(&world);
    struct driver *driver = testing_driver(world.t);
    world.pool = pool_new_on(driver, &world.options);
    cr_assert(ne(ptr, world.pool, NULL));
    cr_assert(eq(ptr, pool_new_on(driver, &world.options), NULL));
    cr_assert(eq(int, errno, EINVAL));
    cr_assert(eq(ptr, pool_new_on(NULL, &world.options), NULL));
    cr_assert(eq(int, errno, EINVAL));
    fake_world_end(&world);
}

/* ---- the loop ---- */

static struct {
    const struct driver_ops *real;
    unsigned starts, interests, alarms;
} counted;

static int start(struct driver *driver, struct driver_io *io, int fd, unsigned events)
{
    counted.starts++;
    return counted.real->io_start(driver, io, fd, events);
}

static void interest(struct driver *driver, struct driver_io *io, unsigned events)
{
    counted.interests++;
    counted.real->io_events(driver, io, events);
}

static void stop(struct driver *driver, struct driver_io *io)
{
    counted.real->io_stop(driver, io);
}

static void alarm_at(struct driver *driver, double due)
{
    counted.alarms++;
    counted.real->alarm(driver, due);
}

static void later(struct driver *driver)
{
    counted.real->later(driver);
}

static void end(struct driver *driver)
{
    counted.real->free(driver);
}

static bool pending(struct driver *driver, const struct driver_io *io)
{
    return counted.real->io_pending(driver, io);
}

static const struct driver_ops counting = {start, interest, stop, alarm_at, later, end, pending};

static void read_it(struct channel *channel)
{
    char bytes[8];

    cr_assert(eq(long, channel_read(channel, bytes, sizeof bytes), 1));
}

Test(pool_rules, a_descriptor_is_added_to_the_loop_once_and_leasing_touches_neither_interest_nor_alarm)
{
    static const struct channel_events events = {.readable = read_it};
    struct fake_user user = {0};
    struct fake_world world;

    fake_world_begin(&world);
    struct driver *driver = testing_driver(world.t);
    counted.real = driver->ops;
    driver->ops = &counting;
    world.pool = pool_new_on(driver, &world.options);
    fake_echo(&world, a);
    fake_hold(&world, &user, a);
    fake_give_back(&user);
    fake_settle(&world);
    cr_assert(eq(uint, counted.starts, 1));
    counted.interests = counted.alarms = 0;
    for (int i = 0; i < 50; i++) {
        cr_assert(eq(int, fake_ask(&world, &user, a), POOL_READY));
        channel_watch(user.lease.channel, &events, LINKPOOL_READ);
        fake_send(&user, "x");
        fake_settle(&world);
        fake_give_back(&user);
    }
    for (int i = 0; i < 50; i++) { /* who wants nothing while nothing comes costs nothing either */
        cr_assert(eq(int, fake_ask(&world, &user, a), POOL_READY));
        cr_assert(eq(int, channel_want(user.lease.channel, 0), 0));
        fake_settle(&world);
        fake_give_back(&user);
    }
    cr_assert(eq(uint, counted.starts, 1));
    cr_assert(eq(uint, counted.interests, 0));
    cr_assert(eq(uint, counted.alarms, 0));
    cr_assert(eq(int, fake_ask(&world, &user, a), POOL_READY));
    fake_send(&user, "x");
    fake_settle(&world); /* an answer that is not wanted yet */
    cr_assert(eq(uint, counted.interests, 1));
    read_it(user.lease.channel);
    fake_give_back(&user);
    cr_assert(eq(uint, counted.interests, 2));
    cr_assert(eq(uint, counted.starts, 1));
    fake_world_end(&world);
}

struct asker {
    struct fake_world *world;
    struct fake_user *user;
    int status;
};

static void ask_now(void *data)
{
    struct asker *asker = data;

    asker->status = fake_ask(asker->world, asker->user, a);
}

Test(pool_rules, an_end_that_came_with_the_poll_is_seen_before_a_link_is_handed_out)
{
    struct fake_user user = {0}, next = {0};
    struct fake_world world;

    struct testing_peer *peer = begin(&world);
    struct asker asker = {.world = &world, .user = &next, .status = -99};
    testing_peer_behave(peer, TESTING_ACCEPT_AND_CLOSE);
    testing_peer_delay(peer, 0, 20);
    fake_hold(&world, &user, a);
    fake_give_back(&user);
    testing_at(world.t, user.told_at + 20, ask_now, &asker);
    fake_run(&world, 19.9);
    cr_assert(eq(uint, fake_stats(&world).idle, 1));
    fake_run(&world, 0.2);
    cr_assert(eq(int, asker.status, POOL_PENDING)); /* in the turn in which the end came */
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_CLOSED_BY_PEER], 1));
    fake_world_end(&world);
}

Test(pool_rules, alarms_that_ring_early_change_nothing)
{
    struct fake_user holder = {0}, users[3] = {[0].lease.timeout = 3, [2].lease.timeout = 0.3};
    static const double expected[] = {3, 5, 0.3};
    struct fake_world world;

    fake_world_begin(&world);
    world.host.max_links = 1;
    fake_world_open(&world);
    testing_early_alarms(world.t, true);
    struct testing_peer *peer = fake_echo(&world, a);
    fake_hold(&world, &holder, a);
    double asked = testing_now(world.t);
    for (int i = 0; i < 3; i++)
        fake_ask(&world, &users[i], a);
    fake_run(&world, 10);
    for (int i = 0; i < 3; i++)
        cr_assert(epsilon_eq(dbl, users[i].told_at - asked, expected[i], 1e-9));
    fake_give_back(&holder);
    fake_run(&world, 54.9);
    cr_assert(eq(uint, testing_peer_open(peer), 1));
    fake_run(&world, 0.2);
    cr_assert(eq(uint, testing_peer_open(peer), 0));
    fake_world_end(&world);
}

/* ---- figures ---- */

Test(pool_rules, waits_are_counted_in_powers_of_two_microseconds)
{
    struct fake_user users[3] = {0};
    struct fake_world world;

    struct testing_peer *peer = begin(&world);
    fake_hold(&world, &users[0], a); /* within the turn: 0 */
    testing_peer_delay(peer, 0.5, 0);
    fake_hold(&world, &users[1], a); /* 500,000 us: from 2^18 to 2^19 */
    testing_peer_behave(peer, TESTING_BLACK_HOLE);
    users[2].lease.timeout = 1.5; /* and those that failed: from 2^20 to 2^21 */
    fake_ask(&world, &users[2], a);
    fake_run(&world, 2);
    struct pool_stats stats = fake_stats(&world);
    cr_assert(eq(u64, stats.wait_histogram[0], 1));
    cr_assert(eq(u64, stats.wait_histogram[19], 1));
    cr_assert(eq(u64, stats.wait_histogram[21], 1));
    cr_assert(eq(u64, stats.acquired_waited, 2));
    cr_assert(eq(u64, stats.timed_out, 1));
    fake_world_end(&world);
}

Test(pool_rules, figures_fill_no_more_than_an_older_caller_knows)
{
    struct pool_stats stats;
    struct fake_world world;

    begin(&world);
    memset(&stats, 0xff, sizeof stats);
    pool_stats(world.pool, &stats, offsetof(struct pool_stats, links));
    cr_assert(eq(uint, stats.hosts, 0));
    cr_assert(eq(uint, stats.links, UINT32_MAX));
    fake_world_end(&world);
}

struct seen {
    enum link_state last;
    uint64_t link;
    unsigned n, waits;
};

static void on_transition(void *data, const struct pool_host *host, const struct link_transition *transition)
{
    struct seen *seen = data;

    cr_assert(eq(str, (char *)pool_host_address(host), (char *)a));
    cr_assert(ne(ptr, (void *)transition->event, NULL));
    cr_assert(eq(int, transition->from, seen->n ? seen->last : LINK_IDLE));
    cr_assert(ne(int, transition->to, LINK_STATES));
    if (seen->n)
        cr_assert(eq(u64, transition->link, seen->link));
    seen->link = transition->link;
    seen->last = transition->to;
    seen->n++;
}

static void on_waited(void *data, const struct pool_lease *lease, double seconds)
{
    struct seen *seen = data;

    cr_assert(eq(int, lease->status, POOL_READY));
    cr_assert(epsilon_eq(dbl, seconds, 0.25, 1e-6));
    seen->waits++;
}

Test(pool_rules, an_observer_sees_each_transition_and_each_wait)
{
    struct fake_user user = {0};
    struct seen seen = {0};
    struct pool_observer observer = {
        .size = sizeof observer, .transition = on_transition, .waited = on_waited, .data = &seen};
    struct fake_world world;

    fake_world_begin(&world);
    world.options.observer = &observer;
    fake_world_open(&world);
    testing_peer_delay(fake_echo(&world, a), 0.25, 0);
    fake_hold(&world, &user, a);
    fake_give_back(&user);
    fake_run(&world, 60);
    cr_assert(eq(uint, seen.waits, 1));
    cr_assert(eq(uint, seen.n, 5)); /* connecting, handshaking, ready, idle, closed */
    cr_assert(eq(int, seen.last, LINK_CLOSED));
    fake_world_end(&world);
}

Test(pool_rules, iterators_go_over_all_there_is)
{
    struct fake_user users[3] = {0};
    struct fake_world world;
    const struct link *link = NULL;
    struct pool_host *host = NULL;
    struct pool_target *target = NULL;
    unsigned hosts = 0, targets = 0, links = 0;

    begin(&world);
    for (int i = 0; i < 3; i++)
        fake_hold(&world, &users[i], a);
    fake_give_back(&users[1]);
    fake_target(&world, "one", &pool_pick_first, both, 2);
    fake_target(&world, "two", &pool_round_robin, both, 1);
    while ((host = pool_next_host(world.pool, host)))
        hosts++;
    while ((target = pool_next_target(world.pool, target)))
        targets++;
    while ((link = pool_host_next_link(fake_host(&world, a), link))) {
        cr_assert(eq(int, link_state(link), LINK_READY));
        links++;
    }
    cr_assert(eq(uint, hosts, 2));
    cr_assert(eq(uint, targets, 2));
    cr_assert(eq(uint, links, 3));
    fake_world_end(&world);
}

/* Each an object of its own, and places in arrays and tables that grow by doubling. */
Test(pool_rules, an_idle_link_is_256_bytes_at_most_and_a_host_512_but_for_their_places_in_tables)
{
    enum {
        N = 60
    };
    static struct fake_user users[N];
    struct pool_host *host = NULL;
    struct fake_world world;
    char address[32];

    begin(&world);
    fake_hold(&world, &users[0], a);
    size_t before = testing_bytes(world.t);
    for (int i = 1; i < N; i++)
        fake_hold(&world, &users[i], a);
    for (int i = 0; i < N; i++)
        fake_give_back(&users[i]);
    cr_assert(eq(uint, fake_stats(&world).idle, N));
    cr_assert(le(sz, sizeof(struct link), 256));
    cr_assert(le(sz, testing_bytes(world.t) - before, N * (256 + 16)));
    before = testing_bytes(world.t);
    for (int i = 0; i < N; i++) {
        snprintf(address, sizeof address, "10.0.4.%d:80", i);
        host = pool_host(world.pool, address);
        cr_assert(ne(ptr, host, NULL));
    }
    cr_assert(le(sz, sizeof *host + host->hh.keylen, 512));
    cr_assert(le(sz, testing_bytes(world.t) - before, N * (512 + 64)));
    fake_world_end(&world);
}

/* ---- memory ---- */

/* A target, leases that wait and hold, an update, the end; what cannot be had is an error, and all is given back. */
static void live(struct fake_world *world)
{
    struct fake_user users[3] = {[0].lease.timeout = 2};
    struct pool_endpoint endpoints[2];
    struct pool_target_options options;

    world->pool = pool_new_on(testing_driver(world->t), &world->options);
    if (!world->pool) {
        cr_assert(eq(int, errno, ENOMEM));
        return;
    }
    fake_endpoints(endpoints, both, 2);
    pool_target_options_init(&options);
    options.endpoints = endpoints;
    options.n_endpoints = 1;
    struct pool_target *target = pool_target_add(world->pool, "db", &options);
    if (!target)
        cr_assert(eq(int, errno, ENOMEM));
    if (target)
        fake_ask_target(world, &users[0], target);
    for (int i = 1; i < 3; i++) {
        int status = fake_ask(world, &users[i], both[i - 1]);
        cr_assert(status == POOL_PENDING || status == LINKPOOL_ENOMEM);
    }
    if (target) {
        int status = pool_target_update(target, endpoints, 2);
        cr_assert(status == 0 || status == LINKPOOL_ENOMEM);
    }
    fake_run(world, 3);
    for (int i = 0; i < 3; i++) {
        cr_assert(ne(int, users[i].lease.status, POOL_PENDING)); /* told, whatever it was */
        if (!users[i].lease.channel)
            continue;
        fake_exchange(world, &users[i]);
        fake_give_back(&users[i]);
    }
}

Test(pool_rules, every_allocation_may_fail)
{
    for (unsigned nth = 1;; nth++) {
        struct fake_world world;
        fake_world_begin(&world);
        fake_echo(&world, a);
        fake_echo(&world, b);
        testing_fail_allocation(world.t, nth, false);
        uint64_t before = testing_allocations(world.t);
        live(&world);
        bool met = testing_allocations(world.t) - before >= nth;
        fake_world_end(&world);
        if (!met)
            break;
        cr_assert(lt(uint, nth, 500));
    }
}
