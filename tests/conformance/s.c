/* s.c - REFERENCE's S: the table-driven TCP client, as a link on its own; S9, S11 and S16 on the table too. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "link/fsm.h"
#include "tests/fakes/owner.h"

static void expect_record(const struct link_transition *record, enum link_state from, enum link_state to,
    const char *event, unsigned attempt, double delay)
{
    cr_assert(eq(int, record->from, from));
    cr_assert(eq(int, record->to, to));
    cr_assert(eq(str, (char *)record->event, (char *)event));
    cr_assert(eq(uint, record->attempt, attempt));
    cr_assert(epsilon_eq(dbl, record->delay, delay, 1e-9));
}

static void use_gaps_of(struct fake_owner *owner, double base, double factor, double cap)
{
    owner->backoff = backoff_edge;
    owner->backoff.jitter = BACKOFF_NONE;
    owner->backoff.base = base;
    owner->backoff.factor = factor;
    owner->backoff.cap = cap;
}

/* ---- S1 to S8: each row of the table ---- */

Test(conformance, S1_start_of_an_idle_link_connects_with_a_fresh_count)
{
    struct fake_owner owner;

    fake_owner_begin(&owner, TESTING_BLACK_HOLE);
    fake_owner_open(&owner);
    fake_owner_run(&owner, 5);
    cr_assert(eq(int, link_state(owner.link), LINK_IDLE));
    cr_assert(eq(u64, testing_calls(owner.t, TESTING_SOCKET), 0));
    cr_assert(eq(uint, owner.n_told, 0));

    cr_assert(eq(int, link_start(owner.link), 0));
    cr_assert(eq(int, link_state(owner.link), LINK_IDLE)); /* the attempt begins at the end of this turn */
    cr_assert(eq(u64, testing_calls(owner.t, TESTING_SOCKET), 0));
    fake_owner_settle(&owner);
    cr_assert(eq(int, link_state(owner.link), LINK_CONNECTING));
    cr_assert(eq(uint, fake_link_stats(owner.link).attempt, 0));
    cr_assert(eq(uint, testing_peer_attempts(owner.peer), 1));
    cr_assert(eq(str, (char *)fake_owner_story(&owner), "connecting"));
    cr_assert(eq(uint, owner.told[0].attempt, 1));
    cr_assert(eq(uint, owner.n_records, 1));
    expect_record(&owner.records[0], LINK_IDLE, LINK_CONNECTING, "start", 0, 0);
    fake_owner_end(&owner);
}

Test(conformance, S2_a_connect_that_succeeds_starts_traffic_and_tells_the_owner)
{
    struct fake_owner owner;

    fake_owner_begin(&owner, TESTING_ACCEPT);
    testing_peer_delay(owner.peer, 0.5, 0);
    owner.hears = true;
    fake_owner_start(&owner);
    fake_owner_run(&owner, 0.4);
    cr_assert(eq(int, link_state(owner.link), LINK_CONNECTING));
    fake_owner_run(&owner, 0.2);
    cr_assert(eq(int, link_state(owner.link), LINK_READY));
    cr_assert(eq(str, (char *)fake_owner_story(&owner), "connecting connected"));
    cr_assert(epsilon_eq(dbl, owner.told[1].at, 1000.5, 1e-9));
    cr_assert(ne(ptr, owner.channel, NULL));
    cr_assert(eq(ptr, channel_link(owner.channel), owner.link));
    fake_owner_send(&owner, "one");
    fake_owner_settle(&owner);
    cr_assert(eq(str, owner.heard, "one"));
    fake_owner_end(&owner);
}

static void fail_to_connect(enum testing_behaviour behaviour, enum link_reason reason, double fails_after)
{
    struct fake_owner owner;

    fake_owner_begin(&owner, behaviour);
    use_gaps_of(&owner, 1, 2, 60);
    fake_owner_start(&owner);
    fake_owner_run(&owner, fails_after + 0.5);
    cr_assert(eq(int, link_state(owner.link), LINK_BACKOFF));
    cr_assert(eq(uint, fake_link_stats(owner.link).attempt, 1));
    cr_assert(epsilon_eq(dbl, link_retry_in(owner.link), 0.5, 1e-9));
    cr_assert(eq(uint, testing_peer_attempts(owner.peer), 1));
    cr_assert(eq(int, link_last_reason(owner.link, NULL, NULL), reason));
    cr_assert(eq(str, (char *)fake_owner_story(&owner), "connecting reconnect"));
    cr_assert(eq(uint, owner.told[1].attempt, 1));
    cr_assert(eq(dbl, owner.told[1].delay, 1));
    fake_owner_end(&owner);
}

