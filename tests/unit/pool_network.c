/* pool_network.c - the network changes, or the machine sleeps: links are asked before they are lent again, what failed
 * is forgotten, and what was begun before begins anew. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <ev.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "link/internal.h"
#include "tests/fakes/owner.h"
#include "tests/fakes/pinging.h"
#include "tests/fakes/world.h"

static const char a[] = "10.0.0.1:80", b[] = "10.0.0.2:80";

static struct fake_world w;
static struct fake_pinging pinging;
static struct testing_peer *peer;

static void begin(bool shared)
{
    fake_world_begin(&w);
    fake_pinging_init(&pinging, w.t, shared);
    w.host.protocol = &pinging.protocol;
}

static void open_world(void)
{
    fake_world_open(&w);
    peer = fake_peer(&w, a, TESTING_ACCEPT);
    fake_pinging_serve(&pinging, peer);
}

/* A host with one link, that nobody holds; the peer answers after `delay`. */
static void start(bool shared, double delay)
{
    struct fake_user user = {0};

    begin(shared);
    open_world();
    pinging.delay = delay;
    fake_hold(&w, &user, a);
    fake_give_back(&user);
    fake_run(&w, 1);
}

static void change(void)
{
    pool_network_changed(w.pool);
    fake_settle(&w);
}

static uint64_t ends(enum link_reason reason)
{
    return fake_stats(&w).ends[reason];
}

/* ---- links that can be asked ---- */

Test(pool_network, a_link_is_asked_at_once_and_lent_when_it_has_answered)
{
    struct fake_user user = {0};

    for (int shared = 0; shared < 2; shared++) {
        start(shared, 0.5);
        double changed = testing_now(w.t);
        change();
        cr_assert(eq(uint, pinging.probes, 1));
        cr_assert(eq(uint, fake_stats(&w).idle, 1));
        w.host.max_links = 1;
        pool_host_set_options(fake_host(&w, a), &w.host);
        cr_assert(eq(int, fake_ask(&w, &user, a), POOL_PENDING));
        fake_run(&w, 1);
        cr_assert(eq(int, user.status, POOL_READY));
        cr_assert(epsilon_eq(dbl, user.told_at - changed, 0.5, 1e-4));
        cr_assert(eq(uint, testing_peer_accepted(peer), 1));
        fake_give_back(&user);
        cr_assert(eq(int, fake_ask(&w, &user, a), POOL_READY)); /* and from now on at once */
        fake_run(&w, 10);
        cr_assert(eq(uint, pinging.probes, 1));
        fake_give_back(&user);
        fake_world_end(&w);
    }
}

Test(pool_network, leases_have_another_link_meanwhile)
{
    struct fake_user user = {0};

    for (int shared = 0; shared < 2; shared++) {
        start(shared, 3);
        change();
        cr_assert(eq(int, fake_ask(&w, &user, a), POOL_PENDING));
        fake_run(&w, 0.5);
        cr_assert(eq(int, user.status, POOL_READY));
        cr_assert(eq(uint, testing_peer_accepted(peer), 2));
        fake_run(&w, 3);
        cr_assert(eq(uint, fake_stats(&w).links, 2)); /* the old one was well */
        fake_give_back(&user);
        fake_world_end(&w);
    }
}

Test(pool_network, a_shared_link_in_use_goes_on_and_takes_nobody_new_until_it_has_answered)
{
    struct fake_user users[2] = {0};

    begin(true);
    open_world();
    pinging.delay = 0.5;
    fake_hold(&w, &users[0], a);
    change();
    cr_assert(eq(uint, pinging.probes, 1));
    cr_assert(eq(int, fake_ask(&w, &users[1], a), POOL_PENDING));
    fake_settle(&w);
    cr_assert(eq(int, users[1].status, POOL_PENDING));
    fake_run(&w, 0.4);
    cr_assert(eq(int, users[1].status, POOL_READY));
    cr_assert(ne(ptr, (void *)channel_link(users[1].lease.channel), (void *)channel_link(users[0].lease.channel)));
    cr_assert(eq(int, channel_send(users[0].lease.channel, "x", 1), 0));
    cr_assert(eq(uint, users[0].closed, 0));
    fake_run(&w, 1);
    fake_give_back(&users[1]);
    cr_assert(eq(int, fake_ask(&w, &users[1], a), POOL_READY));
    cr_assert(eq(ptr, (void *)channel_link(users[1].lease.channel), (void *)channel_link(users[0].lease.channel)));
    fake_world_end(&w);
}

