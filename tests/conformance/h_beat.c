/* h_beat.c - REFERENCE's H and S15, and what S19 says of silence: the heartbeat, as a link on its own and a pool show
 * it. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>

#include "tests/fakes/owner.h"
#include "tests/fakes/pinging.h"
#include "tests/fakes/world.h"

static struct fake_pinging pinging;
static double ready; /* when the link was READY */

/* ---- a link on its own ---- */

static struct fake_owner owner;

static void start(const struct heartbeat_policy *policy)
{
    fake_owner_begin(&owner, TESTING_ACCEPT);
    fake_pinging_init(&pinging, owner.t, true);
    fake_pinging_serve(&pinging, owner.peer);
    owner.options.protocol = &pinging.protocol;
    owner.options.heartbeat = policy;
    fake_owner_start(&owner);
    fake_owner_until(&owner, LINK_READY, 1);
    ready = testing_now(owner.t);
}

static void run_to(double since_ready)
{
    fake_owner_run(&owner, ready + since_ready - testing_now(owner.t));
}

static void expect_probes(const double *at, unsigned n)
{
    cr_assert(eq(uint, pinging.probes, n));
    for (unsigned i = 0; i < n; i++)
        cr_assert(epsilon_eq(dbl, pinging.at[i] - ready, at[i], 1e-5), "probe %u", i);
}

#define PROBES(...) expect_probes((const double[]){__VA_ARGS__}, sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

static void expect_lost_at(double since_ready)
{
    run_to(since_ready - 0.001);
    cr_assert(eq(uint, fake_owner_count(&owner, "disconnected"), 0));
    run_to(since_ready + 0.001);
    const struct fake_told *told = fake_owner_told(&owner, "disconnected", 0);
    cr_assert(ne(ptr, (void *)told, NULL));
    cr_assert(eq(int, told->reason, LINK_HEARTBEAT_LOST));
    cr_assert(eq(int, link_state(owner.link), LINK_BACKOFF));
}

Test(conformance, H1_a_link_is_healthy_then_watched_then_reconnects)
{
    start(&heartbeat_adaptive);
    pinging.answer = FAKE_MUTE;
    run_to(16); /* healthy: asked after 10 s; not answered within 5 s: watched */
    PROBES(10);
    pinging.answer = FAKE_PONG;
    run_to(49); /* asked after 5 s, and healthy again */
    PROBES(10, 20);
    pinging.answer = FAKE_MUTE;
    expect_lost_at(85);
    PROBES(10, 20, 50, 60, 70, 80);
    fake_owner_run(&owner, 3);
    cr_assert(eq(int, link_state(owner.link), LINK_READY));
    fake_owner_end(&owner);
}

static double healthy(double base, double round_trip, unsigned streak)
{
    struct heartbeat_policy policy = heartbeat_adaptive;

    policy.interval = base;
    return heartbeat_interval(
        &policy, &(struct heartbeat_history){.probes = 1, .round_trip = round_trip, .streak = streak});
}

Test(conformance, H2_a_long_round_trip_makes_the_interval_shorter_a_streak_longer_within_bounds)
{
    cr_assert(eq(dbl, healthy(30, 0.1999, 19), 30));
    cr_assert(eq(dbl, healthy(30, 0.2, 20), 30));
    cr_assert(eq(dbl, healthy(30, 9, 0), 15));
    cr_assert(eq(dbl, healthy(30, 0, 900), 50));
    cr_assert(eq(dbl, healthy(20, 9, 0), 10));
    cr_assert(eq(dbl, healthy(75, 0, 900), 90));

    start(&heartbeat_adaptive);
    pinging.delay = 0.25;
    run_to(10 + 12 * 30);
    double before = pinging.at[0];
    cr_assert(epsilon_eq(dbl, before - ready, 10, 1e-5));
    for (unsigned i = 1; i < pinging.probes; i++) { /* 2 s less for the round trip; 1 s more from the tenth answer on */
        cr_assert(epsilon_eq(dbl, pinging.at[i] - before, 0.25 + 30 - 2 + (i >= 10), 1e-5), "probe %u", i);
        before = pinging.at[i];
    }
    cr_assert(lt(uint, 11, pinging.probes));
    fake_owner_end(&owner);
}

Test(conformance, H3_one_missed_answer_makes_the_interval_5_s)
{
    start(&heartbeat_adaptive);
    pinging.answer = FAKE_MUTE;
    run_to(31);
    PROBES(10, 20, 30); /* each missed after 5 s, and asked anew 5 s after that */
    fake_owner_end(&owner);
}