Test(conformance, S3_a_failed_connect_counts_one_and_waits_for_its_timer)
{
    fail_to_connect(TESTING_REFUSE, LINK_REFUSED, 0);
    fail_to_connect(TESTING_UNREACHABLE, LINK_UNREACHABLE, 0); /* connect() itself fails */
    fail_to_connect(TESTING_NO_HOST, LINK_UNREACHABLE, 0);
    fail_to_connect(TESTING_BLACK_HOLE, LINK_TIMED_OUT, 3);
}

/* Whether the owner listens or not. */
static void lose(enum link_reason how, bool hears)
{
    struct fake_owner owner;

    fake_owner_begin(&owner, TESTING_ACCEPT);
    use_gaps_of(&owner, 1, 2, 60);
    owner.hears = hears;
    fake_owner_start(&owner);
    fake_owner_until(&owner, LINK_READY, 1);
    testing_peer_cut(owner.peer, how);
    fake_owner_run(&owner, 0.25);
    cr_assert(eq(int, link_state(owner.link), LINK_BACKOFF));
    cr_assert(eq(uint, testing_open_descriptors(owner.t), 0));
    cr_assert(eq(str, (char *)fake_owner_story(&owner), "connecting connected disconnected reconnect"));
    cr_assert(eq(int, owner.told[2].reason, how));
    cr_assert(eq(int, link_last_reason(owner.link, NULL, NULL), how));
    cr_assert(eq(uint, fake_link_stats(owner.link).attempt, 1));
    cr_assert(epsilon_eq(dbl, link_retry_in(owner.link), 0.75, 1e-6));
    fake_owner_end(&owner);
}

Test(conformance, S4_a_lost_connection_is_closed_told_counted_and_waits)
{
    lose(LINK_CLOSED_BY_PEER, true);
    lose(LINK_CLOSED_BY_PEER, false);
    lose(LINK_RESET, true);
    lose(LINK_RESET, false);
}

static void retry_for_long(enum testing_behaviour behaviour, double fails_after)
{
    struct fake_owner owner;

    fake_owner_begin(&owner, behaviour);
    use_gaps_of(&owner, 0.5, 2, 4);
    fake_owner_start(&owner);
    fake_owner_run(&owner, 100 * (4 + fails_after));
    cr_assert(gt(uint, testing_peer_attempts(owner.peer), 90));
    cr_assert(epsilon_eq(dbl, fake_gap(owner.peer, 0), fails_after + 0.5, 1e-9));
    cr_assert(epsilon_eq(dbl, fake_gap(owner.peer, 1), fails_after + 1, 1e-9));
    cr_assert(epsilon_eq(dbl, fake_gap(owner.peer, 2), fails_after + 2, 1e-9));
    for (unsigned i = 3; i < 90; i++)
        cr_assert(epsilon_eq(dbl, fake_gap(owner.peer, i), fails_after + 4, 1e-9));
    fake_owner_end(&owner);
}

Test(conformance, S5_the_retry_timer_connects_again_when_it_is_due_for_as_long_as_it_takes)
{
    retry_for_long(TESTING_REFUSE, 0);
    retry_for_long(TESTING_BLACK_HOLE, 3);
}

Test(conformance, S6_stop_during_a_wait_cancels_the_timer_and_forgets_the_failures)
{
    struct fake_owner owner;

    fake_owner_begin(&owner, TESTING_REFUSE);
    use_gaps_of(&owner, 1, 2, 60);
    fake_owner_start(&owner);
    fake_owner_run(&owner, 4);
    cr_assert(eq(uint, fake_link_stats(owner.link).attempt, 3));
    fake_owner_forget(&owner);
    link_stop(owner.link);
    cr_assert(eq(int, link_state(owner.link), LINK_IDLE));
    cr_assert(eq(uint, fake_link_stats(owner.link).attempt, 0));
    cr_assert(eq(dbl, link_retry_in(owner.link), 0));
    fake_owner_run(&owner, 1000);
    cr_assert(eq(uint, testing_peer_attempts(owner.peer), 3));
    cr_assert(eq(str, (char *)fake_owner_story(&owner), "stopped"));
    cr_assert(eq(int, owner.told[0].reason, LINK_STOPPED));
    expect_record(&owner.records[0], LINK_BACKOFF, LINK_IDLE, "stop", 3, 0);

    link_start(owner.link);
    fake_owner_run(&owner, 0.5);
    cr_assert(eq(uint, fake_owner_told(&owner, "reconnect", 0)->attempt, 1));
    cr_assert(eq(dbl, fake_owner_told(&owner, "reconnect", 0)->delay, 1));
    fake_owner_end(&owner);
}