Test(pool_network, a_link_leased_whole_is_asked_when_it_comes_back)
{
    struct fake_user user = {0}, other = {0};

    begin(false);
    w.host.max_links = 1;
    open_world();
    pinging.delay = 0.5;
    fake_hold(&w, &user, a);
    change();
    fake_run(&w, 1);
    fake_exchange(&w, &user); /* that it works for its holder is no reason to trust a lease to it */
    cr_assert(eq(uint, pinging.probes, 0));
    fake_give_back(&user);
    cr_assert(eq(uint, fake_stats(&w).idle, 1));
    cr_assert(eq(int, fake_ask(&w, &other, a), POOL_PENDING));
    fake_settle(&w);
    cr_assert(eq(uint, pinging.probes, 1));
    fake_run(&w, 0.6);
    cr_assert(eq(int, other.status, POOL_READY));
    fake_exchange(&w, &other);
    cr_assert(eq(uint, testing_peer_accepted(peer), 1));
    fake_give_back(&other);
    fake_world_end(&w);
}

Test(pool_network, where_the_heartbeat_is_turned_off_a_link_in_doubt_is_replaced)
{
    struct fake_user user = {0}, other = {0};

    for (unsigned held = 0; held < 2; held++) {
        begin(false);
        open_world();
        fake_hold(&w, &user, a);
        if (!held)
            fake_give_back(&user);
        pinging.answer = FAKE_MUTE;
        pool_network_changed(w.pool);
        w.host.heartbeat = &heartbeat_none;
        cr_assert(eq(int, pool_host_set_options(fake_host(&w, a), &w.host), 0));
        if (held)
            fake_give_back(&user);
        cr_assert(ge(int, fake_ask(&w, &other, a), 0));
        fake_run(&w, 1);
        cr_assert(eq(int, other.status, POOL_READY));
        cr_assert(eq(uint, pinging.probes, 0));
        cr_assert(eq(u64, ends(LINK_DRAINED), 1));
        cr_assert(eq(uint, testing_peer_accepted(peer), 2));
        fake_give_back(&other);
        fake_world_end(&w);
    }
}

Test(pool_network, what_nobody_holds_ends_with_the_first_answer_missed_and_what_is_held_as_the_policy_says)
{
    struct fake_user user = {0};

    for (int held = 0; held < 2; held++) {
        start(true, 0);
        if (held)
            fake_hold(&w, &user, a);
        testing_peer_cut(peer, LINK_TIMED_OUT);
        change();
        fake_run(&w, held ? 9.9 : 4.9);
        cr_assert(eq(u64, ends(LINK_HEARTBEAT_LOST), 0));
        fake_run(&w, 0.2);
        cr_assert(eq(u64, ends(LINK_HEARTBEAT_LOST), 1));
        cr_assert(eq(uint, user.closed, held));
        fake_world_end(&w);
    }
}

/* Asked at 15; the answer of before the change is life, and no proof. */
Test(pool_network, an_answer_to_what_was_asked_before_is_no_proof)
{
    struct fake_user user = {0};

    start(true, 2);
    w.host.max_links = 1;
    pool_host_set_options(fake_host(&w, a), &w.host);
    fake_run(&w, 15 - 1 + 0.5);
    cr_assert(eq(uint, pinging.probes, 1));
    testing_conn_send(testing_peer_conn(peer, 0), "\0n", 2); /* it lies in the socket as the network changes */
    pool_network_changed(w.pool);
    pinging.delay = 4;
    cr_assert(eq(int, fake_ask(&w, &user, a), POOL_PENDING));
    fake_settle(&w);
    cr_assert(eq(uint, pinging.probes, 2));
    cr_assert(eq(int, user.status, POOL_PENDING));
    fake_world_end(&w);
}

Test(pool_network, many_changes_ask_a_link_once_a_turn_and_two_turns_twice)
{
    start(true, 1);
    for (int i = 0; i < 10; i++)
        pool_network_changed(w.pool);
    fake_settle(&w);
    cr_assert(eq(uint, pinging.probes, 1));
    change();
    cr_assert(eq(uint, pinging.probes, 2));
    cr_assert(eq(u64, fake_stats(&w).network_changes, 11));
    fake_run(&w, 2);
    cr_assert(eq(uint, fake_stats(&w).links, 1));
    fake_world_end(&w);
}

Test(pool_network, a_link_in_doubt_is_not_in_the_way_of_those_who_wait)
{
    struct fake_user user = {0};

    begin(true);
    w.host.max_links = 1;
    open_world();
    pinging.delay = 0.5;
    fake_hold(&w, &user, a);
    fake_give_back(&user);
    change();
    cr_assert(eq(int, fake_ask(&w, &user, a), POOL_PENDING));
    fake_run(&w, 1);
    cr_assert(eq(int, user.status, POOL_READY));
    cr_assert(eq(uint, testing_peer_accepted(peer), 1)); /* it was not replaced */
    fake_world_end(&w);
}