Test(conformance, H4_three_misses_more_reconnect_and_one_answer_is_enough_to_be_healthy)
{
    struct heartbeat_policy longest = heartbeat_adaptive;

    start(&heartbeat_adaptive);
    pinging.answer = FAKE_MUTE;
    run_to(36); /* three are missed: it is alive for one more */
    cr_assert(eq(int, link_state(owner.link), LINK_READY));
    pinging.answer = FAKE_PONG;
    run_to(69);
    PROBES(10, 20, 30, 40);
    pinging.answer = FAKE_MUTE;
    run_to(71);
    PROBES(10, 20, 30, 40, 70);
    testing_peer_behave(owner.peer, TESTING_REFUSE);
    expect_lost_at(105);
    run_to(300);
    cr_assert(eq(uint, pinging.probes, 8)); /* none while it reconnects */
    fake_owner_end(&owner);

    longest.interval = 500;
    start(&longest);
    run_to(11);
    double answered = pinging.at[0] - ready;
    testing_peer_cut(owner.peer, LINK_TIMED_OUT);
    expect_lost_at(answered + 90 + 4 * 5 + 3 * 5);
    fake_owner_end(&owner);
}

Test(conformance, H5_an_answer_is_awaited_5_s_and_nothing_else_counts)
{
    static const double delays[] = {4.99, 5.01};

    for (int late = 0; late < 2; late++) {
        struct heartbeat_policy once = heartbeat_adaptive;
        once.misses = 1;
        start(&once);
        pinging.delay = delays[late];
        run_to(14.9);
        cr_assert(eq(uint, pinging.received, 1)); /* it has arrived: that is no answer */
        run_to(15.1);
        cr_assert(eq(uint, fake_owner_count(&owner, "disconnected"), late));
        fake_owner_end(&owner);
    }
}

Test(conformance, H6_after_a_reconnect_the_interval_climbs_from_the_lowest)
{
    start(&heartbeat_adaptive);
    run_to(10 + 12 * 30);
    cr_assert(lt(dbl, 30.9, pinging.at[pinging.probes - 1] - pinging.at[pinging.probes - 2]));
    testing_peer_cut(owner.peer, LINK_RESET);
    fake_owner_settle(&owner);
    fake_owner_until(&owner, LINK_READY, 5);
    ready = testing_now(owner.t);
    pinging.probes = 0;
    run_to(75);
    PROBES(10, 40, 70);
    fake_owner_end(&owner);
}

Test(conformance, H7_a_link_has_one_probe_and_one_timer_at_most)
{
    for (int early = 0; early < 2; early++) {
        struct heartbeat_policy often = heartbeat_adaptive;
        often.min = often.interval = 1;
        start(&often);
        testing_early_alarms(owner.t, early);
        pinging.delay = 4.9;
        for (int i = 0; i < 500; i++) {
            fake_owner_run(&owner, 1);
            if (i % 50 == 0)
                channel_send(owner.channel, "x", 1); /* traffic of its own brings no second probe either */
        }
        cr_assert(eq(uint, pinging.most_out, 1));
        cr_assert(lt(uint, 70, pinging.probes));
        for (unsigned i = 1; i < pinging.probes && i < FAKE_PROBES; i++)
            cr_assert(ge(dbl, pinging.at[i] - pinging.at[i - 1], 1 - 1e-6));
        fake_owner_end(&owner);
    }
}

/* ---- a pool ---- */

static struct fake_world world;
static unsigned drained;

static void on_drained(struct pool *pool, void *data)
{
    (void)pool, (void)data;
    drained++;
}

static void open_world(const struct heartbeat_policy *policy, unsigned links, const struct pool_observer *observer)
{
    fake_world_begin(&world);
    fake_pinging_init(&pinging, world.t, true);
    pinging.protocol.max_channels = 1;
    world.host.protocol = &pinging.protocol;
    world.host.heartbeat = policy;
    world.host.idle_timeout = 0;
    world.host.min_links = world.host.max_links = links;
    world.host.first_connecting = world.host.max_connecting = links;
    world.options.observer = observer;
    fake_world_open(&world);
    fake_pinging_serve(&pinging, fake_peer(&world, FAKE_ADDRESS, TESTING_ACCEPT));
    pool_host(world.pool, FAKE_ADDRESS);
    fake_run(&world, 0.5);
    cr_assert(eq(uint, fake_stats(&world).links, links));
}

