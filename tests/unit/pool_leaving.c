/* pool_leaving.c - framed links that their peer sends away or leaves: what that says of the host, and when. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <string.h>

#include "link/framed_wire.h"
#include "link/internal.h"
#include "tests/fakes/calls.h"
#include "tests/fakes/framed_stage.h"

static struct framed_stage stage;
static struct framed_caller first, second;

static void open_stage(unsigned max_links)
{
    framed_stage_begin(&stage);
    stage.world.host.max_links = max_links;
    stage.server.holds = true;
}

static void begin(unsigned max_links)
{
    open_stage(max_links);
    framed_stage_open(&stage);
}

static struct pool_host *host(void)
{
    return fake_host(&stage.world, framed_address);
}

static struct pool_host_stats stats(void)
{
    return fake_host_stats(host());
}

static void call(struct framed_caller *caller)
{
    cr_assert(eq(int, framed_call(&stage, caller, "x"), 0));
    fake_settle(&stage.world);
}

static void say_goaway(uint32_t last, uint32_t code, const char *text)
{
    framed_session_goaway(stage.server.session, last, code, text);
    fake_settle(&stage.world);
}

static void expect_words(const char *words)
{
    struct pool_host *its_host = host();
    char text[600];

    pool_host_explain(its_host, text, sizeof text);
    cr_assert(ne(ptr, strstr(text, words), NULL), "%s", text);
}

/* ---- sent away ---- */

Test(pool_leaving, a_peer_that_sends_a_link_away_has_failed_at_once_and_once)
{
    struct fake_user late = {0};

    begin(2);
    call(&first);
    say_goaway(1, 5, "out of order");
    cr_assert(eq(int, pool_host_state(host()), LINK_BACKOFF));
    cr_assert(eq(uint, stats().links[LINK_DRAINING], 1));
    cr_assert(eq(uint, stats().failures, 1));
    cr_assert(eq(int, stats().last_reason, LINK_SENT_AWAY));
    cr_assert(lt(dbl, 0, stats().retry_in));
    expect_words("sent away by the peer: the peer sent us away: 5: out of order");
    cr_assert(eq(int, fake_ask(&stage.world, &late, framed_address), LINKPOOL_EUNAVAILABLE));
    cr_assert(eq(int, late.lease.reason, LINK_SENT_AWAY));
    framed_session_answer(stage.server.session, 1, "a", 1);
    fake_settle(&stage.world);
    cr_assert(eq(str, first.answer, "a")); /* what the peer took it finishes */
    fake_give_back(&first.user);
    fake_settle(&stage.world);
    cr_assert(eq(u64, fake_stats(&stage.world).ends[LINK_SENT_AWAY], 1));
    cr_assert(eq(u64, stats().failed, 1));
    cr_assert(eq(uint, stats().failures, 1));
    expect_words("5: out of order");
    framed_stage_end(&stage);
}

Test(pool_leaving, so_has_one_that_sends_away_a_link_that_nobody_is_left_on)
{
    struct fake_user late = {0};

    for (int denied = 0; denied < 2; denied++) {
        begin(1);
        memset(&first, 0, sizeof first);
        call(&first);
        if (!denied)
            fake_give_back(&first.user);
        fake_run(&stage.world, 1);
        say_goaway(0, 256, "no more");
        cr_assert(eq(uint, first.user.closed, denied));
        if (denied) {
            cr_assert(eq(int, first.user.lease.fate, POOL_NOT_SENT));
            cr_assert(eq(int, first.user.lease.reason, LINK_SENT_AWAY));
        }
        cr_assert(eq(int, pool_host_state(host()), LINK_BACKOFF));
        cr_assert(eq(u64, stats().failed, 1));
        cr_assert(eq(int, fake_ask(&stage.world, &late, framed_address), LINKPOOL_EUNAVAILABLE));
        expect_words("256: no more");
        fake_run(&stage.world, 0.21); /* the first backoff is 0.2 s at most */
        fake_hold(&stage.world, &late, framed_address);
        fake_give_back(&late);
        framed_stage_end(&stage);
    }
}

