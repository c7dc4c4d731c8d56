/* n.c - REFERENCE's N: the reconnect handler of one persistent framed link, as a link on its own; N8 as leases. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <string.h>

#include "tests/fakes/owner.h"
#include "tests/fakes/world.h"

/* ---- N1 ---- */

static double longer_after_a_time_out(
    const struct backoff_policy *policy, const struct backoff_history *history, double draw)
{
    (void)policy, (void)draw;
    return history->reason == LINK_TIMED_OUT ? 5 : 1;
}

static void classify(enum testing_behaviour behaviour, enum link_reason reason, int error, double fails_after)
{
    struct fake_owner owner;
    const char *text;
    int system_errno;

    fake_owner_begin(&owner, behaviour);
    testing_peer_serve(owner.peer, NULL, NULL);
    owner.backoff.delay = longer_after_a_time_out;
    owner.options.protocol = &fake_hello;
    owner.options.connect_timeout = 2;
    fake_owner_start(&owner);
    fake_owner_until(&owner, LINK_BACKOFF, 3);
    cr_assert(epsilon_eq(dbl, testing_now(owner.t) - 1000, fails_after, 1e-9));
    cr_assert(eq(int, link_last_reason(owner.link, &system_errno, &text), reason));
    cr_assert(eq(int, system_errno, error));
    cr_assert(eq(dbl, link_retry_in(owner.link), reason == LINK_TIMED_OUT ? 5 : 1));
    fake_owner_end(&owner);
}

static ssize_t speak_nonsense(void *data, const void *in, size_t n, void *out, size_t room)
{
    (void)data, (void)in, (void)n, (void)room;
    memcpy(out, "NAK", 3);
    return 3;
}

static ssize_t hang_up(void *data, const void *in, size_t n, void *out, size_t room)
{
    (void)data, (void)in, (void)n, (void)out, (void)room;
    return -1;
}

static void refuse_the_handshake(
    ssize_t (*serve)(void *, const void *, size_t, void *, size_t), enum link_reason reason, const char *words)
{
    struct fake_owner owner;
    const char *text;

    fake_owner_begin(&owner, TESTING_ACCEPT);
    testing_peer_serve(owner.peer, serve, NULL);
    owner.options.protocol = &fake_hello;
    fake_owner_start(&owner);
    fake_owner_until(&owner, LINK_BACKOFF, 1);
    cr_assert(eq(int, link_last_reason(owner.link, NULL, &text), reason));
    cr_assert(eq(str, (char *)text, (char *)words));
    fake_owner_end(&owner);
}

static void ask_for_a_name(void)
{
    struct fake_world world;
    struct fake_user user = {0};
    struct testing *t = testing_new(1);
    struct driver *driver = testing_driver(t);
    char why[160] = "";

    cr_assert(eq(int, link_address_check("db:5432", why, sizeof why), LINKPOOL_EADDRESS));
    cr_assert(ne(str, why, ""));
    errno = 0;
    cr_assert(eq(ptr, link_new(driver, "db:5432", NULL), NULL));
    cr_assert(eq(int, errno, EINVAL));
    driver_free(driver);
    testing_free(t);
    fake_world_begin(&world);
    fake_world_open(&world);
    cr_assert(eq(int, fake_ask(&world, &user, "db:5432"), LINKPOOL_EADDRESS));
    fake_world_end(&world);
}

Test(conformance, N1_failures_to_connect_are_told_apart_and_a_policy_may_wait_by_them)
{
    classify(TESTING_REFUSE, LINK_REFUSED, ECONNREFUSED, 0);
    classify(TESTING_BLACK_HOLE, LINK_TIMED_OUT, 0, 2);
    classify(TESTING_SILENT, LINK_TIMED_OUT, 0, 2);
    classify(TESTING_UNREACHABLE, LINK_UNREACHABLE, ENETUNREACH, 0);
    classify(TESTING_NO_HOST, LINK_UNREACHABLE, EHOSTUNREACH, 0);
    classify(TESTING_ACCEPT_AND_RESET, LINK_RESET, ECONNRESET, 0);
    refuse_the_handshake(hang_up, LINK_CLOSED_BY_PEER, "");
    refuse_the_handshake(speak_nonsense, LINK_HANDSHAKE_FAILED, "no ACK");
    ask_for_a_name();
}

/* ---- N2 ---- */

