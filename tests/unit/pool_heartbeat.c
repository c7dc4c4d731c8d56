/* pool_heartbeat.c - links that are asked for a sign of life: when, by whom the answer is met, and what a silent peer
 * means for its leases and for the next ones. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "tests/fakes/framed_stage.h"
#include "tests/fakes/pinging.h"
#include "tests/fakes/world.h"

static const char a[] = "10.0.0.1:80";

static struct fake_world w;
static struct fake_pinging pinging;
static struct testing_peer *peer;
static struct heartbeat_policy policy;
static double ready; /* when the first link was READY */

static void begin(bool shared, const struct heartbeat_policy *its_policy)
{
    fake_world_begin(&w);
    fake_pinging_init(&pinging, w.t, shared);
    policy = *its_policy;
    policy.jitter = 0; /* what it does is told below; without it times are exact */
    w.host.protocol = &pinging.protocol;
    w.host.heartbeat = &policy;
    w.host.idle_timeout = 0;
}

static void open_world(void)
{
    fake_world_open(&w);
    peer = fake_peer(&w, a, TESTING_ACCEPT);
    fake_pinging_serve(&pinging, peer);
}

/* A host with one link, that nobody holds. */
static void open_idle(void)
{
    struct fake_user user = {0};

    open_world();
    fake_hold(&w, &user, a);
    ready = testing_now(w.t);
    fake_give_back(&user);
}

static void start(bool shared, const struct heartbeat_policy *its_policy)
{
    begin(shared, its_policy);
    open_idle();
}

/* Asks every `interval` seconds, and gives up after one answer missed for `timeout`. */
static struct heartbeat_policy every(double interval, double timeout, unsigned misses)
{
    return (struct heartbeat_policy){
        .size = sizeof(struct heartbeat_policy), .interval = interval, .timeout = timeout, .misses = misses};
}

static void run_to(double since_ready)
{
    fake_run(&w, ready + since_ready - testing_now(w.t));
}

static void expect_probes(const double *at, unsigned n)
{
    cr_assert(eq(uint, pinging.probes, n), "at %g", testing_now(w.t) - ready);
    for (unsigned i = 0; i < n; i++)
        cr_assert(epsilon_eq(dbl, pinging.at[i] - ready, at[i], 1e-5), "probe %u", i);
}

#define PROBES(...) expect_probes((const double[]){__VA_ARGS__}, sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

static uint64_t ends(enum link_reason reason)
{
    return fake_stats(&w).ends[reason];
}

static struct pool_host *host(void)
{
    return fake_host(&w, a);
}

static const struct link *link_of(const struct fake_user *user)
{
    return channel_link(user->lease.channel);
}

/* ---- when it is asked ---- */

Test(pool_heartbeat, a_silent_link_is_asked_after_the_interval_and_again_after_its_answer)
{
    for (int shared = 0; shared < 2; shared++) {
        start(shared, &heartbeat_default);
        pinging.delay = 0.25;
        run_to(14.9);
        cr_assert(eq(uint, pinging.probes, 0));
        run_to(46);
        PROBES(15, 30.25, 45.5);
        cr_assert(eq(uint, pinging.received, 3));
        cr_assert(eq(uint, pinging.pongs, 3));
        cr_assert(eq(u64, fake_stats(&w).heartbeat.misses, 0));
        fake_world_end(&w);
    }
}

Test(pool_heartbeat, any_byte_is_a_sign_of_life)
{
    for (int shared = 0; shared < 2; shared++) {
        start(shared, &heartbeat_default);
        run_to(10);
        fake_pinging_noise(&pinging, testing_peer_conn(peer, 0));
        run_to(24.9);
        cr_assert(eq(uint, pinging.probes, 0));
        run_to(25.1);
        PROBES(25);
        fake_world_end(&w);
    }
}

Test(pool_heartbeat, other_bytes_than_the_answer_keep_a_link_alive)
{
    for (int shared = 0; shared < 2; shared++) {
        start(shared, &heartbeat_default);
        pinging.answer = FAKE_NOISE;
        pinging.delay = 1;
        run_to(100);
        PROBES(15, 31, 47, 63, 79, 95);
        cr_assert(eq(u64, fake_stats(&w).heartbeat.misses, 0));
        cr_assert(eq(u64, ends(LINK_HEARTBEAT_LOST), 0));
        fake_world_end(&w);
    }
}

Test(pool_heartbeat, a_mute_peer_is_given_up_after_its_misses)
{
    for (int shared = 0; shared < 2; shared++) {
        start(shared, &heartbeat_default);
        pinging.answer = FAKE_MUTE;
        run_to(24.9);
        PROBES(15, 20);
        cr_assert(eq(u64, ends(LINK_HEARTBEAT_LOST), 0));
        run_to(25.001);
        cr_assert(eq(u64, ends(LINK_HEARTBEAT_LOST), 1));
        cr_assert(eq(uint, fake_stats(&w).links, 0));
        run_to(100);
        cr_assert(eq(uint, pinging.probes, 2)); /* the heartbeat ends with the link */
        fake_world_end(&w);
    }
}

Test(pool_heartbeat, a_watched_link_is_asked_again_after_the_watch_interval)
{
    struct heartbeat_policy three = every(10, 2, 3);

    three.watch_interval = 3;
    start(true, &three);
    pinging.answer = FAKE_MUTE;
    run_to(21.9);
    PROBES(10, 15, 20);
    cr_assert(eq(u64, ends(LINK_HEARTBEAT_LOST), 0));
    run_to(22.001);
    cr_assert(eq(u64, ends(LINK_HEARTBEAT_LOST), 1));
    fake_world_end(&w);
}

Test(pool_heartbeat, misses_count_in_a_row)
{
    struct heartbeat_policy three = every(10, 2, 3);

    start(true, &three);
    pinging.answer = FAKE_MUTE;
    run_to(13); /* one is missed, the second probe is out */
    PROBES(10, 12);
    fake_pinging_noise(&pinging, testing_peer_conn(peer, 0));
    run_to(28.9);
    PROBES(10, 12, 23, 25, 27);
    cr_assert(eq(u64, ends(LINK_HEARTBEAT_LOST), 0));
    run_to(29.001);
    cr_assert(eq(u64, ends(LINK_HEARTBEAT_LOST), 1));
    fake_world_end(&w);
}

Test(pool_heartbeat, a_miss_ends_the_streak)
{
    struct heartbeat_policy adapts = every(10, 2, 9);

    adapts.min = 10;
    adapts.max = 90;
    start(true, &adapts);
    run_to(112); /* eleven answers: 11 s from now on */
    cr_assert(eq(uint, pinging.probes, 11));
    cr_assert(epsilon_eq(dbl, pinging.at[10] - pinging.at[9], 11, 1e-4));
    pinging.answer = FAKE_MUTE;
    run_to(123);
    pinging.answer = FAKE_PONG;
    run_to(140);
    cr_assert(eq(uint, pinging.probes, 14));
    cr_assert(epsilon_eq(dbl, pinging.at[12] - pinging.at[11], 2, 1e-4));
    cr_assert(epsilon_eq(dbl, pinging.at[13] - pinging.at[12], 10, 1e-4));
    fake_world_end(&w);
}

Test(pool_heartbeat, one_probe_is_under_way_at_a_time)
{
    for (int shared = 0; shared < 2; shared++) {
        struct heartbeat_policy often = every(1, 5, 2);
        start(shared, &often);
        pinging.delay = 4;
        run_to(4.9);
        PROBES(1);
        run_to(12);
        PROBES(1, 6, 11); /* an interval after the answer, though an answer has longer than that */
        fake_world_end(&w);
    }
}

Test(pool_heartbeat, an_answers_time_begins_when_the_probe_is_queued)
{
    struct fake_user user = {0};

    start(true, &heartbeat_default);
    fake_hold(&w, &user, a);
    testing_peer_window(peer, 0);
    while (channel_send(user.lease.channel, "x", 1) == 0)
        ;
    run_to(24.9);
    PROBES(15, 20);
    cr_assert(eq(uint, pinging.received, 0)); /* nothing of it left */
    cr_assert(eq(u64, ends(LINK_HEARTBEAT_LOST), 0));
    run_to(25.001);
    cr_assert(eq(u64, ends(LINK_HEARTBEAT_LOST), 1));
    cr_assert(eq(uint, user.closed, 1));
    fake_world_end(&w);
}

Test(pool_heartbeat, nothing_is_asked_without_a_heartbeat_or_a_ping)
{
    for (int shared = 0; shared < 2; shared++) {
        start(shared, &heartbeat_none);
        testing_peer_cut(peer, LINK_TIMED_OUT);
        run_to(800);
        cr_assert(eq(uint, pinging.probes, 0));
        cr_assert(eq(uint, fake_stats(&w).links, 1));
        fake_world_end(&w);
    }
    begin(true, &heartbeat_default);
    pinging.protocol.ping = NULL;
    open_idle();
    testing_peer_cut(peer, LINK_TIMED_OUT);
    run_to(800);
    cr_assert(eq(uint, fake_stats(&w).links, 1));
    fake_world_end(&w);
}

