/* cases_heartbeat.c - the cases of links whose peer falls silent, and of those that were asked too much or at the wrong
 * time. */
#include "tests/conformance/cases.h"
#include "tests/fakes/pinging.h"

static struct fake_pinging pinging;
static struct fake_world w;
static struct testing_peer *peer;
static struct heartbeat_policy policy;

static void begin(bool shared)
{
    cases_begin(&w);
    fake_pinging_init(&pinging, w.t, shared);
    w.host.protocol = &pinging.protocol;
}

static void open_world(void)
{
    fake_world_open(&w);
    peer = fake_peer(&w, A, TESTING_ACCEPT);
    fake_pinging_serve(&pinging, peer);
}

/* A host with one link up, that nobody holds; asked every `interval`. */
static void start(double interval, double timeout)
{
    struct fake_user user = {0};

    begin(true);
    policy = (struct heartbeat_policy){.size = sizeof policy, .interval = interval, .timeout = timeout, .misses = 1};
    w.host.heartbeat = &policy;
    open_world();
    fake_hold(&w, &user, A);
    fake_give_back(&user);
}

/* The link is the first, and carries a message there and back. */
static void expect_usable(void)
{
    struct fake_user user = {0};

    fake_hold(&w, &user, A);
    cr_assert(eq(int, channel_send(user.lease.channel, "x", 1), 0));
    fake_settle(&w);
    cr_assert(eq(uint, testing_peer_accepted(peer), 1));
    cr_assert(eq(uint, testing_peer_open(peer), 1));
    cr_assert(not(user.closed));
    fake_give_back(&user);
}

Test(cases, T131_an_idle_link_whose_peer_stops_answering_is_closed)
{
    start(0.01, 0.01);
    pinging.answer = FAKE_MUTE;
    fake_run(&w, 0.0199);
    cr_assert(eq(uint, fake_stats(&w).links, 1));
    fake_run(&w, 0.0002);
    cr_assert(eq(uint, fake_stats(&w).links, 0));
    cr_assert(eq(u64, fake_stats(&w).ends[LINK_HEARTBEAT_LOST], 1));
    fake_world_end(&w);
}

Test(cases, T132_a_link_that_nobody_uses_and_nobody_may_ask_stays_usable)
{
    begin(true);
    w.host.heartbeat = &heartbeat_none;
    w.host.read_timeout = 0.01; /* of a link that is held */
    open_world();
    struct fake_user user = {0};
    fake_hold(&w, &user, A);
    fake_give_back(&user);
    pinging.answer = FAKE_MUTE;
    fake_run(&w, 0.5);
    cr_assert(eq(uint, pinging.probes, 0));
    expect_usable();
    fake_world_end(&w);
}

Test(cases, T133_a_link_in_use_whose_peer_stops_answering_is_closed)
{
    struct fake_user user = {0};

    start(0.1, 0.1);
    fake_hold(&w, &user, A);
    pinging.answer = FAKE_MUTE;
    fake_run(&w, 0.199);
    cr_assert(eq(uint, user.closed, 0));
    fake_run(&w, 0.002);
    cr_assert(eq(uint, user.closed, 1));
    cr_assert(eq(int, user.lease.reason, LINK_HEARTBEAT_LOST));
    fake_world_end(&w);
}

Test(cases, T134_a_link_asked_often_and_answering_stays_usable)
{
    start(0.055, 0.02);
    fake_run(&w, 0.5);
    cr_assert(eq(uint, pinging.pongs, 9));
    expect_usable();
    fake_world_end(&w);
}