/* ---- links that cannot be asked ---- */

static void expect_replaced(void)
{
    struct fake_user users[2] = {0};

    open_world();
    fake_hold(&w, &users[0], a);
    fake_hold(&w, &users[1], a);
    fake_give_back(&users[0]);
    fake_run(&w, 1);
    change();
    cr_assert(eq(uint, fake_stats(&w).links, 1));
    cr_assert(eq(u64, ends(LINK_DRAINED), 1));
    cr_assert(eq(uint, pinging.probes, 0));
    cr_assert(eq(uint, users[1].closed, 0));
    fake_exchange(&w, &users[1]);
    fake_give_back(&users[1]);
    fake_settle(&w);
    cr_assert(eq(uint, fake_stats(&w).links, 0));
    cr_assert(eq(u64, ends(LINK_DRAINED), 2));
    cr_assert(eq(uint, (unsigned)fake_host_stats(fake_host(&w, a)).failed, 0));
    fake_world_end(&w);
}

Test(pool_network, without_a_ping_idle_links_end_and_others_when_they_come_back)
{
    begin(false);
    pinging.protocol.ping = NULL;
    expect_replaced();
}

Test(pool_network, without_a_heartbeat_nothing_is_asked_either)
{
    begin(false);
    w.host.heartbeat = &heartbeat_none;
    expect_replaced();
}

Test(pool_network, min_links_that_end_are_opened_anew)
{
    begin(false);
    pinging.protocol.ping = NULL;
    w.host.min_links = 3;
    open_world();
    pool_host(w.pool, a);
    fake_run(&w, 1);
    cr_assert(eq(uint, fake_stats(&w).links, 3));
    change();
    fake_run(&w, 1);
    cr_assert(eq(uint, fake_stats(&w).links, 3));
    cr_assert(eq(uint, testing_peer_accepted(peer), 6));
    fake_world_end(&w);
}

/* ---- failures and attempts ---- */

Test(pool_network, backoffs_are_forgotten_and_the_next_attempt_waits_the_spread_alone)
{
    struct fake_user user = {.lease = {.flags = POOL_WAIT_FOR_READY, .timeout = 1000}};

    begin(true);
    w.backoff = backoff_default;
    w.backoff.base = w.backoff.cap = 500;
    w.host.backoff = &w.backoff;
    open_world();
    testing_peer_behave(peer, TESTING_REFUSE);
    fake_ask(&w, &user, a);
    fake_run(&w, 5);
    cr_assert(eq(int, pool_host_state(fake_host(&w, a)), LINK_BACKOFF));
    testing_peer_behave(peer, TESTING_ACCEPT);
    pool_network_changed(w.pool);
    cr_assert(ne(int, pool_host_state(fake_host(&w, a)), LINK_BACKOFF));
    cr_assert(eq(uint, fake_host_stats(fake_host(&w, a)).failures, 0));
    fake_run(&w, 0.25 + 0.01);
    cr_assert(eq(int, user.status, POOL_READY));
    fake_give_back(&user);
    fake_world_end(&w);
}

Test(pool_network, hosts_do_not_dial_in_the_same_instant)
{
    enum {
        HOSTS = 40
    };
    struct fake_user users[HOSTS] = {0};
    struct testing_peer *peers[HOSTS];
    unsigned early = 0;

    begin(true);
    fake_world_open(&w);
    for (int i = 0; i < HOSTS; i++) {
        char address[32];
        snprintf(address, sizeof address, "10.0.1.%d:80", i + 1);
        peers[i] = fake_peer(&w, address, TESTING_BLACK_HOLE);
        fake_ask(&w, &users[i], address);
    }
    fake_run(&w, 1);
    double changed = testing_now(w.t);
    change();
    fake_run(&w, 0.3);
    for (int i = 0; i < HOSTS; i++) {
        double at = testing_peer_attempt_at(peers[i], 1) - changed;
        cr_assert(eq(uint, testing_peer_attempts(peers[i]), 2));
        cr_assert(ge(dbl, at, 0));
        cr_assert(le(dbl, at, 0.25 + 1e-6));
        early += at < 0.125;
    }
    cr_assert(ge(uint, early, 8));
    cr_assert(le(uint, early, 32));
    fake_world_end(&w);
}