/* Nobody waits, and none is to come. */
Test(pool_leaving, in_a_drain_a_peer_that_sends_its_link_away_is_not_dialled_again)
{
    begin(2);
    memset(&first, 0, sizeof first);
    call(&first);
    cr_assert(eq(int, pool_drain(stage.world.pool, 60, NULL, NULL), 0));
    fake_settle(&stage.world);
    say_goaway(1, 5, "out of order");
    cr_assert(eq(u64, stats().failed, 1));
    cr_assert(eq(uint, stats().links[LINK_BACKOFF], 0));
    fake_run(&stage.world, 5);
    cr_assert(eq(uint, testing_peer_attempts(stage.server.peer), 1));
    framed_session_answer(stage.server.session, 1, "a", 1);
    fake_settle(&stage.world);
    cr_assert(eq(str, first.answer, "a"));
    fake_give_back(&first.user);
    framed_stage_end(&stage);
}

Test(pool_leaving, who_says_why_and_resets_later_has_said_the_reason)
{
    begin(2);
    memset(&first, 0, sizeof first);
    call(&first);
    say_goaway(1, 5, "out of order");
    testing_conn_reset(framed_peer_connection(&stage.server));
    fake_run(&stage.world, 0.01);
    cr_assert(eq(uint, first.user.closed, 1));
    cr_assert(eq(int, first.user.lease.reason, LINK_SENT_AWAY));
    cr_assert(eq(u64, stats().failed, 1));
    framed_stage_end(&stage);
}

Test(pool_leaving, of_long_words_the_beginning_is_kept)
{
    static char words[400];
    char text[1000], expected[300];

    begin(2);
    memset(&first, 0, sizeof first);
    memset(words, 'w', sizeof words - 1);
    call(&first);
    say_goaway(1, 5, words);
    pool_host_explain(host(), text, sizeof text);
    memset(expected, 'w', 255);
    expected[255] = '\0';
    cr_assert(ne(ptr, strstr(text, expected), NULL), "%s", text);
    expected[255] = 'w';
    expected[256] = '\0';
    cr_assert(eq(ptr, strstr(text, expected), NULL), "%s", text);
    fake_give_back(&first.user);
    framed_stage_end(&stage);
}

static bool closes; /* send_away() hangs up after its word */

static void send_away(struct framed_session *session, uint32_t id, const void *payload, size_t n)
{
    (void)payload, (void)n;
    framed_session_goaway(session, id, FRAMED_TOO_MANY_PINGS, "calm down");
    if (closes)
        testing_peer_cut(stage.server.peer, LINK_CLOSED_BY_PEER);
}

/* Each request is held for ever, so that each link would last for its drain. */
Test(pool_leaving, who_sends_away_each_link_is_not_dialled_in_a_circle)
{
    begin(64);
    stage.server.calls.request = send_away;
    for (int i = 0; i < 500; i++) {
        struct framed_caller caller = {.user.lease = {.flags = POOL_WAIT_FOR_READY}};
        if (fake_ask(&stage.world, &caller.user, framed_address) == POOL_PENDING)
            fake_run(&stage.world, 0.1);
        if (caller.user.lease.channel) {
            channel_send(caller.user.lease.channel, "x", 1);
            fake_settle(&stage.world);
            pool_release(&caller.user.lease, POOL_REUSE);
        } else {
            pool_cancel(&caller.user.lease);
        }
    }
    cr_assert(ge(uint, testing_peer_attempts(stage.server.peer), 10));
    cr_assert(le(uint, testing_peer_attempts(stage.server.peer), 45)); /* in 50 s, with gaps of 1 to 2 s at last */
    framed_stage_end(&stage);
}

Test(pool_leaving, who_says_why_and_hangs_up_has_said_the_reason)
{
    for (int reset = 0; reset < 2; reset++) {
        begin(2);
        memset(&first, 0, sizeof first);
        call(&first);
        framed_session_goaway(stage.server.session, 1, FRAMED_INTERNAL, "on fire");
        if (reset)
            testing_conn_reset(framed_peer_connection(&stage.server));
        else
            testing_conn_close(framed_peer_connection(&stage.server));
        fake_run(&stage.world, 0.01);
        cr_assert(eq(uint, first.user.closed, 1));
        cr_assert(eq(int, first.user.lease.reason, reset ? LINK_RESET : LINK_SENT_AWAY)); /* a reset overtakes it */
        cr_assert(eq(int, first.user.lease.fate, POOL_SENT_NO_ANSWER));
        if (!reset)
            expect_words("5: on fire");
        cr_assert(eq(u64, stats().failed, 1));
        framed_stage_end(&stage);
    }
}

Test(pool_leaving, a_complaint_of_too_many_pings_halves_them)
{
    begin(1);
    call(&first);
    say_goaway(1, FRAMED_TOO_MANY_PINGS, "calm down");
    cr_assert(eq(uint, framed_link_of(&stage)->owner->eased, 1));
    framed_stage_end(&stage);
}