static void stop_while_opening(const struct protocol *protocol, enum testing_behaviour behaviour, enum link_state state)
{
    struct fake_owner owner;

    fake_owner_begin(&owner, behaviour);
    owner.options.protocol = protocol;
    fake_owner_start(&owner);
    fake_owner_until(&owner, state, 1);
    cr_assert(eq(uint, testing_open_descriptors(owner.t), 1));
    link_stop(owner.link);
    cr_assert(eq(int, link_state(owner.link), LINK_IDLE));
    cr_assert(eq(uint, testing_open_descriptors(owner.t), 0));
    fake_owner_run(&owner, 1000);
    cr_assert(eq(int, link_state(owner.link), LINK_IDLE));
    cr_assert(eq(str, (char *)fake_owner_story(&owner), "connecting stopped"));
    cr_assert(eq(int, owner.told[1].reason, LINK_STOPPED));
    cr_assert(eq(uint, testing_peer_attempts(owner.peer), 1));
    fake_owner_end(&owner);
}

Test(conformance, S7_stop_while_connecting_voids_the_attempt_and_closes_the_socket)
{
    stop_while_opening(&protocol_raw, TESTING_BLACK_HOLE, LINK_CONNECTING);
    stop_while_opening(&fake_hello, TESTING_SILENT, LINK_HANDSHAKING);
}

Test(conformance, S8_stop_of_a_connected_link_closes_the_socket_and_tells_the_owner)
{
    struct fake_owner owner;

    fake_owner_begin(&owner, TESTING_ACCEPT);
    fake_owner_start(&owner);
    fake_owner_until(&owner, LINK_READY, 1);
    fake_owner_settle(&owner);
    link_stop(owner.link);
    cr_assert(eq(int, link_state(owner.link), LINK_IDLE));
    cr_assert(eq(uint, testing_open_descriptors(owner.t), 0));
    cr_assert(eq(str, (char *)fake_owner_story(&owner), "connecting connected")); /* not inside the call that asks */
    fake_owner_run(&owner, 1000);
    cr_assert(eq(str, (char *)fake_owner_story(&owner), "connecting connected disconnected stopped"));
    cr_assert(eq(int, owner.told[2].reason, LINK_STOPPED));
    cr_assert(eq(int, owner.told[3].reason, LINK_STOPPED));
    cr_assert(eq(int, link_last_reason(owner.link, NULL, NULL), LINK_STOPPED));
    cr_assert(eq(uint, testing_peer_open(owner.peer), 0));
    cr_assert(eq(uint, testing_peer_attempts(owner.peer), 1));
    fake_owner_end(&owner);
}

/* ---- S9 ---- */

/* start, which means something in IDLE and OFFLINE only, and stop, which means nothing in IDLE. */
static void ask_in_vain(struct fake_owner *owner, void (*ask)(struct fake_owner *owner))
{
    struct link_stats before = fake_link_stats(owner->link), after;
    uint64_t sockets = testing_calls(owner->t, TESTING_SOCKET);
    unsigned told = owner->n_told, records = owner->n_records;

    ask(owner);
    ask(owner);
    fake_owner_settle(owner);
    after = fake_link_stats(owner->link);
    cr_assert(eq(u64, after.ignored_events, before.ignored_events + 2));
    cr_assert(eq(int, after.state, before.state));
    cr_assert(eq(uint, after.attempt, before.attempt));
    cr_assert(epsilon_eq(dbl, after.retry_in, before.retry_in, 2e-6));
    cr_assert(eq(u64, testing_calls(owner->t, TESTING_SOCKET), sockets));
    cr_assert(eq(uint, owner->n_told, told));
    cr_assert(eq(uint, owner->n_records, records));
}

static void ask_start(struct fake_owner *owner)
{
    cr_assert(eq(int, link_start(owner->link), 0));
}

static void ask_stop(struct fake_owner *owner)
{
    link_stop(owner->link);
}

Test(conformance, S9_start_and_stop_where_they_mean_nothing_are_ignored_and_counted)
{
    struct fake_owner owner;

    fake_owner_begin(&owner, TESTING_BLACK_HOLE);
    owner.options.protocol = &fake_hello;
    fake_owner_open(&owner);
    ask_in_vain(&owner, ask_stop); /* idle */
    link_start(owner.link);
    link_start(owner.link);
    cr_assert(eq(u64, fake_link_stats(owner.link).ignored_events, 3));
    fake_owner_settle(&owner);
    cr_assert(eq(uint, testing_peer_attempts(owner.peer), 1));
    ask_in_vain(&owner, ask_start); /* connecting */
    fake_owner_until(&owner, LINK_BACKOFF, 4);
    ask_in_vain(&owner, ask_start);
    testing_peer_behave(owner.peer, TESTING_SILENT);
    fake_owner_until(&owner, LINK_HANDSHAKING, 2);
    ask_in_vain(&owner, ask_start);
    testing_peer_say(owner.peer, "ACK", 3);
    fake_owner_until(&owner, LINK_READY, 1);
    fake_owner_settle(&owner);
    ask_in_vain(&owner, ask_start);
    link_stop(owner.link);
    fake_owner_settle(&owner);
    ask_in_vain(&owner, ask_stop);
    fake_owner_end(&owner);
}