/* 200 links that are READY in one instant. */
Test(pool_heartbeat, links_born_together_are_asked_apart_and_never_later_than_the_interval)
{
    enum {
        LINKS = 200
    };
    unsigned before_14 = 0;

    begin(true, &heartbeat_default);
    policy.jitter = heartbeat_default.jitter;
    pinging.protocol.max_channels = 1;
    w.host.min_links = w.host.max_links = w.host.first_connecting = w.host.max_connecting = LINKS;
    open_world();
    pool_host(w.pool, a);
    fake_run(&w, 1);
    for (unsigned i = 0; i < LINKS; i++)
        cr_assert(eq(uint, fake_stats(&w).links, LINKS));
    ready = testing_now(w.t) - 0.75;
    for (int round = 1; round <= 3; round++) {
        fake_run(&w, round == 1 ? 14.3 : 15);
        cr_assert(le(uint, fake_stats(&w).heartbeat.most_due, 10)); /* of 200 */
    }
    struct heartbeat_stats stats = fake_stats(&w).heartbeat;
    cr_assert(ge(dbl, stats.shortest, 13.5 - 1e-6));
    cr_assert(le(dbl, stats.longest, 15 + 1e-6));
    cr_assert(epsilon_eq(dbl, stats.mean, 14.25, 0.1));
    for (unsigned i = 0; i < LINKS; i++)
        before_14 += pinging.at[i] - ready < 14.25;
    cr_assert(ge(uint, before_14, LINKS / 4));
    cr_assert(le(uint, before_14, LINKS * 3 / 4));
    fake_world_end(&w);
}

/* ---- who is asked ---- */

Test(pool_heartbeat, a_link_leased_whole_is_not_asked_and_is_when_it_comes_back)
{
    struct fake_user user = {0};

    start(false, &heartbeat_default);
    fake_hold(&w, &user, a);
    run_to(38);
    fake_exchange(&w, &user);
    run_to(40);
    cr_assert(eq(uint, pinging.probes, 0));
    fake_give_back(&user);
    run_to(52.9);
    cr_assert(eq(uint, pinging.probes, 0));
    run_to(53.1);
    PROBES(53);
    fake_world_end(&w);
}

Test(pool_heartbeat, a_link_that_comes_back_after_long_silence_is_asked_at_once)
{
    struct fake_user user = {0};

    start(false, &heartbeat_default);
    fake_hold(&w, &user, a);
    run_to(40);
    fake_give_back(&user);
    fake_settle(&w);
    PROBES(40);
    cr_assert(eq(uint, pinging.pongs, 1));
    fake_world_end(&w);
}

static const struct driver_ops *real;
static unsigned alarms;

static void count_alarm(struct driver *driver, double due)
{
    alarms++;
    real->alarm(driver, due);
}

Test(pool_heartbeat, uses_cost_no_alarm)
{
    struct fake_user user = {0};
    struct driver_ops counting;

    begin(false, &heartbeat_default);
    struct driver *driver = testing_driver(w.t);
    counting = *(real = driver->ops);
    counting.alarm = count_alarm;
    driver->ops = &counting;
    w.pool = pool_new_on(driver, &w.options);
    peer = fake_peer(&w, a, TESTING_ACCEPT);
    fake_pinging_serve(&pinging, peer);
    fake_hold(&w, &user, a);
    ready = testing_now(w.t);
    fake_give_back(&user);
    run_to(6); /* alarms that were asked for while it was opened have rung */
    alarms = 0;
    for (int i = 0; i < 90; i++) {
        run_to(6.03 + i / 30.0);
        cr_assert(eq(int, fake_ask(&w, &user, a), POOL_READY));
        fake_exchange(&w, &user);
        fake_give_back(&user);
    }
    cr_assert(eq(uint, alarms, 0));
    run_to(23.9);
    cr_assert(eq(uint, pinging.probes, 0));
    run_to(24.1);
    cr_assert(eq(uint, pinging.probes, 1)); /* 15 s after the last of them */
    pool_free(w.pool);                      /* before the driver's operations go */
    w.pool = NULL;
    fake_world_end(&w);
}

Test(pool_heartbeat, a_shared_link_is_asked_while_it_is_leased)
{
    struct fake_user user = {0};

    start(true, &heartbeat_default);
    fake_hold(&w, &user, a);
    run_to(31);
    PROBES(15, 30);
    fake_world_end(&w);
}

Test(pool_heartbeat, a_shared_link_that_waits_for_its_holders_is_asked_too)
{
    struct fake_user user = {0};

    begin(true, &heartbeat_default);
    w.host.max_uses = 2;
    open_idle();
    fake_hold(&w, &user, a); /* its last use: nobody else gets it */
    pinging.answer = FAKE_MUTE;
    run_to(25.001);
    cr_assert(eq(u64, ends(LINK_HEARTBEAT_LOST), 1));
    cr_assert(eq(uint, user.closed, 1));
    fake_world_end(&w);
}

/* A link whose age has come under its holders is theirs until they are done; its peer may be dead by then. */
Test(pool_heartbeat, a_link_that_grew_too_old_under_its_holders_is_asked_too)
{
    struct fake_user user = {0};

    begin(true, &heartbeat_default);
    w.host.max_age = 10;
    open_world();
    fake_hold(&w, &user, a);
    ready = testing_now(w.t);
    pinging.answer = FAKE_MUTE;
    run_to(25.001);
    PROBES(15, 20);
    cr_assert(eq(u64, ends(LINK_HEARTBEAT_LOST), 1));
    cr_assert(eq(uint, user.closed, 1));
    fake_world_end(&w);
}

Test(pool_heartbeat, a_holders_silence_is_bounded_though_its_link_grew_too_old)
{
    struct fake_user user = {0};

    begin(false, &heartbeat_none);
    w.host.protocol = &protocol_raw;
    w.host.max_age = 10;
    w.host.read_timeout = 15;
    fake_world_open(&w);
    fake_peer(&w, a, TESTING_SILENT);
    fake_hold(&w, &user, a);
    ready = testing_now(w.t);
    run_to(14.9);
    cr_assert(eq(uint, user.closed, 0));
    run_to(15.001);
    cr_assert(eq(u64, ends(LINK_HEARTBEAT_LOST), 1));
    cr_assert(eq(uint, user.closed, 1));
    fake_world_end(&w);
}

/* 10 s after READY for the first time; then 30 s after an answer, less a second for each 0.1 s of its round trip. */
Test(pool_heartbeat, the_round_trip_of_an_answer_counts_for_the_next_probe)
{
    struct heartbeat_policy patient = heartbeat_adaptive;

    patient.timeout = 60; /* its own time rings no sooner */
    for (int shared = 0; shared < 2; shared++) {
        start(shared, &patient);
        pinging.delay = 1.25;
        run_to(30);
        PROBES(10, 29.25);
        fake_world_end(&w);
    }
}

/* ---- whose the answer is ---- */

Test(pool_heartbeat, an_exclusive_link_is_lent_when_it_has_answered_and_not_before)
{
    struct fake_user user = {0};

    begin(false, &heartbeat_default);
    w.host.max_links = 1;
    open_idle();
    pinging.delay = 0.5;
    run_to(15.1);
    PROBES(15);
    cr_assert(eq(uint, fake_stats(&w).idle, 1));
    cr_assert(eq(int, fake_ask(&w, &user, a), POOL_PENDING));
    run_to(16);
    cr_assert(eq(int, user.status, POOL_READY));
    cr_assert(epsilon_eq(dbl, user.told_at - ready, 15.5, 1e-5));
    fake_exchange(&w, &user); /* it reads its echo, and nothing of the probe's answer */
    cr_assert(eq(uint, pinging.pongs, 1));
    fake_world_end(&w);
}

Test(pool_heartbeat, who_starves_in_a_full_pool_has_the_link_when_it_has_answered)
{
    struct fake_user user = {0};

    begin(false, &heartbeat_default);
    w.options.max_links = 1;
    open_idle();
    pinging.delay = 0.5;
    run_to(15.1);
    PROBES(15);
    cr_assert(eq(int, fake_ask(&w, &user, a), POOL_PENDING));
    run_to(15.6);
    cr_assert(eq(int, user.status, POOL_READY));
    cr_assert(eq(uint, testing_peer_accepted(peer), 1));
    fake_world_end(&w);
}