Test(pool_network, an_attempt_under_way_is_given_up_and_made_anew)
{
    struct fake_user user = {0};

    begin(true);
    open_world();
    testing_peer_behave(peer, TESTING_BLACK_HOLE);
    fake_ask(&w, &user, a);
    fake_run(&w, 0.5);
    testing_peer_behave(peer, TESTING_SILENT); /* what was sent into the black hole stays there */
    testing_peer_behave(peer, TESTING_ACCEPT);
    change();
    fake_run(&w, 0.3);
    cr_assert(eq(int, user.status, POOL_READY));
    cr_assert(eq(u64, fake_stats(&w).opened, 2));
    cr_assert(eq(uint, (unsigned)fake_host_stats(fake_host(&w, a)).failed, 0));
    fake_give_back(&user);
    fake_world_end(&w);
}

Test(pool_network, a_start_ahead_of_use_is_made_anew_too)
{
    begin(true);
    open_world();
    testing_peer_behave(peer, TESTING_BLACK_HOLE);
    struct pool_host *host = pool_host(w.pool, a);
    pool_host_start(host);
    fake_run(&w, 0.5);
    testing_peer_behave(peer, TESTING_ACCEPT);
    change();
    fake_run(&w, 0.3);
    cr_assert(eq(int, pool_host_state(host), LINK_READY));
    pool_host_drop(host);
    fake_world_end(&w);
}

Test(pool_network, offline_hosts_stay_so_and_a_drained_one_is_left_alone)
{
    struct fake_user user = {0};

    begin(true);
    w.backoff = backoff_default;
    w.backoff.max_attempts = 1;
    w.host.backoff = &w.backoff;
    open_world();
    testing_peer_behave(peer, TESTING_REFUSE);
    fake_ask(&w, &user, a);
    fake_run(&w, 1);
    cr_assert(eq(int, pool_host_state(fake_host(&w, a)), LINK_OFFLINE));
    struct pool_host *other = pool_host(w.pool, b);
    pool_host_drain(other, 1);
    change();
    fake_run(&w, 5);
    cr_assert(eq(int, pool_host_state(fake_host(&w, a)), LINK_OFFLINE));
    cr_assert(eq(int, pool_host_state(other), LINK_DRAINING));
    pool_host_drop(other);
    fake_world_end(&w);
}

Test(pool_network, the_opening_limit_is_no_lower_than_at_first)
{
    struct fake_user users[20] = {0};

    begin(true);
    pinging.protocol.max_channels = 1;
    open_world();
    testing_peer_behave(peer, TESTING_BLACK_HOLE);
    for (int i = 0; i < 20; i++)
        fake_ask(&w, &users[i], a);
    fake_run(&w, 3.1);
    cr_assert(lt(uint, fake_host_stats(fake_host(&w, a)).connect_limit, 8));
    change();
    cr_assert(eq(uint, fake_host_stats(fake_host(&w, a)).connect_limit, 8));
    fake_world_end(&w);
}

/* ---- a sleep of the machine ---- */

Test(pool_network, a_sleep_is_noticed_with_the_next_turn_and_means_the_same)
{
    start(true, 0);
    testing_suspend(w.t, 3600);
    cr_assert(eq(u64, fake_stats(&w).network_changes, 0));
    fake_turn(&w);
    cr_assert(eq(u64, fake_stats(&w).network_changes, 1));
    fake_settle(&w);
    cr_assert(eq(uint, pinging.probes, 1));
    fake_run(&w, 5);
    cr_assert(eq(u64, fake_stats(&w).network_changes, 1)); /* once a sleep */
    fake_world_end(&w);
}

Test(pool_network, what_is_shorter_than_a_second_is_no_sleep)
{
    start(true, 0);
    testing_suspend(w.t, 0.9);
    fake_run(&w, 5);
    cr_assert(eq(u64, fake_stats(&w).network_changes, 0));
    cr_assert(eq(uint, pinging.probes, 0));
    fake_world_end(&w);
}

/* A process of its own, which answers while this one stands still. */
static pid_t answering_process(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int listener = socket(AF_UNIX, SOCK_STREAM, 0), fd;
    char letter;

    memcpy(address.sun_path + 1, name, strlen(name));
    cr_assert(eq(int, bind(listener, (struct sockaddr *)&address, (socklen_t)(3 + strlen(name))), 0));
    cr_assert(eq(int, listen(listener, 1), 0));
    pid_t child = fork();
    if (child == 0) {
        fd = accept(listener, NULL, NULL);
        while (read(fd, &letter, 1) == 1 && write(fd, "q", 1) == 1)
            continue;
        _exit(0);
    }
    close(listener);
    return child;
}

static double clock_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static unsigned asked;
static const double awaited = 0.01; /* seconds: an answer */