/* Asked at 10 s; drained at 11 s. */
static void drain(enum fake_answer answer, double delay, double over_at)
{
    open_world(&heartbeat_adaptive, 1, NULL);
    pinging.answer = answer;
    pinging.delay = delay;
    drained = 0;
    fake_run(&world, 10.5);
    cr_assert(eq(uint, pinging.probes, 1));
    pool_drain(world.pool, 60, on_drained, NULL);
    fake_run(&world, over_at - 11 - 0.6);
    cr_assert(eq(uint, drained, 0));
    fake_run(&world, 0.7);
    cr_assert(eq(uint, drained, 1));
    cr_assert(eq(uint, pinging.probes, 1));
    fake_world_end(&world);
}

Test(conformance, H9_a_drain_sends_no_probe_and_waits_for_the_one_under_way_and_no_longer)
{
    struct fake_user user = {0};

    drain(FAKE_PONG, 3, 13);
    drain(FAKE_MUTE, 0, 15);

    open_world(&heartbeat_adaptive, 1, NULL); /* one that is held goes on, and is not asked */
    fake_hold(&world, &user, FAKE_ADDRESS);
    fake_run(&world, 1);
    pool_drain(world.pool, 60, on_drained, NULL);
    fake_run(&world, 50);
    cr_assert(eq(uint, pinging.probes, 0));
    fake_world_end(&world);

    start(&heartbeat_adaptive); /* a stop waits for nothing, nor does the end of a pool */
    pinging.answer = FAKE_MUTE;
    run_to(11);
    link_stop(owner.link);
    fake_owner_settle(&owner);
    cr_assert(eq(uint, testing_peer_open(owner.peer), 0));
    fake_owner_end(&owner);
    open_world(&heartbeat_adaptive, 1, NULL);
    pinging.answer = FAKE_MUTE;
    fake_run(&world, 10.5);
    fake_world_end(&world);
}

static unsigned times_told, due_told;

static void on_many_probes(void *data, unsigned due)
{
    (void)data;
    times_told++;
    due_told = due;
}

Test(conformance, H10_figures_of_intervals_misses_transitions_and_probes_at_once)
{
    static const struct pool_observer observer = {.size = sizeof observer, .many_probes = on_many_probes};

    struct heartbeat_policy exact = heartbeat_default;

    exact.jitter = 0; /* else they are not due at once, which is what it is for */
    open_world(&exact, 120, &observer);
    fake_run(&world, 19);
    struct heartbeat_stats stats = fake_stats(&world).heartbeat;
    cr_assert(eq(u64, stats.probes, 120));
    cr_assert(epsilon_eq(dbl, stats.mean, 15, 1e-3));
    cr_assert(epsilon_eq(dbl, stats.shortest, 15, 1e-3));
    cr_assert(epsilon_eq(dbl, stats.longest, 15, 1e-3));
    cr_assert(epsilon_eq(dbl, stats.p99, 15, 1e-3));
    cr_assert(eq(uint, stats.due_at_once, 120));
    cr_assert(eq(uint, stats.most_due, 120));
    cr_assert(eq(uint, times_told, 1));
    cr_assert(eq(uint, due_told, 100));
    pinging.answer = FAKE_MUTE;
    fake_run(&world, 16.5); /* asked at 30, missed at 35 */
    stats = fake_stats(&world).heartbeat;
    cr_assert(eq(u64, stats.misses, 120));
    cr_assert(eq(u64, stats.transitions, 120));
    cr_assert(epsilon_eq(dbl, stats.misses_a_minute, 120 / (1 + fmod(testing_now(world.t), 60) / 60), 1e-6));
    cr_assert(lt(dbl, stats.shortest, 6));
    fake_world_end(&world);
}

/* ---- S ---- */

Test(conformance, S15_a_peer_that_is_gone_without_a_word_is_found_in_three_silent_periods)
{
    struct heartbeat_policy settable = heartbeat_edge;

    start(&heartbeat_edge);
    testing_peer_cut(owner.peer, LINK_TIMED_OUT);
    expect_lost_at(45);
    fake_owner_end(&owner);

    settable.interval = settable.timeout = 2;
    settable.misses = 4;
    start(&settable);
    testing_peer_cut(owner.peer, LINK_TIMED_OUT);
    expect_lost_at(10);
    fake_owner_end(&owner);
}

