/* s_conduct.c - REFERENCE's S, what the table-driven client is like beyond its table; S11 and S16 on link/fsm.h too. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <string.h>

#include "link/fsm.h"
#include "tests/fakes/owner.h"

/* ---- S10 ---- */

Test(conformance, S10_a_stop_while_connecting_leaves_no_ghost_when_the_connect_then_succeeds)
{
    struct fake_owner owner;

    fake_owner_begin(&owner, TESTING_ACCEPT);
    testing_peer_delay(owner.peer, 1, 0);
    fake_owner_start(&owner);
    fake_owner_run(&owner, 0.999);
    cr_assert(eq(int, link_state(owner.link), LINK_CONNECTING));
    link_stop(owner.link);
    fake_owner_run(&owner, 1000);
    cr_assert(eq(int, link_state(owner.link), LINK_IDLE));
    cr_assert(eq(str, (char *)fake_owner_story(&owner), "connecting stopped"));
    cr_assert(eq(uint, testing_peer_open(owner.peer), 0));
    cr_assert(eq(uint, testing_open_descriptors(owner.t), 0));

    link_start(owner.link); /* the next one is a connection of its own */
    fake_owner_run(&owner, 2);
    cr_assert(eq(int, link_state(owner.link), LINK_READY));
    cr_assert(eq(uint, testing_peer_open(owner.peer), 1));
    cr_assert(eq(uint, fake_owner_count(&owner, "connected"), 1));
    fake_owner_end(&owner);
}

/* ---- S11 ---- */

static struct link_attempt kept;

static int keep_attempt(struct protocol_link *pl)
{
    if (!kept.id)
        kept = protocol_attempt(pl);
    return 0;
}

/* A protocol that waits for outside code, and keeps the handle of its first attempt. */
static const struct protocol waits = {.size = sizeof(struct protocol), .name = "waits", .start = keep_attempt};

Test(conformance, S11_an_event_of_an_older_attempt_is_dropped_and_counted)
{
    struct fake_owner owner;

    fake_owner_begin(&owner, TESTING_ACCEPT);
    owner.options.protocol = &waits;
    fake_owner_start(&owner);
    fake_owner_until(&owner, LINK_HANDSHAKING, 1);
    cr_assert(ne(ptr, protocol_attempt_link(kept), NULL));
    link_stop(owner.link);
    link_start(owner.link);
    fake_owner_until(&owner, LINK_HANDSHAKING, 1);
    cr_assert(eq(u64, fake_link_stats(owner.link).stale_events, 0));
    cr_assert(eq(int, protocol_ready(protocol_attempt_link(kept)), LINKPOOL_ELOST));
    cr_assert(eq(int, transport_lost(transport_attempt_link(kept), LINK_RESET, 0, NULL), LINKPOOL_ELOST));
    cr_assert(eq(u64, fake_link_stats(owner.link).stale_events, 2));
    cr_assert(eq(int, link_state(owner.link), LINK_HANDSHAKING));
    fake_owner_run(&owner, 1);
    cr_assert(eq(int, link_state(owner.link), LINK_HANDSHAKING));
    fake_owner_end(&owner);
}

Test(conformance, S11_the_table_drops_every_event_of_another_generation)
{
    for (int state = 0; state < LINK_STATES; state++)
        for (int event = 0; event < LINK_EVENTS; event++)
            for (uint64_t generation = 6; generation <= 8; generation += 2) {
                struct link_fsm fsm = {.generation = 7, .state = (uint8_t)state};
                struct link_fsm_counts counts = {0};
                cr_assert(eq(int, link__step(&fsm, generation, (enum link_event)event, &counts), LINK_DO_STALE));
                cr_assert(eq(int, fsm.state, state));
                cr_assert(eq(u64, counts.stale, 1));
                cr_assert(eq(u64, counts.ignored + counts.impossible, 0));
            }
}

/* ---- S12 ---- */

static const double edge_gaps[] = {1, 2, 4, 8, 16, 32, 60, 60, 60, 60};

static void measure_edge(double draw, double times)
{
    struct fake_owner owner;

    fake_owner_begin(&owner, TESTING_REFUSE);
    owner.options.backoff = &backoff_edge;
    fake_owner_draw(&owner, draw);
    fake_owner_start(&owner);
    fake_owner_run(&owner, 600);
    for (unsigned i = 0; i < sizeof edge_gaps / sizeof *edge_gaps; i++)
        cr_assert(epsilon_eq(dbl, fake_gap(owner.peer, i), times * edge_gaps[i], 1e-6), "gap %u", i);
    fake_owner_end(&owner);
}