/* Until the answer is there, and its time is over. */
static int ask_and_stand_still(struct protocol_link *pl)
{
    double asked_at = clock_now();

    asked++;
    if (protocol_write(pl, &(struct iovec){(char[]){'p'}, 1}, 1) != 1)
        return LINKPOOL_ELOST;
    cr_assert(eq(int, poll(&(struct pollfd){.fd = pl->link->transport.fd, .events = POLLIN}, 1, 60000), 1));
    while (clock_now() < asked_at + 2 * awaited)
        continue;
    return 0;
}

static struct ev_loop *loop;
static int (*hear)(struct protocol_link *pl);

static int hear_three(struct protocol_link *pl)
{
    int taken = hear(pl);

    if (pinging.pongs == 3)
        ev_break(loop, EVBREAK_ALL);
    return taken;
}

static void on_done(struct pool_lease *lease)
{
    pool_release(lease, POOL_REUSE);
}

static void stop_loop(struct ev_loop *of, struct ev_timer *timer, int events)
{
    (void)timer, (void)events;
    ev_break(of, EVBREAK_ALL);
}

/* It stands still from each probe on, until the answer is there and its time is over; until three have come. */
Test(pool_network, what_came_while_the_process_stood_still_is_heard_before_its_time_is_up)
{
    const struct heartbeat_policy brisk = {
        .size = sizeof(struct heartbeat_policy), .interval = 0.01, .timeout = awaited, .misses = 1};
    struct pool_lease lease = {.done = on_done};
    struct pool_host_options host;
    struct pool_options options;
    struct pool_stats stats;
    struct ev_timer timer;
    char name[64], text[80];

    snprintf(name, sizeof name, "linkpool-stall-%d", (int)getpid());
    snprintf(text, sizeof text, "unix:@%s", name);
    pid_t child = answering_process(name); /* first: it has a copy of what there is, and frees nothing */
    loop = ev_loop_new(EVFLAG_AUTO);
    fake_pinging_init(&pinging, NULL, false);
    pinging.protocol.ping = ask_and_stand_still;
    hear = pinging.protocol.idle_input;
    pinging.protocol.idle_input = hear_three;
    pool_host_options_init(&host);
    pool_options_init(&options);
    host.protocol = &pinging.protocol;
    host.heartbeat = &brisk;
    options.host = &host;
    struct pool *pool = pool_new(loop, &options);
    cr_assert(ge(int, pool_acquire(pool, text, &lease), POOL_READY));
    ev_timer_init(&timer, stop_loop, 60, 0.);
    ev_timer_start(loop, &timer);
    ev_run(loop, 0);
    pool_stats(pool, &stats, sizeof stats);
    cr_assert(eq(u64, stats.ends[LINK_HEARTBEAT_LOST], 0));
    cr_assert(eq(uint, stats.links, 1));
    cr_assert(eq(uint, pinging.pongs, 3));
    cr_assert(eq(uint, asked, 3));
    cr_assert(eq(u64, stats.network_changes, 0)); /* nor has the machine slept */
    pool_free(pool);
    ev_loop_destroy(loop);
    cr_assert(eq(int, (int)waitpid(child, NULL, 0), (int)child));
}

Test(pool_network, a_link_that_is_watched_for_silence_and_cannot_be_asked_is_replaced)
{
    struct fake_user user = {0};

    fake_world_begin(&w);
    w.host.read_timeout = 5;
    fake_world_open(&w);
    peer = fake_echo(&w, a);
    fake_hold(&w, &user, a);
    fake_give_back(&user);
    change();
    cr_assert(eq(u64, ends(LINK_DRAINED), 1));
    cr_assert(eq(uint, fake_stats(&w).links, 0));
    fake_world_end(&w);
}

Test(pool_network, a_start_asked_for_while_another_attempt_is_under_way_is_not_forgotten)
{
    struct fake_user user = {0};

    begin(true);
    open_world();
    testing_peer_delay(peer, 1, 0);
    fake_ask(&w, &user, a);
    fake_settle(&w);
    cr_assert(eq(uint, testing_peer_attempts(peer), 1));
    cr_assert(eq(int, pool_host_start(fake_host(&w, a)), 0));
    change();
    cr_assert(eq(int, pool_cancel(&user.lease), 0));
    fake_run(&w, 5);
    cr_assert(eq(uint, testing_peer_attempts(peer), 2));
    cr_assert(eq(uint, fake_stats(&w).idle, 1)); /* though nobody waits */
    fake_world_end(&w);
}