Test(pool_leaving, a_complaint_in_place_of_the_welcome_halves_them_too)
{
    struct fake_user user = {0};

    open_stage(1);
    stage.server.calls.silent = true;
    framed_stage_open(&stage);
    fake_ask(&stage.world, &user, framed_address);
    fake_settle(&stage.world);
    say_goaway(0, FRAMED_TOO_MANY_PINGS, "calm down");
    cr_assert(eq(int, user.status, LINKPOOL_EUNAVAILABLE));
    cr_assert(eq(int, user.lease.reason, LINK_HANDSHAKE_FAILED));
    cr_assert(eq(uint, framed_link_of(&stage)->owner->eased, 1));
    framed_stage_end(&stage);
}

Test(pool_leaving, beside_a_ready_link_one_sent_away_paces_the_next_and_is_no_verdict)
{
    struct framed_caller third = {.user.lease = {.timeout = INFINITY}};

    open_stage(3);
    stage.server.calls.channels = 1;
    framed_stage_open(&stage);
    call(&first);
    struct framed_session *old = stage.server.session;
    call(&second);
    framed_session_goaway(old, 1, 5, "this one only");
    fake_settle(&stage.world);
    cr_assert(eq(int, pool_host_state(host()), LINK_READY));
    cr_assert(eq(int, fake_ask(&stage.world, &third.user, framed_address), POOL_PENDING));
    fake_settle(&stage.world);
    cr_assert(eq(uint, testing_peer_attempts(stage.server.peer), 2));
    fake_run(&stage.world, 0.21);
    cr_assert(eq(int, third.user.status, POOL_READY));
    framed_stage_end(&stage);
}

Test(pool_leaving, links_sent_away_together_are_one_event)
{
    struct framed_session *sessions[3];
    struct framed_caller callers[3] = {0};

    open_stage(4);
    stage.server.calls.channels = 1;
    framed_stage_open(&stage);
    for (int i = 0; i < 3; i++) {
        call(&callers[i]);
        sessions[i] = stage.server.session;
    }
    for (int i = 0; i < 3; i++)
        framed_session_goaway(sessions[i], 1, 5, "all of you");
    fake_settle(&stage.world);
    cr_assert(eq(int, pool_host_state(host()), LINK_BACKOFF));
    cr_assert(eq(uint, stats().failures, 1));
    cr_assert(eq(uint, stats().links[LINK_DRAINING], 3));
    framed_stage_end(&stage);
}

Test(pool_leaving, a_second_notice_may_give_the_cause)
{
    begin(2);
    call(&first);
    say_goaway(UINT32_MAX, 0, "");
    cr_assert(eq(int, pool_host_state(host()), LINK_IDLE));
    cr_assert(eq(u64, stats().failed, 0));
    say_goaway(1, 5, "it is worse");
    cr_assert(eq(int, pool_host_state(host()), LINK_BACKOFF));
    say_goaway(1, 6, "once more"); /* which is no other event */
    cr_assert(eq(u64, stats().failed, 1));
    expect_words("5: it is worse");
    say_goaway(0, 0, ""); /* and takes nothing back */
    cr_assert(eq(int, first.user.lease.reason, LINK_SENT_AWAY));
    framed_stage_end(&stage);
}

Test(pool_leaving, the_probe_waits_for_the_place_of_the_link_that_was_sent_away)
{
    struct fake_user late = {.lease = {.flags = POOL_WAIT_FOR_READY, .timeout = INFINITY}};

    begin(1);
    call(&first);
    say_goaway(1, 5, "");
    fake_ask(&stage.world, &late, framed_address);
    fake_run(&stage.world, 5);
    cr_assert(eq(uint, fake_stats(&stage.world).links, 1));
    cr_assert(eq(int, late.status, POOL_PENDING));
    fake_give_back(&first.user);
    fake_settle(&stage.world);
    cr_assert(eq(int, late.status, POOL_READY));
    framed_stage_end(&stage);
}

static double never(const struct backoff_policy *policy, const struct backoff_history *history, double draw)
{
    (void)policy, (void)history, (void)draw;
    return BACKOFF_STOP;
}