Test(cases, T135_probes_are_an_interval_apart_and_a_peer_that_complains_has_half_of_them)
{
    start(0.05, 1); /* not an interval and an answer's time */
    fake_run(&w, 0.226);
    cr_assert(eq(uint, pinging.probes, 4));
    pinging.answer = FAKE_COMPLAINS;
    fake_run(&w, 0.05); /* the fifth */
    pinging.answer = FAKE_PONG;
    cr_assert(eq(uint, pinging.probes, 5));
    fake_run(&w, 0.5);
    for (unsigned i = 1; i < pinging.probes; i++)
        cr_assert(epsilon_eq(dbl, pinging.at[i] - pinging.at[i - 1], i < 5 ? 0.05 : 0.1, 1e-4), "probe %u", i);
    cr_assert(ge(uint, pinging.probes, 9));
    expect_usable();
    fake_world_end(&w);
}

Test(cases, XA16_a_flow_that_was_dropped_silently_is_closed_by_the_heartbeat)
{
    struct fake_user user = {0};

    begin(true);
    open_world();
    fake_hold(&w, &user, A);
    fake_run(&w, 10);
    testing_peer_cut(peer, LINK_TIMED_OUT); /* nothing is told: what is written goes nowhere */
    cr_assert(eq(int, channel_send(user.lease.channel, "x", 1), 0));
    fake_run(&w, 16);
    cr_assert(eq(uint, user.closed, 1));
    cr_assert(eq(int, user.lease.reason, LINK_HEARTBEAT_LOST));
    cr_assert(eq(int, user.lease.fate, POOL_SENT_NO_ANSWER));
    cases_ask(&w, &user, 1, A);
    fake_run(&w, 1);
    cr_assert(eq(int, user.status, POOL_READY));
    fake_world_end(&w);
}

/* Six links, all of which look well, and four of which are dead. */
Test(cases, XI8_when_the_uplink_has_changed_all_links_are_asked_at_once_and_the_pool_is_usable)
{
    struct fake_user users[18] = {0};

    begin(true);
    open_world();
    for (int i = 0; i < 18; i++)
        fake_hold(&w, &users[i], A);
    cr_assert(eq(uint, testing_peer_accepted(peer), 6));
    for (int i = 3; i < 18; i++) /* one is in use */
        fake_give_back(&users[i]);
    fake_run(&w, 1);
    for (unsigned i = 0; i < 4; i++)
        testing_conn_cut(testing_peer_conn(peer, 5 - i), LINK_TIMED_OUT);
    pool_network_changed(w.pool);
    cases_ask(&w, &users[3], 3, A);
    fake_run(&w, 0.3);
    cr_assert(eq(uint, pinging.probes, 6));
    cr_assert(eq(uint, cases_count(&users[3], 3, POOL_READY), 3));
    fake_run(&w, 5);
    cr_assert(eq(u64, fake_stats(&w).ends[LINK_HEARTBEAT_LOST], 4));
    for (int i = 0; i < 6; i++)
        cr_assert(eq(uint, users[i].closed, 0)); /* nobody was given one of them */
    fake_world_end(&w);
}

Test(cases, XK5_a_link_is_not_asked_while_its_holder_waits_for_an_answer)
{
    struct fake_user user = {0};

    begin(false);
    open_world();
    fake_hold(&w, &user, A);
    fake_run(&w, 120); /* a command that takes its time */
    cr_assert(eq(uint, pinging.probes, 0));
    cr_assert(eq(uint, user.closed, 0));
    fake_exchange(&w, &user);
    fake_give_back(&user);
    fake_world_end(&w);
}

Test(cases, XK6_the_heartbeat_needs_no_lease_and_an_exhausted_pool_is_left_as_it_is)
{
    for (int shared = 0; shared < 2; shared++) {
        struct fake_user users[3] = {0}, waits[5] = {0};
        begin(shared);
        w.host.max_links = 1;
        open_world();
        for (int i = 0; i < (shared ? 3 : 1); i++)
            fake_hold(&w, &users[i], A);
        for (int i = 0; i < 5; i++)
            cases_wait(&w, &waits[i], A);
        struct pool_stats before = fake_stats(&w);
        fake_run(&w, 60);
        struct pool_stats after = fake_stats(&w);
        cr_assert(eq(u64, after.heartbeat.probes, shared ? 4 : 0));
        cr_assert(eq(uint, after.leased, before.leased));
        cr_assert(eq(uint, after.waiting, 5));
        cr_assert(eq(u64, after.opened, 1));
        cr_assert(eq(u64, after.full, before.full));
        cr_assert(eq(uint, fake_stats(&w).links, 1));
        fake_world_end(&w);
    }
}