Test(pool_network, an_attempt_that_nobody_needs_any_more_is_not_made_anew_beside_a_link)
{
    struct pool_host_options options;

    begin(true);
    open_world();
    w.host.min_links = 1;
    struct pool_host *host = pool_host(w.pool, a);
    options = w.host;
    cr_assert(eq(int, pool_host_set_options(host, &options), 0));
    fake_run(&w, 5);
    cr_assert(eq(uint, fake_stats(&w).idle, 1));
    testing_peer_delay(peer, 1, 0);
    options.min_links = 2;
    cr_assert(eq(int, pool_host_set_options(host, &options), 0));
    fake_settle(&w);
    cr_assert(eq(uint, testing_peer_attempts(peer), 2));
    options.min_links = 0;
    cr_assert(eq(int, pool_host_set_options(host, &options), 0));
    change();
    fake_run(&w, 5);
    cr_assert(eq(uint, testing_peer_attempts(peer), 2));
    cr_assert(eq(uint, fake_stats(&w).idle, 1));
    pool_host_drop(host);
    fake_world_end(&w);
}

/* ---- links on their own ---- */

static struct fake_owner owner;

static void own(const struct heartbeat_policy *policy, enum testing_behaviour behaviour)
{
    fake_owner_begin(&owner, behaviour);
    fake_owner_gaps(&owner, 100, 2, 1000);
    owner.backoff.reconnect_spread = 0.25;
    fake_pinging_init(&pinging, owner.t, true);
    fake_pinging_serve(&pinging, owner.peer);
    owner.options.protocol = &pinging.protocol;
    owner.options.heartbeat = policy;
    fake_owner_start(&owner);
    fake_owner_run(&owner, 0.5);
}

Test(link_network, a_link_that_is_up_is_asked_at_once)
{
    own(&heartbeat_default, TESTING_ACCEPT);
    cr_assert(eq(int, link_network_changed(owner.link), 0));
    fake_owner_settle(&owner);
    cr_assert(eq(uint, pinging.probes, 1));
    fake_owner_run(&owner, 10);
    cr_assert(eq(int, link_state(owner.link), LINK_READY));
    testing_peer_cut(owner.peer, LINK_TIMED_OUT);
    link_network_changed(owner.link);
    fake_owner_run(&owner, 9.9);
    cr_assert(eq(int, link_state(owner.link), LINK_READY));
    fake_owner_run(&owner, 0.2); /* two answers missed, not after a silence of 15 s more */
    cr_assert(eq(int, link_state(owner.link), LINK_BACKOFF));
    fake_owner_end(&owner);
}

Test(link_network, one_that_cannot_be_asked_is_left_to_its_owner)
{
    own(&heartbeat_none, TESTING_ACCEPT);
    link_network_changed(owner.link);
    fake_owner_run(&owner, 10);
    cr_assert(eq(uint, pinging.probes, 0));
    cr_assert(eq(int, link_state(owner.link), LINK_READY));
    fake_owner_end(&owner);
}

Test(link_network, its_backoff_is_cut_short_and_begins_at_the_first_again)
{
    own(&heartbeat_default, TESTING_REFUSE);
    fake_owner_run(&owner, 150); /* two failures: the third attempt is at 300 s */
    cr_assert(eq(uint, testing_peer_attempts(owner.peer), 2));
    link_network_changed(owner.link);
    fake_owner_run(&owner, 0.26);
    cr_assert(eq(uint, testing_peer_attempts(owner.peer), 3));
    cr_assert(eq(int, link_state(owner.link), LINK_BACKOFF));
    cr_assert(epsilon_eq(dbl, link_retry_in(owner.link), 100, 0.3));
    fake_owner_end(&owner);
}

Test(link_network, an_attempt_is_given_up_for_another_and_is_no_failure)
{
    own(&heartbeat_default, TESTING_BLACK_HOLE);
    testing_peer_behave(owner.peer, TESTING_ACCEPT);
    for (int i = 0; i < 10; i++)
        link_network_changed(owner.link);
    cr_assert(eq(int, link_state(owner.link), LINK_BACKOFF));
    fake_owner_run(&owner, 0.3);
    cr_assert(eq(int, link_state(owner.link), LINK_READY));
    const struct fake_told *told = fake_owner_told(&owner, "reconnect", 0);
    cr_assert(ne(ptr, (void *)told, NULL));
    cr_assert(eq(uint, told->attempt, 0));
    cr_assert(le(dbl, told->delay, 0.25));
    cr_assert(eq(uint, fake_owner_count(&owner, "reconnect"), 1));
    fake_owner_end(&owner);
}

Test(link_network, one_that_rests_goes_on_resting)
{
    own(&heartbeat_default, TESTING_ACCEPT);
    link_stop(owner.link);
    fake_owner_settle(&owner);
    link_network_changed(owner.link);
    fake_owner_run(&owner, 10);
    cr_assert(eq(int, link_state(owner.link), LINK_IDLE));
    cr_assert(eq(uint, testing_peer_attempts(owner.peer), 1));
    fake_owner_end(&owner);
}