Test(pool_leaving, a_policy_that_says_no_more_ends_the_host_with_the_link)
{
    struct fake_user waiter = {.lease = {.flags = POOL_WAIT_FOR_READY, .timeout = INFINITY}};

    for (int used = 0; used < 2; used++) {
        open_stage(2);
        memset(&first, 0, sizeof first);
        stage.world.backoff.delay = never;
        framed_stage_open(&stage);
        call(&first);
        say_goaway((uint32_t)used, 5, "");
        cr_assert(eq(int, pool_host_state(host()), used ? LINK_BACKOFF : LINK_OFFLINE));
        if (used) { /* while it is in use the host is tried once a minute */
            fake_ask(&stage.world, &waiter, framed_address);
            fake_run(&stage.world, 59.9);
            cr_assert(eq(uint, testing_peer_attempts(stage.server.peer), 1));
            fake_run(&stage.world, 0.2);
            cr_assert(eq(int, waiter.status, POOL_READY));
        }
        framed_stage_end(&stage);
    }
}

Test(pool_leaving, without_memory_for_a_probe_the_next_attempt_waits_all_the_same)
{
    struct fake_user late = {.lease = {.timeout = INFINITY}};

    begin(2);
    call(&first);
    framed_session_goaway(stage.server.session, 1, 5, NULL);
    testing_fail_allocation(stage.world.t, 2, false); /* the words, and then the probe */
    fake_settle(&stage.world);
    cr_assert(eq(uint, stats().links[LINK_BACKOFF], 0));
    cr_assert(eq(int, fake_ask(&stage.world, &late, framed_address), POOL_PENDING)); /* nobody would end a verdict */
    fake_settle(&stage.world);
    cr_assert(eq(uint, testing_peer_attempts(stage.server.peer), 1));
    fake_run(&stage.world, 0.21);
    cr_assert(eq(int, late.status, POOL_READY));
    framed_stage_end(&stage);
}

Test(pool_leaving, the_words_of_a_failure_outlive_a_quiet_end)
{
    open_stage(2);
    stage.server.calls.channels = 1;
    framed_stage_open(&stage);
    call(&first);
    struct framed_session *old = stage.server.session;
    call(&second);
    framed_session_goaway(old, 0, 5, "this one only");
    fake_settle(&stage.world);
    fake_give_back(&second.user);
    fake_run(&stage.world, stage.world.host.idle_timeout + 1);
    cr_assert(eq(u64, fake_stats(&stage.world).ends[LINK_IDLE_TIMEOUT], 1));
    expect_words("5: this one only");
    framed_stage_end(&stage);
}

/* ---- left in order ---- */

Test(pool_leaving, the_late_death_of_the_old_link_touches_nothing_else)
{
    for (int how = 0; how < 4; how++) {
        struct pool_host_stats before;
        begin(2);
        memset(&first, 0, sizeof first);
        memset(&second, 0, sizeof second);
        call(&first);
        say_goaway(how == 3 ? 1 : UINT32_MAX, how == 3 ? 5 : 0, "");
        fake_run(&stage.world, 0.25);
        struct testing_conn *old = framed_peer_connection(&stage.server);
        fake_hold(&stage.world, &second.user, framed_address);
        before = stats();
        cr_assert(eq(uint, before.links[LINK_READY], 1));
        if (how == 2)
            testing_conn_send(old, "\377\377\377\377\377\377\377\377\377\377\377\377", 12);
        else if (how == 1)
            testing_conn_reset(old);
        else
            testing_conn_close(old);
        fake_run(&stage.world, 0.1);
        cr_assert(eq(uint, first.user.closed, 1), "%d", how);
        cr_assert(eq(uint, stats().links[LINK_DRAINING], 0));
        cr_assert(eq(u64, stats().failed, before.failed), "%d", how);
        cr_assert(eq(uint, stats().failures, before.failures));
        cr_assert(eq(int, stats().last_reason, before.last_reason));
        cr_assert(eq(dbl, stats().retry_in, 0));
        cr_assert(eq(int, stats().state, LINK_READY));
        cr_assert(eq(uint, stats().leased, 1));
        cr_assert(eq(uint, second.user.closed, 0));
        framed_stage_end(&stage);
    }
}

static void ask_late(void *user)
{
    fake_ask(&stage.world, user, framed_address);
}

static unsigned attempts(void)
{
    return testing_peer_attempts(stage.server.peer);
}

/* Asked for as the notice comes. */
Test(pool_leaving, the_next_link_is_begun_in_the_turn_of_the_notice_for_who_waits)
{
    struct fake_user waiter = {0};

    open_stage(2);
    stage.world.host.first_connecting = 1;
    framed_stage_open(&stage);
    call(&first);
    framed_session_goaway(stage.server.session, 1, 0, "");
    testing_at(stage.world.t, testing_now(stage.world.t), ask_late, &waiter);
    fake_settle(&stage.world);
    cr_assert(eq(uint, attempts(), 2));
    cr_assert(eq(int, waiter.status, POOL_READY));
    cr_assert(eq(uint, stats().links[LINK_DRAINING], 1));
    framed_stage_end(&stage);
}