Test(cases, XK8_a_dead_link_is_found_by_default)
{
    struct fake_user users[3] = {0};

    begin(true); /* no option is set but the protocol */
    open_world();
    for (int i = 0; i < 3; i++)
        fake_hold(&w, &users[i], A);
    testing_peer_cut(peer, LINK_TIMED_OUT);
    fake_run(&w, 25.1);
    for (int i = 0; i < 3; i++)
        cr_assert(eq(uint, users[i].closed, 1));
    cases_ask(&w, users, 3, A);
    fake_run(&w, 1);
    cr_assert(eq(uint, cases_count(users, 3, POOL_READY), 3));
    fake_world_end(&w);
}

Test(cases, XK16_the_heartbeat_goes_on_after_a_miss_one_at_a_time_and_ends_with_its_link)
{
    struct fake_user user = {0};

    begin(true);
    policy = heartbeat_default;
    policy.jitter = 0; /* the times below are exact */
    w.host.heartbeat = &policy;
    open_world();
    fake_hold(&w, &user, A);
    pinging.answer = FAKE_MUTE;
    fake_run(&w, 21); /* asked at 15, missed at 20, asked again */
    cr_assert(eq(uint, pinging.probes, 2));
    pinging.answer = FAKE_PONG;
    fake_pinging_noise(&pinging, testing_peer_conn(peer, 0));
    fake_run(&w, 59); /* at 36, 51, 66 */
    cr_assert(eq(uint, pinging.probes, 5));
    testing_peer_cut(peer, LINK_RESET);
    fake_run(&w, 100);
    cr_assert(eq(uint, pinging.probes, 5));
    fake_world_end(&w);
}

/* A hundred links that were READY in one instant, with no option set but how many. */
Test(cases, XK16_links_born_together_are_not_asked_together)
{
    begin(true);
    pinging.protocol.max_channels = 1;
    w.host.min_links = w.host.max_links = w.host.first_connecting = w.host.max_connecting = 100;
    w.host.idle_timeout = 0;
    open_world();
    pool_host(w.pool, A);
    fake_run(&w, 1);
    cr_assert(eq(uint, fake_stats(&w).links, 100));
    fake_run(&w, 300);
    struct pool_stats stats = fake_stats(&w);
    cr_assert(ge(u64, stats.heartbeat.probes, 100 * 19));
    cr_assert(le(uint, stats.heartbeat.most_due, 8));
    cr_assert(eq(u64, stats.heartbeat.misses, 0));
    cr_assert(le(uint, pinging.most_out, 8));
    fake_world_end(&w);
}

/* Where no user_timeout is set, the kernel would go on sending for a quarter of an hour. */
Test(cases, VD10_a_black_hole_under_sent_bytes_is_found_by_the_heartbeat)
{
    struct fake_user user = {0};

    start(2, 3);
    fake_hold(&w, &user, A);
    testing_peer_cut(peer, LINK_TIMED_OUT);
    cr_assert(eq(int, channel_send(user.lease.channel, "x", 1), 0));
    fake_run(&w, 4.99);
    cr_assert(eq(uint, user.closed, 0));
    fake_run(&w, 0.02);
    cr_assert(eq(uint, user.closed, 1));
    cr_assert(eq(int, user.lease.reason, LINK_HEARTBEAT_LOST));
    cr_assert(eq(int, user.lease.fate, POOL_SENT_NO_ANSWER));
    fake_world_end(&w);
}