/* What the outside may bring about at any time, in states where it means nothing. */
static const struct {
    enum link_state state;
    enum link_event event;
} meaningless[] = {
    {LINK_IDLE, LINK_EV_STOP},
    {LINK_IDLE, LINK_EV_DRAIN},
    {LINK_CONNECTING, LINK_EV_START},
    {LINK_CONNECTING, LINK_EV_HOLD},
    {LINK_CONNECTING, LINK_EV_READY},
    {LINK_CONNECTING, LINK_EV_DRAIN},
    {LINK_HANDSHAKING, LINK_EV_START},
    {LINK_HANDSHAKING, LINK_EV_HOLD},
    {LINK_HANDSHAKING, LINK_EV_UP},
    {LINK_HANDSHAKING, LINK_EV_DRAIN},
    {LINK_READY, LINK_EV_START},
    {LINK_READY, LINK_EV_HOLD},
    {LINK_READY, LINK_EV_UP},
    {LINK_READY, LINK_EV_READY},
    {LINK_RESETTING, LINK_EV_START},
    {LINK_RESETTING, LINK_EV_DRAIN},
    {LINK_DRAINING, LINK_EV_START},
    {LINK_DRAINING, LINK_EV_READY},
    {LINK_DRAINING, LINK_EV_DRAIN},
    {LINK_BACKOFF, LINK_EV_START},
    {LINK_BACKOFF, LINK_EV_HOLD},
    {LINK_BACKOFF, LINK_EV_DRAIN},
    {LINK_OFFLINE, LINK_EV_HOLD},
    {LINK_OFFLINE, LINK_EV_DRAIN},
    {LINK_CLOSED, LINK_EV_START},
    {LINK_CLOSED, LINK_EV_HOLD},
    {LINK_CLOSED, LINK_EV_DRAIN},
    {LINK_CLOSED, LINK_EV_STOP},
    {LINK_CLOSED, LINK_EV_FREE},
};

Test(conformance, S9_the_table_ignores_and_counts_what_means_nothing_where_it_comes)
{
    for (size_t i = 0; i < sizeof meaningless / sizeof *meaningless; i++) {
        struct link_fsm fsm = {.generation = 7, .state = meaningless[i].state};
        struct link_fsm_counts counts = {0};
        cr_assert(eq(int, link__step(&fsm, 7, meaningless[i].event, &counts), LINK_DO_IGNORE), "row %zu", i);
        cr_assert(eq(int, fsm.state, (int)meaningless[i].state));
        cr_assert(eq(u64, fsm.generation, 7));
        cr_assert(eq(u64, counts.ignored, 1));
        cr_assert(eq(u64, counts.stale + counts.impossible, 0));
    }
}

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
    use_gaps_of(&owner, 1, 2, 60);
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
    use_gaps_of(&owner, 1, 2, 60);
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
    use_gaps_of(&owner, 1, 2, 60);
    fake_owner_start(&owner);
    fake_owner_run(&owner, 2);
    testing_peer_behave(owner.peer, TESTING_ACCEPT);
    fake_owner_run(&owner, 2);
    testing_peer_cut(owner.peer, LINK_RESET);
    fake_owner_run(&owner, 0.5);
    link_free(owner.link);
    owner.link = NULL;
    cr_assert(eq(uint, owner.n_records, 10));
    expect_record(&owner.records[0], LINK_IDLE, LINK_CONNECTING, "start", 0, 0);
    expect_record(&owner.records[1], LINK_CONNECTING, LINK_BACKOFF, "end, retry", 1, 1);
    expect_record(&owner.records[2], LINK_BACKOFF, LINK_CONNECTING, "retry", 1, 0);
    expect_record(&owner.records[3], LINK_CONNECTING, LINK_BACKOFF, "end, retry", 2, 2);
    expect_record(&owner.records[4], LINK_BACKOFF, LINK_CONNECTING, "retry", 2, 0);
    expect_record(&owner.records[5], LINK_CONNECTING, LINK_HANDSHAKING, "up", 2, 0);
    expect_record(&owner.records[6], LINK_HANDSHAKING, LINK_READY, "ready", 2, 0);
    expect_record(&owner.records[7], LINK_READY, LINK_BACKOFF, "end, retry", 1, 1);
    expect_record(&owner.records[8], LINK_BACKOFF, LINK_IDLE, "stop", 1, 0);
    expect_record(&owner.records[9], LINK_IDLE, LINK_CLOSED, "free", 1, 0);
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
    use_gaps_of(&owner, 2, 2, 60);
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
    use_gaps_of(owner, 0.5, 2, 8);
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
    cr_assert(gt(uint, testing_peer_attempts(owner.peer), 20));
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
    use_gaps_of(&owner, 0.5, 2, 8);
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