/* What the peer denies is tried again, on a link that is begun in the same turn. */
Test(pool_leaving, the_next_link_is_begun_in_the_turn_of_the_notice_for_a_call_that_is_retried)
{
    struct fake_caller denied = {.call = {.to = framed_address, .retries = 1}},
                       taken = {.call = {.to = framed_address}};

    begin(2);
    call(&first);
    fake_give_back(&first.user);
    fake_call_out(&stage.world, &taken, "taken");
    fake_call_out(&stage.world, &denied, "denied");
    framed_session_goaway(stage.server.session, 2, 0, "");
    fake_turn(&stage.world);
    fake_turn(&stage.world);
    cr_assert(eq(uint, fake_stats(&stage.world).links, 2));
    fake_settle(&stage.world);
    cr_assert(eq(str, stage.server.asked[stage.server.n_asked - 1].text, "denied"));
    cr_assert(eq(uint, taken.done, 0));
    framed_session_answer(stage.server.session, 1, "here", 4);
    fake_settle(&stage.world);
    fake_called(&denied, 0, POOL_NOT_SENT);
    framed_stage_end(&stage);
}

Test(pool_leaving, what_is_kept_up_is_begun_after_a_draw_from_the_notice_on)
{
    for (int spreads = 0; spreads < 2; spreads++) {
        open_stage(2);
        memset(&first, 0, sizeof first);
        stage.world.host.min_links = 1;
        stage.world.backoff.reconnect_spread = spreads ? 2 : 0;
        framed_stage_open(&stage);
        pool_host(stage.world.pool, framed_address);
        fake_run(&stage.world, 2);
        call(&first);
        framed_session_goaway(stage.server.session, 1, 0, "");
        fake_settle(&stage.world);
        cr_assert(eq(uint, attempts(), spreads ? 1 : 2)); /* in that turn */
        fake_run(&stage.world, 2);
        cr_assert(eq(uint, attempts(), 2));
        cr_assert(eq(uint, stats().links[LINK_READY], 1));
        cr_assert(eq(uint, stats().links[LINK_DRAINING], 1)); /* long before the old one is over */
        framed_stage_end(&stage);
    }
}

/* ---- peers that shake hands, and serve nobody ---- */

/* Somebody calls again as soon as he is told, for ten seconds, and the server does its worst as soon as it can. */
static unsigned dialled_in_ten_seconds(void (*worst)(void), bool asks)
{
    unsigned n;

    begin(1);
    for (double end = testing_now(stage.world.t) + 10; testing_now(stage.world.t) < end;) {
        memset(&first, 0, sizeof first);
        first.user.lease.flags = POOL_WAIT_FOR_READY;
        fake_ask(&stage.world, &first.user, framed_address);
        fake_run(&stage.world, 0.01);
        if (asks && first.user.lease.channel)
            framed_send(&first, "x", 1);
        fake_run(&stage.world, 0.01);
        if (stage.server.session)
            worst();
        fake_run(&stage.world, 0.01);
        if (first.user.lease.channel)
            fake_give_back(&first.user);
        else
            pool_cancel(&first.user.lease);
    }
    n = testing_peer_accepted(stage.server.peer);
    framed_stage_end(&stage);
    return n;
}

static void leave_at_once(void)
{
    framed_session_goaway(stage.server.session, 0, FRAMED_NO_ERROR, "");
}

static void leave_in_two_notices(void)
{
    framed_session_goaway(stage.server.session, UINT32_MAX, FRAMED_NO_ERROR, "");
    framed_session_goaway(stage.server.session, 0, FRAMED_NO_ERROR, "");
}

static void hang_up_within_an_answer(void)
{
    framed_session_frame(stage.server.session, 100, FRAMED_ANSWER, 0, 0, 1, "part of it", 10);
    testing_peer_cut(stage.server.peer, LINK_CLOSED_BY_PEER);
}

Test(pool_leaving, who_serves_nobody_is_not_dialled_in_a_circle)
{
    cr_assert(le(uint, dialled_in_ten_seconds(leave_at_once, false), 20));
    cr_assert(le(uint, dialled_in_ten_seconds(leave_in_two_notices, false), 20));
    cr_assert(le(uint, dialled_in_ten_seconds(hang_up_within_an_answer, true), 20));
}