Test(pool_heartbeat, while_an_exclusive_link_is_asked_another_serves_or_is_opened)
{
    struct fake_user users[2] = {0}, user = {0};

    begin(false, &heartbeat_default);
    open_world();
    fake_hold(&w, &users[0], a);
    ready = testing_now(w.t);
    fake_hold(&w, &users[1], a);
    fake_give_back(&users[0]);
    run_to(10);
    fake_exchange(&w, &users[1]);
    fake_give_back(&users[1]);
    pinging.delay = 1;
    run_to(15.1);
    PROBES(15);
    cr_assert(eq(int, fake_ask(&w, &user, a), POOL_READY)); /* the one that was heard of at 10 */
    cr_assert(eq(int, fake_ask(&w, &users[0], a), POOL_PENDING));
    fake_settle(&w);
    cr_assert(eq(int, users[0].status, POOL_READY));
    cr_assert(eq(uint, testing_peer_accepted(peer), 3));
    fake_world_end(&w);
}

Test(pool_heartbeat, a_late_answer_is_life_but_the_second_probes_is_still_awaited)
{
    struct fake_user user = {0};

    begin(false, &heartbeat_default);
    w.host.max_links = 1;
    open_idle();
    pinging.delay = 6;
    run_to(20.5);
    PROBES(15, 20);
    pinging.delay = 0;
    cr_assert(eq(int, fake_ask(&w, &user, a), POOL_PENDING));
    run_to(21.1);
    cr_assert(eq(uint, pinging.pongs, 1));
    cr_assert(eq(int, user.status, POOL_PENDING));
    user.lease.timeout = 0;
    run_to(25.4); /* the second answer's time is up at 25, and it comes at 26 */
    cr_assert(eq(int, user.status, POOL_PENDING));
    cr_assert(eq(u64, ends(LINK_HEARTBEAT_LOST), 0));
    run_to(31);
    cr_assert(eq(u64, ends(LINK_HEARTBEAT_LOST), 0));
    cr_assert(eq(int, fake_ask(&w, &user, a), POOL_READY)); /* all have come: asked at 25, answered at once */
    fake_exchange(&w, &user);
    fake_world_end(&w);
}

/* Each answer comes after 6 s where 5 are awaited: there is life, but never a moment when no answer is owed. */
Test(pool_heartbeat, a_peer_that_answers_every_probe_too_late_loses_its_exclusive_link)
{
    struct fake_user user = {.lease = {.timeout = 100}};

    begin(false, &heartbeat_default);
    w.host.max_links = 1;
    open_idle();
    pinging.delay = 6;
    run_to(16);
    cr_assert(eq(int, fake_ask(&w, &user, a), POOL_PENDING));
    run_to(29.9); /* missed at 20 and 25, and heard of in between */
    cr_assert(eq(u64, ends(LINK_HEARTBEAT_LOST), 0));
    run_to(30.1);
    cr_assert(eq(u64, ends(LINK_HEARTBEAT_LOST), 1));
    run_to(31);
    cr_assert(eq(int, user.status, POOL_READY)); /* of the next one */
    fake_world_end(&w);
}

Test(pool_heartbeat, as_many_late_answers_as_the_policy_allows_end_no_link)
{
    struct heartbeat_policy patient = every(1, 0.5, UINT_MAX);

    start(false, &patient);
    pinging.delay = 0.6;
    fake_run(&w, 40000);
    cr_assert(lt(uint, 70000, pinging.probes)); /* more than are counted */
    cr_assert(eq(u64, ends(LINK_HEARTBEAT_LOST), 0));
    cr_assert(eq(uint, testing_peer_accepted(peer), 1));
    fake_world_end(&w);
}

Test(pool_heartbeat, a_peer_that_is_late_now_and_then_keeps_its_link)
{
    start(false, &heartbeat_default);
    for (unsigned i = 0; i < 20; i++) {
        pinging.delay = 6;
        while (fake_stats(&w).heartbeat.misses == i)
            fake_run(&w, 0.5);
        pinging.delay = 0.1; /* of the next: then all that is owed comes */
        fake_run(&w, 10);
    }
    cr_assert(eq(u64, ends(LINK_HEARTBEAT_LOST), 0));
    fake_world_end(&w);
}

Test(pool_heartbeat, a_shared_link_whose_peer_is_always_late_stays_and_is_lent_last)
{
    start(true, &heartbeat_default);
    pinging.delay = 6;
    run_to(1000);
    cr_assert(eq(u64, ends(LINK_HEARTBEAT_LOST), 0));
    cr_assert(eq(uint, fake_stats(&w).links, 1));
    fake_world_end(&w);
}

Test(pool_heartbeat, without_a_pong_other_bytes_were_the_answer_when_its_time_is_up)
{
    struct fake_user user = {0};

    begin(false, &heartbeat_default);
    w.host.max_links = 1;
    open_idle();
    pinging.answer = FAKE_NOISE;
    run_to(16);
    cr_assert(eq(int, fake_ask(&w, &user, a), POOL_PENDING));
    run_to(21);
    cr_assert(eq(int, user.status, POOL_READY));
    cr_assert(epsilon_eq(dbl, user.told_at - ready, 20, 1e-5));
    fake_world_end(&w);
}

/* Which of two answers has come, nobody can tell: the link is never known to be clean again. */
Test(pool_heartbeat, without_a_pong_an_answer_that_comes_too_late_ends_the_link)
{
    start(false, &heartbeat_default);
    pinging.answer = FAKE_NOISE;
    pinging.delay = 6;
    run_to(24.9); /* asked at 15 and 20, answered at 21 */
    PROBES(15, 20);
    cr_assert(eq(u64, ends(LINK_HEARTBEAT_LOST), 0));
    run_to(25.001);
    cr_assert(eq(u64, ends(LINK_HEARTBEAT_LOST), 1));
    fake_world_end(&w);
}

/* ---- suspicion ---- */

/* Two shared links of three channels each; users[0..2] hold the first, users[3] the second. The first has missed an
 * answer at 20, and stays suspect until 60. */
static void suspect_first(struct fake_user *users, bool spread)
{
    struct heartbeat_policy patient = every(15, 5, 9);

    begin(true, &patient);
    w.host.max_links = 2;
    open_world();
    for (int i = 0; i < 4; i++) {
        fake_hold(&w, &users[i], a);
        if (!i)
            ready = testing_now(w.t);
    }
    cr_assert(eq(ptr, (void *)link_of(&users[2]), (void *)link_of(&users[0])));
    cr_assert(ne(ptr, (void *)link_of(&users[3]), (void *)link_of(&users[0])));
    if (spread) {
        struct pool_host_options options = w.host;
        options.spread_links = true;
        cr_assert(eq(int, pool_host_set_options(host(), &options), 0));
    }
    pinging.mute = testing_peer_conn(peer, 0);
    run_to(20.5);
}

Test(pool_heartbeat, a_suspect_link_is_not_lent_while_another_can_serve)
{
    struct fake_user users[4] = {0}, more[4] = {0};

    suspect_first(users, false);
    const struct link *suspect = link_of(&users[0]), *healthy = link_of(&users[3]);
    fake_give_back(&users[1]);
    fake_give_back(&users[2]); /* the oldest with room, and it would be the first */
    for (int i = 0; i < 2; i++) {
        cr_assert(eq(int, fake_ask(&w, &more[i], a), POOL_READY));
        cr_assert(eq(ptr, (void *)link_of(&more[i]), (void *)healthy));
    }
    cr_assert(eq(int, fake_ask(&w, &more[2], a), POOL_READY)); /* none else can: not refused, not made to wait */
    cr_assert(eq(ptr, (void *)link_of(&more[2]), (void *)suspect));
    fake_world_end(&w);
}

Test(pool_heartbeat, an_idle_link_goes_before_a_suspect_one_in_use_or_not)
{
    for (int spread = 0; spread < 2; spread++)
        for (int in_use = 0; in_use < 2; in_use++) {
            struct fake_user users[4] = {0}, user = {0};
            suspect_first(users, spread);
            const struct link *healthy = link_of(&users[3]);
            fake_give_back(&users[3]);
            for (int i = in_use; i < 3; i++)
                fake_give_back(&users[i]); /* the suspect one is the latest used */
            cr_assert(eq(int, fake_ask(&w, &user, a), POOL_READY));
            cr_assert(eq(ptr, (void *)link_of(&user), (void *)healthy), "%d %d", spread, in_use);
            fake_world_end(&w);
        }
}

Test(pool_heartbeat, a_link_that_is_heard_of_again_goes_back_to_its_place)
{
    struct fake_user users[4] = {0}, user = {0};

    suspect_first(users, false);
    fake_give_back(&users[1]);
    fake_pinging_noise(&pinging, pinging.mute);
    fake_settle(&w);
    cr_assert(eq(int, fake_ask(&w, &user, a), POOL_READY));
    cr_assert(eq(ptr, (void *)link_of(&user), (void *)link_of(&users[0])));
    cr_assert(eq(u64, fake_stats(&w).heartbeat.transitions, 2));
    fake_world_end(&w);
}