Test(link_network, all_links_of_a_driver_hear_of_a_sleep)
{
    struct heartbeat_policy exact = heartbeat_default;

    exact.jitter = 0;
    own(&exact, TESTING_ACCEPT);
    struct link *other = link_new(owner.driver, FAKE_ADDRESS, &owner.options);
    owner.options.data = NULL;
    link_start(other);
    fake_owner_run(&owner, 1);
    testing_suspend(owner.t, 10);
    fake_owner_run(&owner, 1);
    cr_assert(eq(uint, pinging.probes, 0)); /* nothing has woken the loop yet */
    fake_owner_run(&owner, 9);              /* READY is proof after 10 s, and that wakes it */
    cr_assert(eq(uint, pinging.probes, 2));
    link_free(other);
    fake_owner_end(&owner);
}

/* ---- many changes ---- */

/* One change each hundredth of a second. */
static void keep_changing(double seconds)
{
    for (int i = 0; i < seconds * 100; i++) {
        pool_network_changed(w.pool);
        fake_run(&w, 0.01);
    }
}

Test(pool_network, many_changes_do_not_keep_an_attempt_from_coming_up)
{
    struct fake_user user = {0};

    for (int shared = 0; shared < 2; shared++) {
        begin(shared);
        open_world();
        testing_peer_delay(peer, 0.1, 0);
        user.status = 0;
        fake_ask(&w, &user, a);
        keep_changing(1);
        cr_assert(eq(int, user.status, POOL_READY));
        cr_assert(le(u64, fake_stats(&w).opened, 2));
        fake_give_back(&user);
        fake_world_end(&w);
    }
}

Test(pool_network, many_changes_begin_anew_at_once_and_then_once_a_second_and_after_the_last)
{
    struct fake_user user = {.lease = {.timeout = 60}};

    begin(true);
    open_world();
    testing_peer_behave(peer, TESTING_BLACK_HOLE);
    fake_ask(&w, &user, a);
    fake_run(&w, 0.5);
    double changed = testing_now(w.t);
    keep_changing(1.5);
    cr_assert(eq(uint, testing_peer_attempts(peer), 3));
    cr_assert(le(dbl, testing_peer_attempt_at(peer, 1), changed + 0.25 + 0.01));
    cr_assert(ge(dbl, testing_peer_attempt_at(peer, 2), changed + 1));
    testing_peer_behave(peer, TESTING_ACCEPT); /* the attempt under way is lost */
    fake_run(&w, 0.8);
    cr_assert(eq(int, user.status, POOL_READY));
    cr_assert(ge(dbl, user.told_at, changed + 2));
    fake_give_back(&user);
    fake_world_end(&w);
}

Test(pool_network, many_changes_do_not_put_off_a_long_spread)
{
    struct fake_user user = {.lease = {.timeout = 60}};

    begin(true);
    w.backoff = backoff_default;
    w.backoff.reconnect_spread = 8;
    w.host.backoff = &w.backoff;
    open_world();
    fake_ask(&w, &user, a);
    keep_changing(8.1);
    cr_assert(eq(int, user.status, POOL_READY));
    fake_give_back(&user);
    fake_world_end(&w);
}

Test(pool_network, many_changes_replace_what_cannot_be_asked_once_a_second)
{
    begin(false);
    pinging.protocol.ping = NULL;
    w.host.min_links = 1;
    open_world();
    pool_host(w.pool, a);
    fake_run(&w, 1);
    unsigned before = testing_peer_accepted(peer);
    keep_changing(3);
    cr_assert(ge(uint, testing_peer_accepted(peer) - before, 2));
    cr_assert(le(uint, testing_peer_accepted(peer) - before, 4));
    fake_run(&w, 2);
    cr_assert(eq(uint, fake_stats(&w).links, 1));
    fake_world_end(&w);
}

Test(pool_network, many_changes_in_one_instant_are_one)
{
    begin(false);
    pinging.protocol.ping = NULL;
    w.host.min_links = 1;
    open_world();
    pool_host(w.pool, a);
    fake_run(&w, 1);
    unsigned before = testing_peer_accepted(peer);
    for (int i = 0; i < 10; i++)
        pool_network_changed(w.pool);
    fake_run(&w, 5);
    cr_assert(eq(uint, testing_peer_accepted(peer), before + 1));
    fake_world_end(&w);
}

static void change_it(void *link)
{
    cr_assert(eq(int, link_network_changed(link), 0));
}