Test(conformance, N2_a_failed_connect_schedules_exactly_one_retry)
{
    struct fake_owner owner;

    fake_owner_begin(&owner, TESTING_REFUSE);
    owner.options.backoff = &backoff_linkd;
    testing_peer_delay(owner.peer, 0.05, 0);
    fake_owner_start(&owner);
    for (unsigned i = 1; i <= 20; i++) {
        fake_owner_until(&owner, LINK_CONNECTING, 13);
        cr_assert(eq(uint, testing_open_descriptors(owner.t), 1));
        fake_owner_until(&owner, LINK_BACKOFF, 1);
        cr_assert(eq(uint, testing_open_descriptors(owner.t), 0));
        cr_assert(eq(uint, testing_peer_attempts(owner.peer), i));
        cr_assert(eq(uint, fake_owner_count(&owner, "reconnect"), i));
        cr_assert(eq(uint, fake_link_stats(owner.link).attempt, i));
    }
    for (unsigned i = 0; i + 1 < testing_peer_attempts(owner.peer); i++)
        cr_assert(
            epsilon_eq(dbl, fake_gap(owner.peer, i), 0.05 + fake_owner_told(&owner, "reconnect", i)->delay, 1e-9));
    cr_assert(eq(u64, fake_link_stats(owner.link).ignored_events, 0));
    fake_owner_end(&owner);
}

/* A library that owns its socket: told from outside that the connect failed, and then that the socket is closed. */
static struct link_attempt library;

static enum transport_step begin_elsewhere(struct transport_link *tl, unsigned events)
{
    (void)events;
    library = transport_attempt(tl);
    transport_retry(tl, 60);
    return TRANSPORT_AGAIN;
}

static enum transport_idle is_clean(struct transport_link *tl)
{
    (void)tl;
    return TRANSPORT_CLEAN;
}

static void close_elsewhere(struct transport_link *tl, bool quiet)
{
    (void)tl, (void)quiet;
}

Test(conformance, N2_a_failed_connect_and_its_close_notice_schedule_one_retry)
{
    static const struct transport elsewhere = {.size = sizeof elsewhere,
        .name = "elsewhere",
        .open = begin_elsewhere,
        .idle = is_clean,
        .close = close_elsewhere};
    struct fake_owner owner;

    fake_owner_begin(&owner, TESTING_ACCEPT);
    owner.options.transport = &elsewhere;
    fake_owner_start(&owner);
    fake_owner_settle(&owner);
    cr_assert(eq(int, transport_lost(transport_attempt_link(library), LINK_REFUSED, ECONNREFUSED, "no"), 0));
    cr_assert(eq(int, transport_lost(transport_attempt_link(library), LINK_CLOSED_BY_PEER, 0, NULL), LINKPOOL_ELOST));
    fake_owner_settle(&owner);
    cr_assert(eq(str, (char *)fake_owner_story(&owner), "connecting reconnect"));
    cr_assert(eq(uint, fake_link_stats(owner.link).attempt, 1));
    cr_assert(eq(int, link_last_reason(owner.link, NULL, NULL), LINK_REFUSED));
    fake_owner_run(&owner, 1.4);
    cr_assert(eq(str, (char *)fake_owner_story(&owner), "connecting reconnect connecting"));
    fake_owner_end(&owner);
}

/* ---- N3 ---- */

static const double linkd_lows[] = {0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 8, 8, 8};
static const double linkd_highs[] = {0.24, 0.48, 0.96, 1.92, 3.84, 7.68, 12, 12, 12};
enum {
    LINKD_GAPS = sizeof linkd_lows / sizeof *linkd_lows
};

static void measure_linkd(double draw, double *gaps)
{
    struct fake_owner owner;

    fake_owner_begin(&owner, TESTING_REFUSE);
    owner.options.backoff = &backoff_linkd;
    if (draw >= 0)
        fake_owner_draw(&owner, draw);
    fake_owner_start(&owner);
    fake_owner_run(&owner, 60);
    for (unsigned i = 0; i < LINKD_GAPS; i++)
        gaps[i] = fake_gap(owner.peer, i);
    fake_owner_end(&owner);
}