Test(pool_heartbeat, where_links_are_spread_a_suspect_one_has_no_turn)
{
    struct fake_user users[4] = {0}, more[3] = {0};

    suspect_first(users, true);
    const struct link *suspect = link_of(&users[0]), *healthy = link_of(&users[3]);
    fake_give_back(&users[1]);
    fake_give_back(&users[2]);
    for (int i = 0; i < 2; i++) {
        cr_assert(eq(int, fake_ask(&w, &more[i], a), POOL_READY));
        cr_assert(eq(ptr, (void *)link_of(&more[i]), (void *)healthy), "%d", i);
    }
    cr_assert(eq(int, fake_ask(&w, &more[2], a), POOL_READY));
    cr_assert(eq(ptr, (void *)link_of(&more[2]), (void *)suspect));
    fake_world_end(&w);
}

Test(pool_heartbeat, where_links_are_spread_those_in_use_have_their_turns)
{
    struct fake_user users[9] = {0};

    begin(true, &heartbeat_none);
    w.host.max_links = w.host.min_links = 3;
    w.host.spread_links = true;
    open_world();
    pool_host(w.pool, a);
    fake_run(&w, 1);
    for (int i = 0; i < 9; i++) {
        cr_assert(eq(int, fake_ask(&w, &users[i], a), POOL_READY));
        if (i >= 3)
            cr_assert(eq(ptr, (void *)link_of(&users[i]), (void *)link_of(&users[i - 3])), "%d", i);
        else
            for (int j = 0; j < i; j++)
                cr_assert(ne(ptr, (void *)link_of(&users[i]), (void *)link_of(&users[j])));
    }
    fake_world_end(&w);
}

Test(pool_heartbeat, an_idle_shared_suspect_is_lent_when_none_else_can_serve)
{
    struct heartbeat_policy patient = every(15, 5, 9);
    struct fake_user user = {0};

    start(true, &patient);
    pinging.answer = FAKE_MUTE;
    run_to(21);
    cr_assert(eq(uint, fake_stats(&w).idle, 1));
    cr_assert(eq(int, fake_ask(&w, &user, a), POOL_READY));
    cr_assert(eq(uint, testing_peer_accepted(peer), 1));
    fake_world_end(&w);
}

/* Its answer may still come: whoever had it would take it for his. */
Test(pool_heartbeat, an_exclusive_suspect_is_not_lent_even_so)
{
    struct heartbeat_policy patient = every(15, 5, 9);
    struct fake_user user = {0};

    start(false, &patient);
    pinging.answer = FAKE_MUTE;
    run_to(21);
    cr_assert(eq(int, fake_ask(&w, &user, a), POOL_PENDING));
    fake_settle(&w);
    cr_assert(eq(int, user.status, POOL_READY));
    cr_assert(eq(uint, testing_peer_accepted(peer), 2));
    fake_world_end(&w);
}

Test(pool_heartbeat, suspicion_changes_no_idle_timeout)
{
    for (int shared = 0; shared < 2; shared++) {
        begin(shared, &heartbeat_default);
        w.host.idle_timeout = 22;
        open_idle();
        pinging.answer = FAKE_MUTE;
        run_to(21.9);
        PROBES(15, 20);
        cr_assert(eq(uint, fake_stats(&w).links, 1));
        run_to(22.001);
        cr_assert(eq(u64, ends(LINK_IDLE_TIMEOUT), 1));
        fake_world_end(&w);
    }
}

Test(pool_heartbeat, idle_links_keep_their_order_when_they_have_been_asked)
{
    struct fake_user users[5] = {0}, again[5] = {0};
    const struct link *links[5];

    begin(false, &heartbeat_default);
    open_world();
    for (int i = 0; i < 5; i++) {
        fake_hold(&w, &users[i], a);
        links[i] = link_of(&users[i]);
    }
    ready = testing_now(w.t);
    for (int i = 0; i < 5; i++) {
        run_to(i + 1);
        fake_give_back(&users[i]);
    }
    pinging.delay = 0.5;
    run_to(16);
    cr_assert(eq(uint, pinging.pongs, 5));
    for (int i = 4; i >= 0; i--) { /* the latest used first, as though nobody had asked */
        cr_assert(eq(int, fake_ask(&w, &again[i], a), POOL_READY));
        cr_assert(eq(ptr, (void *)link_of(&again[i]), (void *)links[i]), "%d", i);
    }
    fake_world_end(&w);
}

/* ---- lost ---- */

Test(pool_heartbeat, leases_of_a_lost_link_are_told_closed_with_the_reason)
{
    struct fake_user users[2] = {0};

    start(true, &heartbeat_default);
    for (int i = 0; i < 2; i++)
        fake_hold(&w, &users[i], a);
    cr_assert(eq(int, channel_send(users[0].lease.channel, "x", 1), 0));
    pinging.answer = FAKE_MUTE;
    testing_peer_cut(peer, LINK_TIMED_OUT);
    run_to(25.1);
    for (int i = 0; i < 2; i++) {
        cr_assert(eq(uint, users[i].closed, 1));
        cr_assert(epsilon_eq(dbl, users[i].told_at - ready, 25, 1e-5));
        cr_assert(eq(int, users[i].lease.reason, LINK_HEARTBEAT_LOST));
        cr_assert(eq(int, users[i].lease.status, LINKPOOL_ELOST));
    }
    fake_world_end(&w);
}

/* As any end that was not ours: a loss once it has proven itself, a failure before. */
Test(pool_heartbeat, a_lost_link_is_a_loss_or_before_it_was_stable_a_failure)
{
    struct heartbeat_policy brisk = every(1, 1, 1);

    start(true, &heartbeat_default);
    pinging.answer = FAKE_MUTE;
    run_to(25.001);
    struct pool_host_stats stats = fake_host_stats(host());
    cr_assert(eq(int, stats.last_reason, LINK_HEARTBEAT_LOST));
    cr_assert(eq(uint, stats.failures, 0));
    cr_assert(ne(int, stats.state, LINK_BACKOFF));
    fake_world_end(&w);

    start(true, &brisk);
    pinging.answer = FAKE_MUTE;
    run_to(2.001);
    stats = fake_host_stats(host());
    cr_assert(eq(int, stats.last_reason, LINK_HEARTBEAT_LOST));
    cr_assert(eq(uint, stats.failures, 1));
    cr_assert(eq(int, stats.state, LINK_BACKOFF));
    fake_world_end(&w);
}

Test(pool_heartbeat, who_waits_for_a_lost_link_has_the_next_one)
{
    struct fake_user user = {.lease.timeout = 60};

    begin(false, &heartbeat_default);
    w.host.max_links = 1;
    open_idle();
    pinging.answer = FAKE_MUTE;
    run_to(16);
    cr_assert(eq(int, fake_ask(&w, &user, a), POOL_PENDING));
    run_to(24.9);
    cr_assert(eq(int, user.status, POOL_PENDING));
    run_to(26);
    cr_assert(eq(int, user.status, POOL_READY));
    cr_assert(eq(uint, testing_peer_accepted(peer), 2));
    fake_world_end(&w);
}

static void free_pool(struct pool_lease *lease)
{
    struct fake_user *user = lease->data;

    user->closed++;
    pool_free(user->world->pool);
    user->world->pool = NULL;
}

Test(pool_heartbeat, closed_may_free_the_pool)
{
    struct fake_user users[2] = {0};

    start(true, &heartbeat_default);
    fake_hold(&w, &users[0], a);
    fake_hold(&w, &users[1], a);
    users[0].lease.closed = free_pool;
    pinging.answer = FAKE_MUTE;
    run_to(26);
    cr_assert(eq(ptr, w.pool, NULL));
    cr_assert(eq(uint, users[0].closed, 1));
    cr_assert(eq(uint, users[1].closed, 1));
    fake_world_end(&w);
}

/* ---- a ping that does not go ---- */

Test(pool_heartbeat, a_ping_that_says_no_is_one_that_is_not_answered)
{
    for (int shared = 0; shared < 2; shared++) {
        start(shared, &heartbeat_default);
        pinging.fails = true;
        run_to(25.001);
        PROBES(15, 20);
        cr_assert(eq(u64, ends(LINK_HEARTBEAT_LOST), 1));
        fake_world_end(&w);
    }
}

/* As above, on one that was asked at 10 in vain, and missed that answer at 15. */
Test(pool_heartbeat, a_ping_that_says_no_hides_no_later_round_trip)
{
    start(true, &heartbeat_adaptive);
    pinging.fails = true;
    run_to(12);
    pinging.fails = false;
    pinging.delay = 1.25;
    run_to(45);
    PROBES(10, 20, 39.25);
    fake_world_end(&w);
}

static int (*usual_ping)(struct protocol_link *pl);
static struct protocol_link *asked;
static bool answers_itself;

static int maybe_ping(struct protocol_link *pl)
{
    asked = pl;
    if (!answers_itself)
        return usual_ping(pl);
    protocol_pong(pl);
    return LINKPOOL_EAGAIN;
}

static void start_maybe_asking(bool shared, const struct heartbeat_policy *its_policy)
{
    begin(shared, its_policy);
    usual_ping = pinging.protocol.ping;
    pinging.protocol.ping = maybe_ping;
    answers_itself = false;
    open_idle();
}