Test(conformance, S12_its_preset_waits_1_2_4_and_so_on_to_60_within_30_percent)
{
    struct backoff_history history = {0};
    double delay;

    measure_edge(0, 0.7);
    measure_edge(0.5, 1);
    measure_edge(0x1.fffffffffffffp-1, 1.3);
    for (unsigned attempt = 7; attempt; attempt *= 2) { /* no limit, and no overflow however many */
        history.attempt = attempt;
        delay = backoff_delay(&backoff_edge, &history, 0.75);
        cr_assert(epsilon_eq(dbl, delay, 60 * 1.15, 1e-9));
    }
    history.attempt = UINT32_MAX;
    cr_assert(epsilon_eq(dbl, backoff_delay(&backoff_edge, &history, 0), 42, 1e-9));
}

Test(conformance, S12_a_connect_may_take_3_seconds)
{
    struct fake_owner owner;

    fake_owner_begin(&owner, TESTING_BLACK_HOLE);
    owner.options.backoff = &backoff_edge;
    fake_owner_start(&owner);
    fake_owner_run(&owner, 2.999);
    cr_assert(eq(int, link_state(owner.link), LINK_CONNECTING));
    fake_owner_run(&owner, 0.002);
    cr_assert(eq(int, link_state(owner.link), LINK_BACKOFF));
    cr_assert(eq(int, link_last_reason(owner.link, NULL, NULL), LINK_TIMED_OUT));
    fake_owner_end(&owner);
}

/* ---- S13 ---- */

Test(conformance, S13_a_retry_limit_leads_offline_and_only_an_explicit_start_leaves_it)
{
    struct fake_owner owner;

    fake_owner_begin(&owner, TESTING_REFUSE);
    fake_owner_gaps(&owner, 1, 2, 60);
    owner.backoff.max_attempts = 3;
    fake_owner_start(&owner);
    fake_owner_run(&owner, 100000);
    cr_assert(eq(int, link_state(owner.link), LINK_OFFLINE));
    cr_assert(eq(uint, testing_peer_attempts(owner.peer), 3));
    cr_assert(eq(uint, fake_owner_count(&owner, "stopped"), 1));
    cr_assert(eq(int, fake_owner_told(&owner, "stopped", 0)->reason, LINK_REFUSED));
    cr_assert(eq(uint, fake_owner_count(&owner, "reconnect"), 2));

    testing_peer_behave(owner.peer, TESTING_ACCEPT);
    fake_owner_run(&owner, 100000);
    cr_assert(eq(int, link_state(owner.link), LINK_OFFLINE));
    testing_peer_behave(owner.peer, TESTING_REFUSE);
    link_start(owner.link); /* a count of its own again */
    fake_owner_run(&owner, 100000);
    cr_assert(eq(int, link_state(owner.link), LINK_OFFLINE));
    cr_assert(eq(uint, testing_peer_attempts(owner.peer), 6));
    testing_peer_behave(owner.peer, TESTING_ACCEPT);
    link_start(owner.link);
    fake_owner_until(&owner, LINK_READY, 1);
    fake_owner_end(&owner);
}

/* ---- S14 ---- */

Test(conformance, S14_the_owner_is_told_each_step_in_order)
{
    struct fake_owner owner;

    fake_owner_begin(&owner, TESTING_REFUSE);
    fake_owner_gaps(&owner, 1, 2, 60);
    fake_owner_start(&owner);
    fake_owner_run(&owner, 1.5);
    testing_peer_behave(owner.peer, TESTING_ACCEPT);
    fake_owner_run(&owner, 2);
    testing_peer_cut(owner.peer, LINK_CLOSED_BY_PEER);
    fake_owner_run(&owner, 0.5);
    link_stop(owner.link);
    fake_owner_run(&owner, 10);
    cr_assert(eq(str, (char *)fake_owner_story(&owner),
        "connecting reconnect connecting reconnect connecting connected "
        "disconnected reconnect stopped"));
    cr_assert(eq(uint, owner.told[0].attempt, 1));
    cr_assert(eq(uint, owner.told[1].attempt, 1));
    cr_assert(eq(dbl, owner.told[1].delay, 1));
    cr_assert(eq(uint, owner.told[2].attempt, 2));
    cr_assert(eq(uint, owner.told[3].attempt, 2));
    cr_assert(eq(dbl, owner.told[3].delay, 2));
    cr_assert(eq(uint, owner.told[4].attempt, 3));
    cr_assert(eq(int, owner.told[6].reason, LINK_CLOSED_BY_PEER));
    cr_assert(eq(uint, owner.told[7].attempt, 1));
    cr_assert(eq(dbl, owner.told[7].delay, 1));
    cr_assert(eq(int, owner.told[8].reason, LINK_STOPPED));
    fake_owner_end(&owner);
}