Test(conformance, N3_waits_double_from_0_2_to_10_and_are_spread_by_a_fifth)
{
    double lows[LINKD_GAPS], highs[LINKD_GAPS], drawn[LINKD_GAPS];

    measure_linkd(0, lows);
    measure_linkd(0x1.fffffffffffffp-1, highs);
    measure_linkd(-1, drawn);
    for (unsigned i = 0; i < LINKD_GAPS; i++) {
        cr_assert(epsilon_eq(dbl, lows[i], linkd_lows[i], 1e-9), "gap %u", i);
        cr_assert(epsilon_eq(dbl, highs[i], linkd_highs[i], 1e-9), "gap %u", i);
        cr_assert(lt(dbl, linkd_lows[i], drawn[i]));
        cr_assert(lt(dbl, drawn[i], linkd_highs[i]));
    }
}

/* ---- N4 and N5 ---- */

Test(conformance, N4_only_a_finished_handshake_resets_the_count)
{
    struct fake_owner owner;

    fake_owner_begin(&owner, TESTING_ACCEPT);
    testing_peer_serve(owner.peer, hang_up, NULL);
    owner.options.protocol = &fake_hello;
    owner.options.backoff = &backoff_linkd;
    fake_owner_draw(&owner, 0.5);
    fake_owner_start(&owner);
    fake_owner_run(&owner, 6.3);
    cr_assert(eq(uint, testing_peer_accepted(owner.peer), 6));
    for (unsigned i = 0; i < 5; i++)
        cr_assert(epsilon_eq(dbl, fake_gap(owner.peer, i), 0.2 * (1u << i), 1e-9), "gap %u", i);
    cr_assert(eq(uint, fake_owner_count(&owner, "connected"), 0));

    testing_peer_serve(owner.peer, fake_ack, NULL);
    fake_owner_until(&owner, LINK_READY, 10);
    cr_assert(eq(uint, fake_link_stats(owner.link).attempt, 0));
    size_t n;
    cr_assert(eq(int, memcmp(testing_peer_received(owner.peer, &n), "HELLO", 5), 0));
    cr_assert(eq(sz, n, 7 * 5));
    fake_owner_end(&owner);
}

Test(conformance, N5_the_loss_of_a_ready_link_starts_again_at_attempt_1)
{
    struct fake_owner owner;

    fake_owner_begin(&owner, TESTING_REFUSE);
    owner.options.backoff = &backoff_linkd;
    fake_owner_start(&owner);
    fake_owner_run(&owner, 10);
    cr_assert(lt(uint, 4, fake_link_stats(owner.link).attempt));
    testing_peer_behave(owner.peer, TESTING_ACCEPT);
    fake_owner_until(&owner, LINK_READY, 13);
    fake_owner_forget(&owner);
    testing_peer_behave(owner.peer, TESTING_REFUSE);
    testing_peer_cut(owner.peer, LINK_RESET);
    fake_owner_run(&owner, 0.1);
    const struct fake_told *reconnect = fake_owner_told(&owner, "reconnect", 0);
    cr_assert(eq(uint, reconnect->attempt, 1));
    cr_assert(ge(dbl, reconnect->delay, 0.16));
    cr_assert(le(dbl, reconnect->delay, 0.24));
    fake_owner_run(&owner, 0.2);
    cr_assert(eq(uint, fake_owner_told(&owner, "reconnect", 1)->attempt, 2));
    fake_owner_end(&owner);
}

/* ---- N6 ---- */

/* A protocol whose handshake ends by a timer of its own: two seconds after it began. */
static struct testing *its_world;
static struct {
    struct link_attempt attempt;
    int answer;
} acks[8];
static unsigned n_acks;

static void on_late_ack(void *data)
{
    unsigned i = (unsigned)(uintptr_t)data;

    acks[i].answer = protocol_ready(protocol_attempt_link(acks[i].attempt));
}

static int wait_for_ack(struct protocol_link *pl)
{
    acks[n_acks].attempt = protocol_attempt(pl);
    acks[n_acks].answer = 1;
    return testing_at(its_world, testing_now(its_world) + 2, on_late_ack, (void *)(uintptr_t)n_acks++);
}

static int look_for_the_end(struct protocol_link *pl, unsigned events)
{
    char byte;

    (void)events;
    return protocol_read(pl, &byte, 1) == LINKPOOL_ELOST ? LINKPOOL_ELOST : 0;
}