Test(pool_heartbeat, a_ping_that_is_its_own_answer_and_says_no_hides_none_either)
{
    start_maybe_asking(true, &heartbeat_adaptive);
    answers_itself = true;
    run_to(12);
    answers_itself = false;
    pinging.delay = 1.25;
    run_to(70);
    PROBES(40, 59.25);
    fake_world_end(&w);
}

Test(pool_heartbeat, a_ping_may_end_its_link)
{
    for (int shared = 0; shared < 2; shared++) {
        struct fake_user user = {0};
        start(shared, &heartbeat_default);
        if (shared)
            fake_hold(&w, &user, a);
        pinging.ends = true;
        run_to(100);
        PROBES(15);
        cr_assert(eq(u64, ends(LINK_PROTOCOL_ERROR), 1));
        cr_assert(eq(uint, user.closed, shared));
        fake_world_end(&w);
    }
}

Test(pool_heartbeat, a_pings_write_may_find_the_connection_broken)
{
    for (int shared = 0; shared < 2; shared++) {
        struct fake_user user = {0};
        start(shared, &heartbeat_default);
        if (shared)
            fake_hold(&w, &user, a);
        testing_fail_call(w.t, TESTING_SENDMSG, 1, EPIPE, false);
        run_to(100);
        PROBES(15);
        cr_assert(eq(uint, fake_stats(&w).links, 0));
        cr_assert(eq(u64, ends(LINK_HEARTBEAT_LOST), 0));
        cr_assert(eq(uint, user.closed, shared));
        fake_world_end(&w);
    }
}

static int pong_in_end;

static void pong_at_the_end(struct protocol_link *pl)
{
    pong_in_end = protocol_pong(pl);
}

Test(pool_heartbeat, an_answer_told_as_its_link_ends_is_one_that_is_lost)
{
    for (int shared = 0; shared < 2; shared++) {
        begin(shared, &heartbeat_default);
        pinging.protocol.end = pong_at_the_end;
        open_idle();
        pinging.answer = FAKE_MUTE;
        run_to(16);
        pong_in_end = 0;
        testing_peer_cut(peer, LINK_RESET);
        fake_settle(&w);
        cr_assert(eq(int, pong_in_end, LINKPOOL_ELOST));
        run_to(100); /* no timer of it is left */
        cr_assert(eq(uint, pinging.probes, 1));
        fake_world_end(&w);
    }
}

Test(pool_heartbeat, an_answer_told_late_or_unasked_changes_nothing)
{
    cr_assert(eq(int, protocol_pong(NULL), LINKPOOL_ELOST));
    cr_assert(eq(int, protocol_ping_less(NULL), LINKPOOL_ELOST));
    start(true, &heartbeat_default);
    testing_conn_send(testing_peer_conn(peer, 0), "\0q", 2);
    run_to(14);
    cr_assert(eq(uint, pinging.pongs, 1));
    run_to(100);
    PROBES(15, 30, 45, 60, 75, 90);
    fake_world_end(&w);
}

/* ---- the one timer ---- */

Test(pool_heartbeat, age_and_recycling_come_in_their_time)
{
    begin(true, &heartbeat_default);
    w.host.max_age = 40;
    open_idle();
    run_to(35.9); /* it is drawn from 36 on */
    PROBES(15, 30);
    cr_assert(eq(uint, fake_stats(&w).links, 1));
    run_to(40.001);
    cr_assert(eq(u64, ends(LINK_TOO_OLD), 1));
    fake_world_end(&w);

    start(true, &heartbeat_default);
    run_to(1);
    cr_assert(eq(int, pool_host_recycle(host(), 0.05), 0)); /* at 21 */
    run_to(20.9);
    PROBES(15);
    cr_assert(eq(uint, fake_stats(&w).links, 1));
    run_to(21.1);
    cr_assert(eq(u64, ends(LINK_DRAINED), 1));
    fake_world_end(&w);
}

Test(pool_heartbeat, proof_comes_in_its_time)
{
    static const double intervals[] = {0.3, 15};

    for (int i = 0; i < 2; i++) {
        struct heartbeat_policy often = every(intervals[i], 5, 2);
        struct fake_user user = {0};
        begin(true, &often);
        open_world();
        testing_peer_behave(peer, TESTING_REFUSE);
        user.lease.flags = POOL_WAIT_FOR_READY;
        fake_ask(&w, &user, a);
        fake_run(&w, 0.01);
        testing_peer_behave(peer, TESTING_ACCEPT);
        while (user.status == POOL_PENDING)
            fake_run(&w, 0.001);
        ready = testing_now(w.t);
        run_to(9.9);
        cr_assert(ge(uint, fake_host_stats(host()).failures, 1));
        run_to(10.01);
        cr_assert(eq(uint, fake_host_stats(host()).failures, 0));
        fake_world_end(&w);
    }
}

/* ---- draining ---- */

static unsigned drained;

static void on_drained(struct pool *pool, void *data)
{
    (void)pool, (void)data;
    drained++;
}

Test(pool_heartbeat, a_drain_waits_for_the_answer_under_way_and_for_no_longer)
{
    for (int shared = 0; shared < 2; shared++)
        for (int mute = 0; mute < 2; mute++) {
            start(shared, &heartbeat_default);
            pinging.answer = mute ? FAKE_MUTE : FAKE_PONG;
            pinging.delay = 2;
            drained = 0;
            run_to(16);
            pool_drain(w.pool, 60, on_drained, NULL);
            run_to(mute ? 19.9 : 16.9);
            cr_assert(eq(uint, drained, 0));
            run_to(mute ? 20.1 : 17.1);
            cr_assert(eq(uint, drained, 1));
            cr_assert(eq(uint, pinging.probes, 1));
            cr_assert(eq(u64, ends(LINK_DRAINED), 1));
            fake_world_end(&w);
        }
}

/* Told from outside of what comes on the link's descriptor, as by a library that reads it. */
Test(pool_heartbeat, a_drain_ends_with_the_answer_whoever_tells_of_it)
{
    for (int shared = 0; shared < 2; shared++) {
        start_maybe_asking(shared, &heartbeat_default);
        pinging.answer = FAKE_MUTE;
        drained = 0;
        run_to(16);
        pool_drain(w.pool, 60, on_drained, NULL);
        fake_settle(&w);
        cr_assert(eq(uint, drained, 0));
        cr_assert(eq(int, protocol_pong(asked), LINKPOOL_ELOST));
        fake_settle(&w);
        cr_assert(eq(uint, drained, 1));
        cr_assert(eq(u64, ends(LINK_DRAINED), 1));
        fake_world_end(&w);
    }
}

Test(pool_heartbeat, a_drain_asks_nobody)
{
    struct fake_user user = {0};

    start(true, &heartbeat_default);
    fake_hold(&w, &user, a);
    drained = 0;
    run_to(5);
    pool_drain(w.pool, 60, on_drained, NULL);
    run_to(50);
    cr_assert(eq(uint, pinging.probes, 0));
    fake_give_back(&user);
    fake_settle(&w);
    cr_assert(eq(uint, drained, 1));
    fake_world_end(&w);
}

Test(pool_heartbeat, an_answer_awaited_lengthens_no_drain)
{
    start(true, &heartbeat_default);
    pinging.answer = FAKE_MUTE;
    drained = 0;
    run_to(16);
    pool_drain(w.pool, 1, on_drained, NULL);
    run_to(17.1);
    cr_assert(eq(uint, drained, 1));
    fake_world_end(&w);

    begin(true, &heartbeat_default);
    w.host.drain_timeout = 1; /* of links, which is shorter than the answer's time */
    open_idle();
    pinging.answer = FAKE_MUTE;
    run_to(16);
    cr_assert(eq(int, pool_host_drain(host(), 60), 0));
    run_to(17.1);
    cr_assert(eq(uint, fake_stats(&w).links, 0));
    fake_world_end(&w);
}

Test(pool_heartbeat, stopping_for_good_does_not_wait)
{
    start(true, &heartbeat_default);
    pinging.answer = FAKE_MUTE;
    run_to(16);
    pool_drain(w.pool, 0, NULL, NULL);
    fake_settle(&w);
    cr_assert(eq(uint, testing_peer_open(peer), 0));
    fake_world_end(&w);
}

/* ---- other options meanwhile ---- */

Test(pool_heartbeat, another_policy_holds_at_once)
{
    struct heartbeat_policy other = every(4, 1, 2);
    struct pool_host_options options;

    for (int recycled = 0; recycled < 2; recycled++) {
        start(true, &heartbeat_default);
        options = w.host;
        run_to(1);
        if (recycled)
            pool_host_recycle(host(), 0.001);
        options.heartbeat = &other;
        cr_assert(eq(int, pool_host_set_options(host(), &options), 0));
        run_to(9);
        PROBES(4, 8);
        options.heartbeat = &heartbeat_none;
        cr_assert(eq(int, pool_host_set_options(host(), &options), 0));
        run_to(40);
        PROBES(4, 8);
        options.heartbeat = &heartbeat_default;
        cr_assert(eq(int, pool_host_set_options(host(), &options), 0));
        fake_settle(&w);
        PROBES(4, 8, 40);
        fake_world_end(&w);
    }
}