Test(link_network, an_attempt_that_is_about_to_begin_begins)
{
    own(&heartbeat_default, TESTING_REFUSE);
    testing_at(owner.t, testing_now(owner.t) + link_retry_in(owner.link), change_it, owner.link);
    fake_owner_run(&owner, 99.4);
    cr_assert(eq(uint, testing_peer_attempts(owner.peer), 1));
    fake_owner_run(&owner, 0.3);
    cr_assert(eq(uint, testing_peer_attempts(owner.peer), 2));
    cr_assert(epsilon_eq(dbl, fake_gap(owner.peer, 0), 100, 1e-6)); /* not a draw of the spread later */
    fake_owner_end(&owner);
}

static void free_and_change(struct fake_owner *one, const struct fake_told *told)
{
    (void)told;
    one->then = NULL;
    link_free(one->link);
    cr_assert(eq(int, link_network_changed(one->link), 0));
    one->link = NULL;
}

Test(link_network, one_that_is_freed_within_its_callback_hears_of_nothing)
{
    own(&heartbeat_default, TESTING_ACCEPT);
    owner.then = free_and_change;
    testing_peer_cut(owner.peer, LINK_RESET);
    fake_owner_run(&owner, 10);
    cr_assert(eq(ptr, (void *)owner.link, NULL));
    cr_assert(eq(uint, testing_peer_attempts(owner.peer), 1));
    fake_owner_end(&owner);
}

static int (*usual_ping)(struct protocol_link *pl);
static struct protocol_link *pinged;

static int note_and_ping(struct protocol_link *pl)
{
    pinged = pl;
    return usual_ping(pl);
}

/* A link on its own that is asked from now on. */
static void own_and_note(void)
{
    own(&heartbeat_default, TESTING_ACCEPT);
    usual_ping = pinging.protocol.ping;
    pinging.protocol.ping = note_and_ping;
}

/* It has missed an answer, and its peer leads it away. */
Test(link_network, one_led_away_that_is_heard_of_again_goes_on_leaving)
{
    own_and_note();
    pinging.answer = FAKE_MUTE;
    fake_owner_run(&owner, 21);
    cr_assert(eq(uint, pinging.probes, 2));
    cr_assert(eq(int, protocol_going(pinged, NULL, LINK_SENT_AWAY, "go"), 0));
    cr_assert(eq(int, link_state(owner.link), LINK_DRAINING));
    fake_pinging_noise(&pinging, testing_peer_conn(owner.peer, 0));
    fake_owner_settle(&owner);
    cr_assert(eq(int, link_state(owner.link), LINK_DRAINING));
    cr_assert(eq(uint, fake_owner_count(&owner, "connected"), 1));
    fake_owner_run(&owner, 40); /* its channel lasts for drain_timeout */
    cr_assert(eq(uint, fake_owner_count(&owner, "disconnected"), 1));
    cr_assert(eq(int, fake_owner_told(&owner, "disconnected", 0)->reason, LINK_SENT_AWAY));
    fake_owner_end(&owner);
}

Test(link_network, one_in_doubt_whose_channel_is_ended_gives_the_next_after_it_has_told)
{
    own_and_note();
    pinging.delay = 1;
    link_network_changed(owner.link);
    fake_owner_settle(&owner);
    cr_assert(eq(uint, pinging.probes, 1));
    cr_assert(eq(int, protocol_end(protocol_next_channel(pinged, NULL), LINK_CLOSED_BY_PEER, false), 0));
    cr_assert(eq(int, protocol_pong(pinged), 0)); /* the answer comes in the same turn */
    cr_assert(eq(uint, fake_owner_count(&owner, "connected"), 1));
    fake_owner_run(&owner, 0.1);
    cr_assert(eq(uint, fake_owner_count(&owner, "disconnected"), 1));
    cr_assert(eq(uint, fake_owner_count(&owner, "connected"), 2));
    fake_owner_end(&owner);
}

Test(link_network, a_hundred_links_of_a_driver_may_be_asked_in_one_turn)
{
    static struct link *links[100];
    struct heartbeat_policy exact = heartbeat_default;
    struct link_options plain;

    exact.jitter = 0;
    own(&exact, TESTING_ACCEPT);
    plain = owner.options;
    plain.connecting = NULL;
    plain.connected = NULL;
    plain.disconnected = NULL;
    plain.data = NULL;
    for (int i = 0; i < 100; i++)
        link_start(links[i] = link_new(owner.driver, FAKE_ADDRESS, &plain));
    fake_owner_run(&owner, 17);
    cr_assert(eq(uint, pinging.probes, 101));
    for (int i = 0; i < 100; i++)
        link_free(links[i]);
    fake_owner_end(&owner);
}
