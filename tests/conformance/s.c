/* s.c - REFERENCE's S, the table: each row as a link on its own shows it; S9 on link/fsm.h too. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "link/fsm.h"
#include "tests/fakes/owner.h"

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
    fake_expect_record(&owner.records[0], LINK_IDLE, LINK_CONNECTING, "start", 0, 0);
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
    fake_owner_gaps(&owner, 1, 2, 60);
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
    fake_owner_gaps(&owner, 1, 2, 60);
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
    fake_owner_gaps(&owner, 0.5, 2, 4);
    fake_owner_start(&owner);
    fake_owner_run(&owner, 100 * (4 + fails_after));
    cr_assert(lt(uint, 90, testing_peer_attempts(owner.peer)));
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
    fake_owner_gaps(&owner, 1, 2, 60);
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
    fake_expect_record(&owner.records[0], LINK_BACKOFF, LINK_IDLE, "stop", 3, 0);

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