Test(pool_heartbeat, a_policy_that_cannot_be_used_is_refused_by_name)
{
    struct heartbeat_policy wrong = every(15, 0, 2);
    struct pool_host_options options;
    char text[160];

    pool_host_options_init(&options);
    options.heartbeat = &wrong;
    cr_assert(eq(int, pool_host_options_check(&options, text, sizeof text), LINKPOOL_EINVAL));
    cr_assert(ne(ptr, strstr(text, "heartbeat: timeout is 0"), NULL), "%s", text);
    options.heartbeat = NULL;
    cr_assert(eq(int, pool_host_options_check(&options, text, sizeof text), LINKPOOL_EINVAL));
    cr_assert(eq(str, text, "heartbeat is NULL"));
    options.heartbeat = &heartbeat_none;
    options.read_timeout = -1;
    cr_assert(eq(int, pool_host_options_check(&options, text, sizeof text), LINKPOOL_EINVAL));
    cr_assert(ne(ptr, strstr(text, "read_timeout is -1"), NULL), "%s", text);
}

Test(pool_heartbeat, a_link_on_its_own_refuses_it_too)
{
    struct heartbeat_policy wrong = every(15, 5, 0);
    struct link_options options;
    char text[160];

    link_options_init(&options);
    options.heartbeat = &wrong;
    cr_assert(eq(int, link_options_check(&options, text, sizeof text), LINKPOOL_EINVAL));
    cr_assert(ne(ptr, strstr(text, "heartbeat: misses is 0"), NULL), "%s", text);
    options.heartbeat = NULL;
    cr_assert(eq(int, link_options_check(&options, text, sizeof text), LINKPOOL_EINVAL));
    options.heartbeat = &heartbeat_none;
    options.read_timeout = NAN;
    cr_assert(eq(int, link_options_check(&options, text, sizeof text), LINKPOOL_EINVAL));
    cr_assert(ne(ptr, strstr(text, "read_timeout is "), NULL), "%s", text);
}

/* ---- without a ping: a bound on silence ---- */

/* Whoever is called when something comes is waiting for it. */
static void reads(struct channel *channel)
{
    char bytes[8];

    channel_read(channel, bytes, sizeof bytes);
}

static void hold_and_read(struct fake_user *user)
{
    static const struct channel_events events = {.readable = reads};

    fake_hold(&w, user, a);
    cr_assert(eq(int, channel_watch(user->lease.channel, &events, LINKPOOL_READ), 0));
}

static void begin_raw(double read_timeout)
{
    fake_world_begin(&w);
    w.host.read_timeout = read_timeout;
    w.host.idle_timeout = 0;
    fake_world_open(&w);
    peer = fake_echo(&w, a);
}

Test(pool_heartbeat, a_holder_hears_of_a_peer_that_is_silent_for_too_long)
{
    struct fake_user user = {0};

    begin_raw(8);
    fake_hold(&w, &user, a);
    ready = testing_now(w.t);
    fake_give_back(&user);
    run_to(50); /* idle for as long as it likes */
    cr_assert(eq(uint, fake_stats(&w).links, 1));
    hold_and_read(&user);
    run_to(57.9); /* from when on it is held, not from when it was heard of last */
    cr_assert(eq(uint, user.closed, 0));
    fake_send(&user, "x");
    run_to(65.8);
    cr_assert(eq(uint, user.closed, 0));
    run_to(66);
    cr_assert(eq(uint, user.closed, 1));
    cr_assert(epsilon_eq(dbl, user.told_at - ready, 65.9, 1e-4));
    cr_assert(eq(int, user.lease.reason, LINK_HEARTBEAT_LOST));
    fake_world_end(&w);
}

Test(pool_heartbeat, holders_that_take_turns_each_have_the_whole_time)
{
    struct fake_user user = {0};

    begin_raw(8);
    fake_hold(&w, &user, a);
    ready = testing_now(w.t);
    for (int i = 1; i <= 10; i++) {
        run_to(7 * i);
        fake_give_back(&user);
        fake_hold(&w, &user, a);
    }
    run_to(77.9);
    cr_assert(eq(uint, user.closed, 0));
    run_to(78.001);
    cr_assert(eq(uint, user.closed, 1));
    fake_world_end(&w);
}

static void never_reads(struct channel *channel)
{
    channel_want(channel, 0);
}

Test(pool_heartbeat, a_peer_is_not_silent_while_its_holder_does_not_read)
{
    static const struct channel_events events = {.readable = never_reads};
    struct fake_user user = {0};
    char byte;

    begin_raw(8);
    fake_hold(&w, &user, a);
    ready = testing_now(w.t);
    channel_watch(user.lease.channel, &events, LINKPOOL_READ);
    run_to(1);
    fake_send(&user, "xx");
    run_to(40);
    cr_assert(eq(uint, user.closed, 0));
    cr_assert(eq(long, channel_read(user.lease.channel, &byte, 1), 1));
    fake_world_end(&w);
}

Test(pool_heartbeat, a_shared_links_silence_is_bounded_from_its_first_holder_on)
{
    struct fake_user users[2] = {0};

    begin(true, &heartbeat_none);
    w.host.read_timeout = 8;
    open_idle();
    run_to(20);
    fake_hold(&w, &users[0], a);
    run_to(25);
    fake_hold(&w, &users[1], a);
    run_to(27.9);
    cr_assert(eq(uint, users[0].closed, 0));
    run_to(28.001);
    cr_assert(eq(uint, users[0].closed, 1));
    cr_assert(eq(uint, users[1].closed, 1));
    fake_world_end(&w);
}

Test(pool_heartbeat, a_bound_set_later_holds_for_links_opened_from_then_on)
{
    struct fake_user user = {0};

    begin_raw(0);
    fake_hold(&w, &user, a);
    struct pool_host_options options = w.host;
    options.read_timeout = 8;
    cr_assert(eq(int, pool_host_set_options(host(), &options), 0));
    fake_run(&w, 100);
    cr_assert(eq(uint, user.closed, 0));
    pool_release(&user.lease, POOL_DISCARD);
    fake_hold(&w, &user, a);
    fake_run(&w, 8.001);
    cr_assert(eq(uint, user.closed, 1));
    fake_world_end(&w);
}

/* ---- a peer that complains ---- */

Test(pool_heartbeat, a_peer_that_complains_is_asked_half_as_often)
{
    for (int shared = 0; shared < 2; shared++) {
        start(shared, &heartbeat_default);
        pinging.answer = FAKE_COMPLAINS;
        run_to(44);
        PROBES(15);
        pinging.answer = FAKE_PONG;
        run_to(110);
        PROBES(15, 45, 75, 105);
        cr_assert(eq(u64, fake_stats(&w).heartbeat.misses, 0));
        fake_world_end(&w);
    }
}

Test(pool_heartbeat, complaints_about_the_same_round_of_probes_count_once)
{
    struct fake_user users[3] = {0};

    begin(false, &heartbeat_default);
    open_world();
    for (int i = 0; i < 3; i++)
        fake_hold(&w, &users[i], a);
    ready = testing_now(w.t);
    for (int i = 0; i < 3; i++)
        fake_give_back(&users[i]);
    pinging.answer = FAKE_COMPLAINS;
    run_to(44);
    cr_assert(eq(uint, pinging.probes, 3));
    run_to(46);
    cr_assert(eq(uint, pinging.probes, 6)); /* at 45: three complaints have doubled it once */
    run_to(104);
    cr_assert(eq(uint, pinging.probes, 6));
    run_to(106);
    cr_assert(eq(uint, pinging.probes, 9)); /* 60 s on */
    fake_world_end(&w);
}

Test(pool_heartbeat, a_complaint_holds_for_the_hosts_next_links_too)
{
    struct fake_user user = {0};

    start(true, &heartbeat_default);
    pinging.answer = FAKE_COMPLAINS;
    run_to(20);
    testing_peer_cut(peer, LINK_RESET);
    run_to(21);
    fake_hold(&w, &user, a);
    ready = testing_now(w.t);
    run_to(29.9);
    cr_assert(eq(uint, pinging.probes, 1));
    run_to(30.1);
    cr_assert(eq(uint, pinging.probes, 2));
    fake_world_end(&w);
}