Test(conformance, N6_a_late_acknowledgement_of_an_older_attempt_does_not_make_the_newer_ready)
{
    static const struct protocol timed = {
        .size = sizeof timed, .name = "timed", .start = wait_for_ack, .input = look_for_the_end};
    struct fake_owner owner;

    fake_owner_begin(&owner, TESTING_ACCEPT);
    its_world = owner.t;
    owner.options.protocol = &timed;
    owner.backoff.jitter = BACKOFF_NONE;
    owner.backoff.base = 0.5;
    fake_owner_start(&owner);
    fake_owner_run(&owner, 1);
    cr_assert(eq(int, link_state(owner.link), LINK_HANDSHAKING));
    testing_peer_cut(owner.peer, LINK_CLOSED_BY_PEER);
    fake_owner_run(&owner, 0.9); /* 1001.9: attempt 2 began at 1001.5 */
    cr_assert(eq(uint, n_acks, 2));
    cr_assert(eq(u64, fake_link_stats(owner.link).stale_events, 0));
    fake_owner_run(&owner, 0.2); /* the acknowledgement of attempt 1 came at 1002 */
    cr_assert(eq(int, acks[0].answer, LINKPOOL_ELOST));
    cr_assert(eq(u64, fake_link_stats(owner.link).stale_events, 1));
    cr_assert(eq(int, link_state(owner.link), LINK_HANDSHAKING));
    cr_assert(eq(uint, fake_owner_count(&owner, "connected"), 0));
    fake_owner_run(&owner, 1.3); /* its own at 1003.5 */
    cr_assert(eq(int, link_state(owner.link), LINK_HANDSHAKING));
    fake_owner_run(&owner, 0.2);
    cr_assert(eq(int, acks[1].answer, 0));
    cr_assert(eq(int, link_state(owner.link), LINK_READY));
    cr_assert(eq(uint, fake_owner_count(&owner, "connected"), 1));
    cr_assert(eq(u64, fake_link_stats(owner.link).stale_events, 1));
    fake_owner_end(&owner);
}

/* ---- N8 ---- */

static void begin_full(struct fake_world *world, struct fake_user *holder)
{
    fake_world_begin(world);
    world->host.max_links = 1;
    fake_world_open(world);
    fake_echo(world, FAKE_ADDRESS);
    fake_hold(world, holder, FAKE_ADDRESS);
}

Test(conformance, N8_a_lease_past_its_deadline_is_given_up_unsent_and_told_once)
{
    struct fake_world world;
    struct fake_user holder = {0}, hasty = {.lease.timeout = 2}, usual = {0}, patient = {.lease.timeout = 9};

    begin_full(&world, &holder);
    double start = testing_now(world.t);
    cr_assert(eq(int, fake_ask(&world, &hasty, FAKE_ADDRESS), POOL_PENDING));
    cr_assert(eq(int, fake_ask(&world, &usual, FAKE_ADDRESS), POOL_PENDING));
    cr_assert(eq(int, fake_ask(&world, &patient, FAKE_ADDRESS), POOL_PENDING));
    fake_run(&world, 8);
    cr_assert(eq(uint, hasty.done, 1));
    cr_assert(eq(int, hasty.status, LINKPOOL_ETIMEDOUT));
    cr_assert(epsilon_eq(dbl, hasty.told_at - start, 2, 1e-9));
    cr_assert(eq(int, hasty.lease.stage, POOL_STAGE_LINE));
    cr_assert(eq(int, hasty.lease.fate, POOL_NOT_SENT));
    cr_assert(eq(uint, usual.done, 1));
    cr_assert(eq(int, usual.status, LINKPOOL_ETIMEDOUT));
    cr_assert(epsilon_eq(dbl, usual.told_at - start, 5, 1e-9));
    cr_assert(eq(uint, patient.done, 0));
    fake_give_back(&holder);
    fake_run(&world, 60);
    cr_assert(eq(uint, patient.done, 1));
    cr_assert(eq(int, patient.status, POOL_READY));
    cr_assert(eq(uint, hasty.done + usual.done + holder.closed, 2));
    fake_give_back(&patient);
    fake_world_end(&world);
}