static struct {
    char callback[16];
    char asks; /* 's'tart, sto'p', 'f'ree, 'r'estart */
    unsigned asked;
} plan;

static void carry_out(struct fake_owner *owner, const struct fake_told *told)
{
    if (strcmp(told->what, plan.callback) != 0 || plan.asked)
        return;
    plan.asked++;
    if (plan.asks == 'p' || plan.asks == 'r')
        link_stop(owner->link);
    if (plan.asks == 's' || plan.asks == 'r')
        link_start(owner->link);
    if (plan.asks != 'f')
        return;
    link_free(owner->link);
    owner->link = NULL;
    fake_owner_forget(owner);
}

/* A run that meets every callback: a refusal, a connection, its loss, a stop. */
static void run_through(const char *callback, char asks)
{
    struct fake_owner owner;

    plan.asked = 0;
    plan.asks = asks;
    strcpy(plan.callback, callback);
    fake_owner_begin(&owner, TESTING_REFUSE);
    owner.then = carry_out;
    fake_owner_start(&owner);
    for (int i = 0; i < 3; i++) {
        fake_owner_run(&owner, 2);
        testing_peer_behave(owner.peer, TESTING_ACCEPT);
        testing_peer_cut(owner.peer, LINK_CLOSED_BY_PEER);
    }
    if (owner.link && strcmp(callback, "stopped") == 0)
        link_stop(owner.link);
    fake_owner_run(&owner, 100);
    cr_assert(eq(uint, plan.asked, 1), "%s", callback);
    if (asks == 'f')
        cr_assert(eq(uint, owner.n_told, 0), "told after free in %s", callback);
    else if (asks == 'p')
        cr_assert(eq(int, link_state(owner.link), LINK_IDLE), "stop in %s", callback);
    else
        cr_assert(eq(int, link_state(owner.link), LINK_READY), "start in %s", callback);
    fake_owner_end(&owner);
}

Test(conformance, S14_each_callback_may_start_stop_and_free)
{
    static const char *const callbacks[] = {"connecting", "connected", "disconnected", "reconnect", "stopped"};

    for (size_t i = 0; i < sizeof callbacks / sizeof *callbacks; i++)
        for (const char *asks = "sprf"; *asks; asks++)
            run_through(callbacks[i], *asks);
}

/* ---- S16 ---- */