/* Twice as long apart for each complaint; an hour to an hour and a quarter without one, and it is one step less. */
Test(pool_heartbeat, an_easing_fades_after_an_hour_without_complaint)
{
    start(true, &heartbeat_default);
    pinging.answer = FAKE_COMPLAINS;
    run_to(50); /* at 15 and 45: 60 s from now on */
    pinging.answer = FAKE_PONG;
    run_to(50 + 3600);
    cr_assert(epsilon_eq(dbl, pinging.at[pinging.probes - 1] - pinging.at[pinging.probes - 2], 60, 1e-3));
    run_to(50 + 4500 + 200);
    cr_assert(epsilon_eq(dbl, pinging.at[pinging.probes - 1] - pinging.at[pinging.probes - 2], 30, 1e-3));
    run_to(50 + 4500 + 3200);
    cr_assert(epsilon_eq(dbl, pinging.at[pinging.probes - 1] - pinging.at[pinging.probes - 2], 30, 1e-3));
    unsigned probes = pinging.probes;
    run_to(50 + 2 * 4500 + 300);
    cr_assert(lt(uint, probes, pinging.probes));
    double before = fake_stats(&w).heartbeat.probes;
    fake_run(&w, 150);
    cr_assert(eq(dbl, (double)fake_stats(&w).heartbeat.probes - before, 10)); /* 15 s apart */
    fake_world_end(&w);
}

Test(pool_heartbeat, a_complaint_begins_the_hour_anew)
{
    start(true, &heartbeat_default);
    pinging.answer = FAKE_COMPLAINS;
    run_to(500); /* as far as it goes: 960 s apart */
    for (int i = 0; i < 20; i++)
        run_to(500 + i * 960);
    cr_assert(epsilon_eq(dbl, pinging.at[pinging.probes - 1] - pinging.at[pinging.probes - 2], 960, 1e-3));
    fake_world_end(&w);
}

/* ---- figures ---- */

Test(pool_heartbeat, figures_tell_intervals_misses_and_transitions)
{
    start(true, &heartbeat_default);
    pinging.delay = 1;
    run_to(48);
    struct heartbeat_stats stats = fake_stats(&w).heartbeat; /* probes at 15, 31, 47 */
    cr_assert(eq(u64, stats.probes, 3));
    cr_assert(epsilon_eq(dbl, stats.mean, 15, 1e-4));
    cr_assert(epsilon_eq(dbl, stats.shortest, 15, 1e-4));
    cr_assert(epsilon_eq(dbl, stats.longest, 15, 1e-4));
    cr_assert(epsilon_eq(dbl, stats.p99, 15, 1e-4));
    cr_assert(eq(u64, stats.misses, 0));
    cr_assert(eq(u64, stats.transitions, 0));
    pinging.answer = FAKE_MUTE;
    run_to(69); /* asked at 63, missed at 68, asked again */
    stats = fake_stats(&w).heartbeat;
    cr_assert(eq(u64, stats.probes, 5));
    cr_assert(epsilon_eq(dbl, stats.shortest, 5, 1e-4));
    cr_assert(epsilon_eq(dbl, stats.mean, 13, 1e-4));
    cr_assert(eq(u64, stats.misses, 1));
    cr_assert(eq(u64, stats.transitions, 1));
    fake_pinging_noise(&pinging, testing_peer_conn(peer, 0));
    run_to(70);
    cr_assert(eq(u64, fake_stats(&w).heartbeat.transitions, 2));
    fake_world_end(&w);
}

Test(pool_heartbeat, figures_are_0_before_the_first_probe)
{
    start(true, &heartbeat_default);
    struct heartbeat_stats stats = fake_stats(&w).heartbeat, none;
    memset(&none, 0, sizeof none);
    cr_assert(eq(int, memcmp(&stats, &none, sizeof stats), 0));
    fake_world_end(&w);
}

/* 1 of 100 intervals, or fewer, may be longer than what is told. */
Test(pool_heartbeat, p99_is_what_all_but_one_of_a_hundred_were_below)
{
    struct heartbeat_policy often = every(1, 0.5, 2), long_time = every(300, 0.5, 2);
    struct pool_host_options options;

    start(true, &often);
    options = w.host;
    run_to(99.5);
    cr_assert(eq(u64, fake_stats(&w).heartbeat.probes, 99));
    options.heartbeat = &long_time;
    pool_host_set_options(host(), &options);
    run_to(400);
    cr_assert(eq(u64, fake_stats(&w).heartbeat.probes, 100));
    cr_assert(le(dbl, fake_stats(&w).heartbeat.p99, 2));
    cr_assert(epsilon_eq(dbl, fake_stats(&w).heartbeat.longest, 300, 1e-4));
    run_to(700);
    cr_assert(epsilon_eq(dbl, fake_stats(&w).heartbeat.p99, 300, 1e-4)); /* 2 of 101, and beyond the histogram */
    fake_world_end(&w);
}

Test(pool_heartbeat, misses_a_minute_are_of_the_last_one_to_two_minutes)
{
    struct heartbeat_policy brisk = every(4, 1, 1000); /* mute: a miss at 5, 6, 7, ... one a second */

    start(true, &brisk);
    pinging.answer = FAKE_MUTE;
    fake_run(&w, 1020 + 180 - testing_now(w.t) - 0.5); /* the clock began at 1000: a minute ends at 1020 */
    cr_assert(epsilon_eq(dbl, fake_stats(&w).heartbeat.misses_a_minute, 60, 1));
    fake_run(&w, 1);
    cr_assert(epsilon_eq(dbl, fake_stats(&w).heartbeat.misses_a_minute, 60, 1));
    pinging.answer = FAKE_PONG;
    fake_run(&w, 30);
    double half = fake_stats(&w).heartbeat.misses_a_minute;
    cr_assert(epsilon_eq(dbl, half, 61 / 1.5, 2));
    fake_run(&w, 60);
    cr_assert(lt(dbl, fake_stats(&w).heartbeat.misses_a_minute, 2));
    fake_run(&w, 60);
    cr_assert(eq(dbl, fake_stats(&w).heartbeat.misses_a_minute, 0));
    fake_world_end(&w);
}

static unsigned many_told, many_due;

static void on_many_probes(void *data, unsigned due)
{
    cr_assert(eq(ptr, data, (void *)&many_told));
    many_told++;
    many_due = due;
}

static void open_many(unsigned n, double over)
{
    struct fake_user *users = calloc(n, sizeof *users);

    open_world();
    for (unsigned i = 0; i < n; i++) {
        fake_ask(&w, &users[i], a);
        if (over > 0)
            fake_run(&w, over / n);
    }
    fake_run(&w, 1);
    for (unsigned i = 0; i < n; i++) {
        cr_assert(eq(int, users[i].status, POOL_READY));
        fake_give_back(&users[i]);
    }
    free(users);
}

static void begin_many(unsigned n)
{
    static const struct pool_observer observer = {
        .size = sizeof observer, .many_probes = on_many_probes, .data = &many_told};

    begin(false, &heartbeat_default);
    w.options.max_links = w.host.max_links = n;
    w.options.max_connecting = w.host.first_connecting = w.host.max_connecting = n;
    w.options.max_line = n;
    many_told = 0;
    w.options.observer = &observer;
}

Test(pool_heartbeat, a_hundred_probes_in_one_turn_are_told_once)
{
    static const unsigned links[] = {99, 100, 150};

    for (int i = 0; i < 3; i++) {
        begin_many(links[i]);
        open_many(links[i], 0);
        fake_run(&w, 16);
        struct heartbeat_stats stats = fake_stats(&w).heartbeat;
        cr_assert(eq(u64, stats.probes, links[i]));
        cr_assert(eq(uint, stats.due_at_once, links[i]));
        cr_assert(eq(uint, stats.most_due, links[i]));
        cr_assert(eq(uint, many_told, links[i] >= 100));
        cr_assert(eq(uint, many_due, many_told ? 100 : 0));
        fake_world_end(&w);
    }
}

Test(pool_heartbeat, a_hundred_probes_in_one_turn_need_nobody_who_listens)
{
    begin_many(100);
    w.options.observer = NULL;
    open_many(100, 0);
    fake_run(&w, 16);
    cr_assert(eq(uint, fake_stats(&w).heartbeat.most_due, 100));
    cr_assert(eq(uint, many_told, 0));
    fake_world_end(&w);
}

Test(pool_heartbeat, ten_thousand_links_opened_over_time_are_asked_over_time)
{
    begin_many(10000);
    open_many(10000, 10);
    fake_run(&w, 60);
    struct heartbeat_stats stats = fake_stats(&w).heartbeat;
    cr_assert(ge(u64, stats.probes, 40000));
    cr_assert(le(uint, stats.most_due, 10));
    cr_assert(eq(u64, stats.misses, 0));
    cr_assert(eq(uint, many_told, 0));
    cr_assert(eq(uint, fake_stats(&w).idle, 10000));
    fake_world_end(&w);
}

static unsigned free_channels(void)
{
    struct link_stats stats;

    link_stats(pool_host_next_link(host(), NULL), &stats, sizeof stats);
    return stats.free;
}