Test(conformance, S15_any_data_is_life_and_a_protocol_without_pong_has_no_other)
{
    start(&heartbeat_edge);
    pinging.answer = FAKE_NOISE; /* nothing that it would call an answer */
    run_to(500);
    cr_assert(lt(uint, 30, pinging.probes));
    cr_assert(eq(uint, pinging.pongs, 0));
    cr_assert(eq(uint, fake_owner_count(&owner, "disconnected"), 0));
    pinging.probes = 0;
    for (int i = 0; i < 40; i++) { /* unasked: no probe is needed */
        fake_pinging_noise(&pinging, testing_peer_conn(owner.peer, 0));
        fake_owner_run(&owner, 14);
    }
    cr_assert(le(uint, pinging.probes, 1));
    fake_owner_end(&owner);
}

Test(conformance, S19_silence_is_met_without_an_unexpected_event_or_a_shrinking_wait)
{
    fake_owner_begin(&owner, TESTING_ACCEPT);
    fake_owner_gaps(&owner, 0.5, 2, 8);
    fake_pinging_init(&pinging, owner.t, true);
    fake_pinging_serve(&pinging, owner.peer);
    owner.options.protocol = &pinging.protocol;
    owner.options.heartbeat = &heartbeat_edge;
    fake_owner_start(&owner);
    fake_owner_until(&owner, LINK_READY, 1);
    ready = testing_now(owner.t);
    testing_peer_cut(owner.peer, LINK_TIMED_OUT);
    testing_peer_behave(owner.peer, TESTING_BLACK_HOLE);
    expect_lost_at(45);
    fake_owner_run(&owner, 100);
    cr_assert(lt(uint, 8, testing_peer_attempts(owner.peer)));
    for (unsigned i = 1; i + 2 < testing_peer_attempts(owner.peer); i++)
        cr_assert(ge(dbl, fake_gap(owner.peer, i + 1), fake_gap(owner.peer, i) - 1e-9));
    testing_peer_behave(owner.peer, TESTING_ACCEPT);
    fake_owner_run(&owner, 40);
    cr_assert(eq(int, link_state(owner.link), LINK_READY));
    cr_assert(eq(u64, fake_link_stats(owner.link).ignored_events, 0));
    cr_assert(eq(u64, fake_link_stats(owner.link).stale_events, 0));
    cr_assert(eq(uint, testing_open_descriptors(owner.t), 1));
    fake_owner_end(&owner);
}

static void stop_now(void)
{
    link_stop(owner.link);
    unsigned probes = pinging.probes, attempts = testing_peer_attempts(owner.peer);
    fake_owner_run(&owner, 500);
    cr_assert(eq(int, link_state(owner.link), LINK_IDLE));
    cr_assert(eq(uint, pinging.probes, probes));
    cr_assert(eq(uint, testing_peer_attempts(owner.peer), attempts));
    cr_assert(eq(uint, testing_open_descriptors(owner.t), 0));
    cr_assert(eq(u64, fake_link_stats(owner.link).ignored_events, 0));
    cr_assert(eq(u64, fake_link_stats(owner.link).stale_events, 0));
    cr_assert(eq(uint, fake_owner_count(&owner, "stopped"), 1));
    fake_owner_end(&owner);
}

static int is_leaving(struct protocol_link *pl)
{
    return protocol_going(pl, NULL, LINK_NO_REASON, NULL);
}

/* The states of s_conduct.c's S19 are those of a link without a heartbeat. */
Test(conformance, S19_a_stop_while_a_probe_is_out_or_missed_or_the_peer_leaves_leaves_nothing)
{
    start(&heartbeat_edge);
    pinging.answer = FAKE_MUTE;
    run_to(16); /* asked */
    PROBES(15);
    stop_now();

    start(&heartbeat_edge);
    pinging.answer = FAKE_MUTE;
    run_to(31); /* missed once, and asked again */
    PROBES(15, 30);
    stop_now();

    start(&heartbeat_edge);
    pinging.delay = 1;
    run_to(15.5);
    link_network_changed(owner.link); /* two answers are on their way */
    run_to(15.6);
    cr_assert(eq(uint, pinging.probes, 2));
    stop_now();

    start(&heartbeat_edge);
    pinging.protocol.ping = is_leaving; /* what it says instead of asking */
    run_to(16);
    cr_assert(eq(int, link_state(owner.link), LINK_DRAINING));
    stop_now();
}