static const struct {
    enum link_state from;
    enum link_event event;
    enum link_state to;
    enum link_action action;
} moves[] = {
    {LINK_IDLE, LINK_EV_START, LINK_CONNECTING, LINK_DO_CONNECT},
    {LINK_IDLE, LINK_EV_HOLD, LINK_BACKOFF, LINK_DO_ARM_RETRY},
    {LINK_IDLE, LINK_EV_FREE, LINK_CLOSED, LINK_DO_REST},
    {LINK_CONNECTING, LINK_EV_UP, LINK_HANDSHAKING, LINK_DO_HANDSHAKE},
    {LINK_CONNECTING, LINK_EV_END_RETRY, LINK_BACKOFF, LINK_DO_ARM_RETRY},
    {LINK_CONNECTING, LINK_EV_END_REST, LINK_IDLE, LINK_DO_REST},
    {LINK_CONNECTING, LINK_EV_END_OUT, LINK_OFFLINE, LINK_DO_REST},
    {LINK_CONNECTING, LINK_EV_STOP, LINK_IDLE, LINK_DO_REST},
    {LINK_HANDSHAKING, LINK_EV_READY, LINK_READY, LINK_DO_SERVE},
    {LINK_HANDSHAKING, LINK_EV_END_RETRY, LINK_BACKOFF, LINK_DO_ARM_RETRY},
    {LINK_HANDSHAKING, LINK_EV_END_REST, LINK_IDLE, LINK_DO_REST},
    {LINK_HANDSHAKING, LINK_EV_END_OUT, LINK_OFFLINE, LINK_DO_REST},
    {LINK_HANDSHAKING, LINK_EV_STOP, LINK_IDLE, LINK_DO_REST},
    {LINK_READY, LINK_EV_RESET, LINK_RESETTING, LINK_DO_CLEAN},
    {LINK_READY, LINK_EV_DRAIN, LINK_DRAINING, LINK_DO_FINISH},
    {LINK_READY, LINK_EV_END_RETRY, LINK_BACKOFF, LINK_DO_ARM_RETRY},
    {LINK_READY, LINK_EV_END_REST, LINK_IDLE, LINK_DO_REST},
    {LINK_READY, LINK_EV_END_OUT, LINK_OFFLINE, LINK_DO_REST},
    {LINK_READY, LINK_EV_STOP, LINK_IDLE, LINK_DO_REST},
    {LINK_RESETTING, LINK_EV_READY, LINK_READY, LINK_DO_SERVE},
    {LINK_RESETTING, LINK_EV_END_RETRY, LINK_BACKOFF, LINK_DO_ARM_RETRY},
    {LINK_RESETTING, LINK_EV_END_REST, LINK_IDLE, LINK_DO_REST},
    {LINK_RESETTING, LINK_EV_STOP, LINK_IDLE, LINK_DO_REST},
    {LINK_DRAINING, LINK_EV_END_RETRY, LINK_BACKOFF, LINK_DO_ARM_RETRY},
    {LINK_DRAINING, LINK_EV_END_REST, LINK_IDLE, LINK_DO_REST},
    {LINK_DRAINING, LINK_EV_STOP, LINK_IDLE, LINK_DO_REST},
    {LINK_BACKOFF, LINK_EV_RETRY, LINK_CONNECTING, LINK_DO_CONNECT},
    {LINK_BACKOFF, LINK_EV_STOP, LINK_IDLE, LINK_DO_REST},
    {LINK_OFFLINE, LINK_EV_START, LINK_CONNECTING, LINK_DO_CONNECT},
    {LINK_OFFLINE, LINK_EV_STOP, LINK_IDLE, LINK_DO_REST},
};

Test(conformance, S16_events_in_states_and_actions_out_without_a_network)
{
    struct link_fsm_counts counts = {0};

    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++) {
        struct link_fsm fsm = {.generation = 3, .state = (uint8_t)moves[i].from};
        cr_assert(eq(int, link__step(&fsm, 3, moves[i].event, &counts), (int)moves[i].action), "row %zu", i);
        cr_assert(eq(int, fsm.state, (int)moves[i].to), "row %zu", i);
    }
    cr_assert(eq(u64, counts.ignored + counts.stale + counts.impossible, 0));
}

/* ---- S17 ---- */

Test(conformance, S17_each_transition_gives_one_record)
{
    struct fake_owner owner;

    fake_owner_begin(&owner, TESTING_REFUSE);
    fake_owner_gaps(&owner, 1, 2, 60);
    fake_owner_start(&owner);
    fake_owner_run(&owner, 2);
    testing_peer_behave(owner.peer, TESTING_ACCEPT);
    fake_owner_run(&owner, 2);
    testing_peer_cut(owner.peer, LINK_RESET);
    fake_owner_run(&owner, 0.5);
    link_free(owner.link);
    owner.link = NULL;
    cr_assert(eq(uint, owner.n_records, 10));
    fake_expect_record(&owner.records[0], LINK_IDLE, LINK_CONNECTING, "start", 0, 0);
    fake_expect_record(&owner.records[1], LINK_CONNECTING, LINK_BACKOFF, "end, retry", 1, 1);
    fake_expect_record(&owner.records[2], LINK_BACKOFF, LINK_CONNECTING, "retry", 1, 0);
    fake_expect_record(&owner.records[3], LINK_CONNECTING, LINK_BACKOFF, "end, retry", 2, 2);
    fake_expect_record(&owner.records[4], LINK_BACKOFF, LINK_CONNECTING, "retry", 2, 0);
    fake_expect_record(&owner.records[5], LINK_CONNECTING, LINK_HANDSHAKING, "up", 2, 0);
    fake_expect_record(&owner.records[6], LINK_HANDSHAKING, LINK_READY, "ready", 2, 0);
    fake_expect_record(&owner.records[7], LINK_READY, LINK_BACKOFF, "end, retry", 1, 1);
    fake_expect_record(&owner.records[8], LINK_BACKOFF, LINK_IDLE, "stop", 1, 0);
    fake_expect_record(&owner.records[9], LINK_IDLE, LINK_CLOSED, "free", 1, 0);
    cr_assert(eq(int, owner.records[1].reason, LINK_REFUSED));
    cr_assert(eq(int, owner.records[1].system_errno, ECONNREFUSED));
    cr_assert(eq(int, owner.records[5].reason, LINK_NO_REASON));
    cr_assert(eq(int, owner.records[7].reason, LINK_RESET));
    cr_assert(eq(int, owner.records[7].system_errno, ECONNRESET));
    cr_assert(epsilon_eq(dbl, owner.records[3].now, 1001, 1e-9));
    for (unsigned i = 0; i < owner.n_records; i++)
        cr_assert(eq(u64, owner.records[i].link, owner.records[0].link));
    fake_owner_end(&owner);
}