Test(pool_heartbeat, while_a_link_is_not_lent_none_of_its_channels_is_free)
{
    for (int shared = 0; shared < 2; shared++) {
        start(shared, &heartbeat_default);
        pinging.delay = 2;
        run_to(16); /* a shared one is lent while it is asked */
        cr_assert(eq(uint, free_channels(), shared ? 3 : 0));
        run_to(18);
        cr_assert(eq(uint, free_channels(), shared ? 3 : 1));
        pool_network_changed(w.pool); /* but not in doubt */
        cr_assert(eq(uint, free_channels(), 0));
        fake_run(&w, 2.1);
        cr_assert(eq(uint, free_channels(), shared ? 3 : 1));
        fake_world_end(&w);
    }
}

Test(pool_heartbeat, of_a_suspect_link_it_is_not_said_that_its_peer_takes_nobody)
{
    for (int shared = 0; shared < 2; shared++) {
        char text[400];
        start(shared, &heartbeat_default);
        pinging.answer = FAKE_MUTE;
        run_to(21);
        pool_host_explain(host(), text, sizeof text);
        cr_assert(eq(ptr, strstr(text, "room 0"), NULL), "%s", text);
        fake_world_end(&w);
    }
}

/* ---- memory ---- */

static void live(void)
{
    struct fake_user users[5] = {0};

    w.pool = pool_new_on(testing_driver(w.t), &w.options);
    if (!w.pool)
        return;
    for (int i = 0; i < 5; i++)
        fake_ask(&w, &users[i], a);
    fake_run(&w, 20);
    for (int i = 0; i < 5; i++)
        if (users[i].lease.channel)
            fake_give_back(&users[i]);
    pinging.answer = FAKE_MUTE;
    fake_run(&w, 40);
    pinging.answer = FAKE_PONG;
    users[0].lease.flags = POOL_WAIT_FOR_READY;
    fake_ask(&w, &users[0], a);
    fake_run(&w, 40);
    cr_assert(ne(int, users[0].lease.status, POOL_PENDING));
    if (users[0].lease.channel)
        fake_give_back(&users[0]);
}

Test(pool_heartbeat, every_allocation_may_fail)
{
    for (int shared = 0; shared < 2; shared++)
        for (unsigned nth = 1;; nth++) {
            begin(shared, &heartbeat_default);
            peer = fake_peer(&w, a, TESTING_ACCEPT);
            fake_pinging_serve(&pinging, peer);
            testing_fail_allocation(w.t, nth, false);
            uint64_t before = testing_allocations(w.t);
            live();
            bool met = testing_allocations(w.t) - before >= nth;
            fake_world_end(&w);
            if (!met)
                break;
            cr_assert(lt(uint, nth, 500));
        }
}

/* ---- at random ---- */

static unsigned draw(unsigned n)
{
    return (unsigned)(testing_random(w.t) % n);
}

/* What a holder reads is what it sent, and never what was meant for the protocol. */
static void read_all(struct fake_user *user)
{
    char bytes[8];
    ssize_t n;

    while ((n = channel_read(user->lease.channel, bytes, sizeof bytes)) > 0)
        for (ssize_t i = 0; i < n; i++)
            cr_assert(eq(chr, bytes[i], 'x'));
}

static void use(struct fake_user *user, bool shared)
{
    static const char *const addresses[] = {"10.0.0.1:80", "10.0.0.2:80"};

    if (user->lease.channel && draw(3)) {
        if (shared)
            channel_send(user->lease.channel, "x", 1);
        else if (draw(2))
            channel_writev(user->lease.channel, &(struct iovec){(void *)"x", 1}, 1);
        else
            read_all(user);
    } else if (user->lease.channel) {
        pool_release(&user->lease, draw(4) ? POOL_REUSE : POOL_DISCARD);
    } else if (user->lease.status == POOL_PENDING) {
        if (!draw(3))
            pool_cancel(&user->lease);
    } else {
        user->lease.flags = draw(3) ? 0 : POOL_WAIT_FOR_READY;
        fake_ask(&w, user, addresses[draw(2)]);
    }
}

static void disturb(struct testing_peer *it, bool shared)
{
    static const enum link_reason ways[] = {LINK_RESET, LINK_CLOSED_BY_PEER, LINK_TIMED_OUT};
    struct pool_host *its_host = fake_host(&w, testing_peer_address(it));
    struct testing_conn *conn = testing_peer_conn(it, draw(4));
    struct pool_host_options options = w.host;
    struct heartbeat_policy other = every(1 + draw(20), 0.5 + draw(6), 1 + draw(3));

    switch (draw(11)) {
    case 9:
        pool_network_changed(w.pool);
        break;
    case 10:
        testing_suspend(w.t, 1 + draw(1000));
        break;
    case 0:
        pinging.answer = (enum fake_answer)draw(4);
        break;
    case 1:
        pinging.delay = draw(80) / 10.0;
        break;
    case 2:
        if (conn)
            testing_conn_cut(conn, ways[draw(3)]);
        break;
    case 3:
        pinging.mute = draw(2) ? conn : NULL;
        break;
    case 4:
        if (conn && shared)
            fake_pinging_noise(&pinging, conn);
        break;
    case 5:
        if (its_host)
            pool_host_recycle(its_host, draw(2));
        break;
    case 6:
        other.watch_interval = draw(4);
        options.heartbeat = &other;
        options.spread_links = draw(2);
        options.read_timeout = draw(3) ? 0 : 1 + draw(30);
        options.idle_timeout = draw(2) ? 0 : 1 + draw(60);
        if (its_host)
            cr_assert(eq(int, pool_host_set_options(its_host, &options), 0));
        break;
    case 7:
        if (its_host)
            pool_host_drain(its_host, draw(10));
        break;
    default:
        if (its_host)
            pool_host_start(its_host);
        break;
    }
}

static void play(uint64_t seed, bool shared)
{
    struct fake_user users[12] = {0};

    fake_world_begin_with(&w, seed);
    fake_pinging_init(&pinging, w.t, shared);
    policy = every(1 + draw(15), 1 + draw(5), 1 + draw(3));
    w.host.protocol = &pinging.protocol;
    w.host.heartbeat = &policy;
    w.host.max_links = 1 + draw(6);
    w.host.min_links = draw(w.host.max_links + 1);
    w.host.max_uses = draw(3) ? 0 : 1 + draw(5);
    w.host.drain_timeout = 1 + draw(10);
    w.options.max_links = 2 + draw(8);
    open_world();
    struct testing_peer *peers[] = {peer, fake_peer(&w, "10.0.0.2:80", TESTING_ACCEPT)};
    fake_pinging_serve(&pinging, peers[1]);
    testing_early_alarms(w.t, draw(2));
    testing_shuffle(w.t, draw(2));
    for (int i = 0; i < 400; i++) {
        if (draw(4))
            use(&users[draw(12)], shared);
        else
            disturb(peers[draw(2)], shared);
        if (!draw(3))
            fake_run(&w, draw(2) ? draw(100) / 1000.0 : draw(100) / 10.0);
    }
    pool_free(w.pool);
    w.pool = NULL;
    fake_world_end(&w);
}

Test(pool_heartbeat, whatever_happens_no_holder_reads_an_answer)
{
    for (uint64_t seed = 1; seed <= 150; seed++) {
        play(seed, false);
        play(seed, true);
    }
}

/* ---- links that are only waiting for their holders ---- */

static void recycle(struct framed_stage *stage)
{
    cr_assert(eq(int, pool_host_recycle(fake_host(&stage->world, framed_address), 0), 0));
}

static void drain_host(struct framed_stage *stage)
{
    cr_assert(eq(int, pool_host_drain(fake_host(&stage->world, framed_address), INFINITY), 0));
}

static void drain_pool(struct framed_stage *stage)
{
    cr_assert(eq(int, pool_drain(stage->world.pool, INFINITY, NULL, NULL), 0));
}

static void drain_longer(struct framed_stage *stage)
{
    cr_assert(eq(int, pool_host_drain(fake_host(&stage->world, framed_address), 1000), 0));
    fake_run(&stage->world, 1);
    drain_host(stage);
}

static void remove_target(struct framed_stage *stage)
{
    pool_target_remove(fake_target(&stage->world, "gone", &pool_round_robin, (const char *const[]){framed_address}, 1));
}

Test(pool_heartbeat, a_held_link_that_goes_without_an_end_is_asked_until_then)
{
    static void (*const ways[])(struct framed_stage *) = {recycle, drain_host, drain_pool, drain_longer, remove_target};

    for (unsigned i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct framed_caller caller = {0};
        struct framed_stage stage;
        framed_stage_begin(&stage);
        stage.server.holds = true;
        framed_stage_open(&stage);
        cr_assert(eq(int, framed_call(&stage, &caller, "x"), 0));
        fake_settle(&stage.world);
        ways[i](&stage);
        testing_peer_cut(stage.server.peer, LINK_TIMED_OUT);
        fake_run(&stage.world, 30);
        cr_assert(eq(uint, caller.user.closed, 1), "way %u", i);
        cr_assert(eq(int, caller.user.lease.reason, LINK_HEARTBEAT_LOST));
        framed_stage_end(&stage);
    }
}