Test(conformance, N8_shutdown_abandons_all_who_wait_and_tells_each_once)
{
    struct fake_world world;
    struct fake_user holder = {0}, waiting[20] = {{.lease.timeout = 3}};

    begin_full(&world, &holder);
    for (int i = 0; i < 20; i++)
        cr_assert(eq(int, fake_ask(&world, &waiting[i], FAKE_ADDRESS), POOL_PENDING));
    fake_run(&world, 1);
    unsigned before = world.told;
    pool_free(world.pool);
    world.pool = NULL;
    for (int i = 0; i < 20; i++) {
        cr_assert(eq(uint, waiting[i].done, 1));
        cr_assert(eq(int, waiting[i].status, LINKPOOL_ECLOSED));
    }
    cr_assert(eq(uint, holder.closed, 1));
    fake_run(&world, 100);
    cr_assert(eq(uint, world.told, before + 21));
    fake_world_end(&world);
}

/* ---- N11 ---- */

static void stop_it(void *data)
{
    link_stop(((struct fake_owner *)data)->link);
}

/* In the very turn in which the wait is over: its timer has rung, the attempt not yet begun. */
static void stop_as_the_timer_rings(void)
{
    struct fake_owner owner;

    fake_owner_begin(&owner, TESTING_REFUSE);
    owner.backoff.jitter = BACKOFF_NONE;
    fake_owner_start(&owner);
    fake_owner_settle(&owner);
    testing_at(owner.t, 1001, stop_it, &owner);
    fake_owner_run(&owner, 1000);
    cr_assert(eq(int, link_state(owner.link), LINK_IDLE));
    cr_assert(eq(uint, testing_peer_attempts(owner.peer), 1));
    link_start(owner.link); /* and in the turn of the start itself */
    link_stop(owner.link);
    fake_owner_run(&owner, 1000);
    cr_assert(eq(int, link_state(owner.link), LINK_IDLE));
    cr_assert(eq(uint, testing_peer_attempts(owner.peer), 1));
    fake_owner_end(&owner);
}

static void close_for_good(enum testing_behaviour behaviour, enum link_state state)
{
    struct fake_owner owner;

    fake_owner_begin(&owner, behaviour);
    fake_owner_start(&owner);
    fake_owner_until(&owner, state, 1);
    link_free(owner.link);
    owner.link = NULL;
    cr_assert(eq(uint, testing_open_descriptors(owner.t), 0));
    cr_assert(eq(int, owner.records[owner.n_records - 1].from, LINK_IDLE));
    cr_assert(eq(int, owner.records[owner.n_records - 1].to, LINK_CLOSED));
    fake_owner_forget(&owner);
    fake_owner_run(&owner, 10000);
    cr_assert(eq(uint, testing_peer_attempts(owner.peer), 1));
    cr_assert(eq(uint, owner.n_told + owner.n_records, 0));
    fake_owner_end(&owner);
}

Test(conformance, N11_an_intended_close_never_reconnects_and_closed_is_final)
{
    stop_as_the_timer_rings();
    close_for_good(TESTING_BLACK_HOLE, LINK_CONNECTING);
    close_for_good(TESTING_ACCEPT, LINK_READY);
    close_for_good(TESTING_REFUSE, LINK_BACKOFF);
}

/* ---- N12 ---- */

Test(conformance, N12_start_again_while_connecting_waiting_or_ready_does_nothing)
{
    struct fake_owner owner;

    fake_owner_begin(&owner, TESTING_REFUSE);
    testing_peer_delay(owner.peer, 0.5, 0);
    owner.backoff.jitter = BACKOFF_NONE;
    fake_owner_open(&owner);
    for (int i = 0; i < 70; i++) { /* refused at 0.5, tried again at 1.5, refused at 2, tried again at 4 */
        if (i == 41)
            testing_peer_behave(owner.peer, TESTING_ACCEPT);
        cr_assert(eq(int, link_start(owner.link), 0));
        fake_owner_run(&owner, 0.1);
    }
    cr_assert(eq(int, link_state(owner.link), LINK_READY));
    cr_assert(
        eq(str, (char *)fake_owner_story(&owner), "connecting reconnect connecting reconnect connecting connected"));
    cr_assert(epsilon_eq(dbl, fake_gap(owner.peer, 0), 1.5, 1e-9));
    cr_assert(epsilon_eq(dbl, fake_gap(owner.peer, 1), 2.5, 1e-9));
    cr_assert(eq(uint, testing_peer_attempts(owner.peer), 3));
    cr_assert(eq(uint, testing_open_descriptors(owner.t), 1));
    cr_assert(eq(u64, fake_link_stats(owner.link).ignored_events, 69));
    fake_owner_end(&owner);
}