/* ---- S18 ---- */

Test(conformance, S18_gauges_show_state_reconnects_and_the_time_left)
{
    struct fake_owner owner;
    struct link_stats stats;

    fake_owner_begin(&owner, TESTING_ACCEPT);
    fake_owner_gaps(&owner, 2, 2, 60);
    fake_owner_start(&owner);
    fake_owner_until(&owner, LINK_READY, 1);
    stats = fake_link_stats(owner.link);
    cr_assert(eq(uint, stats.reconnects, 0));
    cr_assert(eq(dbl, stats.last_reconnect, 0));
    testing_peer_cut(owner.peer, LINK_CLOSED_BY_PEER);
    testing_peer_behave(owner.peer, TESTING_REFUSE);
    fake_owner_run(&owner, 0.5);
    stats = fake_link_stats(owner.link);
    cr_assert(eq(int, stats.state, LINK_BACKOFF));
    cr_assert(epsilon_eq(dbl, stats.retry_in, 1.5, 1e-9));
    cr_assert(eq(dbl, stats.retry_in, link_retry_in(owner.link)));
    fake_owner_run(&owner, 2); /* tried after 2, refused, waits 4 more */
    cr_assert(epsilon_eq(dbl, fake_link_stats(owner.link).retry_in, 3.5, 1e-9));
    cr_assert(eq(uint, fake_link_stats(owner.link).attempt, 2));
    testing_peer_behave(owner.peer, TESTING_ACCEPT);
    fake_owner_run(&owner, 10);
    stats = fake_link_stats(owner.link);
    cr_assert(eq(int, stats.state, LINK_READY));
    cr_assert(eq(dbl, stats.retry_in, 0));
    cr_assert(eq(uint, stats.attempt, 0));
    cr_assert(eq(uint, stats.reconnects, 1));
    cr_assert(epsilon_eq(dbl, stats.last_reconnect, 6, 1e-9));
    testing_peer_cut(owner.peer, LINK_RESET);
    fake_owner_run(&owner, 3);
    stats = fake_link_stats(owner.link);
    cr_assert(eq(uint, stats.reconnects, 2));
    cr_assert(epsilon_eq(dbl, stats.last_reconnect, 2, 1e-9));
    fake_owner_end(&owner);
}

/* ---- S19 ---- */

static void begin_fault(struct fake_owner *owner, enum testing_behaviour behaviour)
{
    fake_owner_begin(owner, behaviour);
    fake_owner_gaps(owner, 0.5, 2, 8);
    fake_owner_start(owner);
    fake_owner_run(owner, 0.1);
}

static void end_fault(struct fake_owner *owner)
{
    double last = 0;

    for (unsigned i = 0; i < owner->n_told && i < FAKE_TOLD; i++) {
        if (strcmp(owner->told[i].what, "connected") == 0)
            last = 0;
        if (strcmp(owner->told[i].what, "reconnect") != 0)
            continue;
        cr_assert(ge(dbl, owner->told[i].delay, last), "a wait shrank");
        last = owner->told[i].delay;
    }
    cr_assert(eq(u64, fake_link_stats(owner->link).ignored_events, 0));
    cr_assert(eq(u64, fake_link_stats(owner->link).stale_events, 0));
    fake_owner_end(owner);
}

static void close_gracefully(void)
{
    struct fake_owner owner;

    begin_fault(&owner, TESTING_ACCEPT);
    testing_peer_cut(owner.peer, LINK_CLOSED_BY_PEER);
    fake_owner_run(&owner, 0.3);
    cr_assert(eq(int, link_state(owner.link), LINK_BACKOFF));
    fake_owner_run(&owner, 0.5);
    cr_assert(eq(int, link_state(owner.link), LINK_READY));
    cr_assert(eq(uint, testing_peer_attempts(owner.peer), 2));
    end_fault(&owner);
}

static void close_the_port(void)
{
    struct fake_owner owner;

    begin_fault(&owner, TESTING_ACCEPT);
    testing_peer_behave(owner.peer, TESTING_REFUSE);
    testing_peer_cut(owner.peer, LINK_RESET);
    fake_owner_run(&owner, 60);
    cr_assert(eq(int, link_state(owner.link), LINK_BACKOFF));
    testing_peer_behave(owner.peer, TESTING_ACCEPT);
    fake_owner_run(&owner, 9);
    cr_assert(eq(int, link_state(owner.link), LINK_READY));
    end_fault(&owner);
}

/* With two timers there would be two attempts within one wait, and two sockets. */
static void restart_in_a_loop(void)
{
    struct fake_owner owner;
    uint64_t most = 0;

    begin_fault(&owner, TESTING_ACCEPT);
    for (int i = 0; i < 200; i++) {
        bool up = testing_random(owner.t) % 2;
        testing_peer_behave(owner.peer, up ? TESTING_ACCEPT : TESTING_REFUSE);
        if (!up)
            testing_peer_cut(owner.peer, testing_random(owner.t) % 2 ? LINK_RESET : LINK_CLOSED_BY_PEER);
        fake_owner_run(&owner, 0.01 * (double)(testing_random(owner.t) % 200));
        most = testing_open_descriptors(owner.t) > most ? testing_open_descriptors(owner.t) : most;
    }
    cr_assert(eq(u64, most, 1));
    cr_assert(lt(uint, 20, testing_peer_attempts(owner.peer)));
    for (unsigned i = 0; i + 1 < testing_peer_attempts(owner.peer); i++)
        cr_assert(ge(dbl, fake_gap(owner.peer, i), 0.5 - 1e-9));
    end_fault(&owner);
}

static void stop_in_every_state(void)
{
    static const struct {
        enum testing_behaviour peer;
        enum link_state state;
    } states[] = {{TESTING_BLACK_HOLE, LINK_CONNECTING}, {TESTING_SILENT, LINK_HANDSHAKING},
        {TESTING_ACCEPT, LINK_READY}, {TESTING_REFUSE, LINK_BACKOFF}, {TESTING_UNREACHABLE, LINK_OFFLINE}};

    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        struct fake_owner owner;
        fake_owner_begin(&owner, states[i].peer);
        testing_peer_serve(owner.peer, fake_ack, NULL);
        owner.options.protocol = &fake_hello;
        owner.backoff.max_attempts = states[i].state == LINK_OFFLINE ? 1 : 0;
        fake_owner_start(&owner);
        fake_owner_until(&owner, states[i].state, 1);
        link_stop(owner.link);
        fake_owner_run(&owner, 500);
        cr_assert(eq(int, link_state(owner.link), LINK_IDLE));
        cr_assert(eq(uint, testing_open_descriptors(owner.t), 0));
        cr_assert(eq(uint, testing_peer_attempts(owner.peer), 1));
        cr_assert(eq(uint, fake_owner_told(&owner, "stopped", 0) != NULL, 1));
        end_fault(&owner);
    }
}

static void reach_the_limit(void)
{
    struct fake_owner owner;

    fake_owner_begin(&owner, TESTING_REFUSE);
    fake_owner_gaps(&owner, 0.5, 2, 8);
    owner.backoff.max_attempts = 8;
    fake_owner_start(&owner);
    fake_owner_run(&owner, 1000);
    cr_assert(eq(int, link_state(owner.link), LINK_OFFLINE));
    cr_assert(eq(uint, testing_peer_attempts(owner.peer), 8));
    end_fault(&owner);
}

Test(conformance, S19_faults_are_met_without_an_unexpected_event_or_a_second_timer)
{
    close_gracefully();
    close_the_port();
    restart_in_a_loop();
    stop_in_every_state();
    reach_the_limit();
}
