/* cases_goaway.c - the cases T86, T94, T114 to T130, XK10, XK11 and XK14 over framed links: a peer that leaves by
 * GOAWAY, and the end of host and pool under calls. */
#include "tests/conformance/cases.h"

#include "tests/fakes/calls.h"
#include "tests/fakes/framed_stage.h"

static struct framed_stage stage;

static void prepare(void)
{
    framed_stage_begin(&stage);
    stage.world.host.max_links = 4;
    stage.world.backoff = (struct backoff_policy){
        .size = sizeof stage.world.backoff, .jitter = BACKOFF_NONE, .base = 0.2, .factor = 2, .cap = 10};
}

static void begin(void)
{
    prepare();
    framed_stage_open(&stage);
}

static unsigned accepted(void)
{
    return testing_peer_accepted(stage.server.peer);
}

static unsigned open_now(void)
{
    return testing_peer_open(stage.server.peer);
}

static void call_out(struct fake_caller *caller, const char *text)
{
    *caller = (struct fake_caller){.call = {.to = A, .retries = caller->call.retries}};
    fake_call_out(&stage.world, caller, text);
}

static void call_whole(void)
{
    struct fake_caller caller = {0};

    call_out(&caller, "q");
    fake_run(&stage.world, 0.001);
    fake_called(&caller, 0, POOL_NOT_SENT);
    cr_assert(eq(str, caller.answer, "q"));
}

/* Its last id, as a server that takes no more: all that has come. */
static void leave(void *session)
{
    framed_session_goaway(session, framed_session_last_id(session), 0, "");
}

/* ---- leaving ---- */

Test(cases, T86_an_answer_that_comes_with_a_leave_is_the_last_of_its_link)
{
    struct fake_caller caller = {0};

    begin();
    stage.server.holds = true;
    call_out(&caller, "q");
    framed_session_answer(stage.server.session, 1, "bye", 3);
    leave(stage.server.session);
    fake_settle(&stage.world);
    fake_called(&caller, 0, POOL_NOT_SENT);
    cr_assert(eq(str, caller.answer, "bye"));
    cr_assert(eq(uint, open_now(), 0));
    stage.server.holds = false;
    call_whole();
    cr_assert(eq(uint, accepted(), 2));
    framed_stage_end(&stage);
}

static unsigned room(struct framed_caller *callers, unsigned n)
{
    unsigned got = 0;

    for (unsigned i = 0; i < n; i++)
        got += fake_ask(&stage.world, &callers[i].user, A) == POOL_READY;
    return got;
}

/* A limit of streams that falls and rises, beside a bound of uses. */
Test(cases, T94_a_limit_said_anew_and_the_uses_left_both_hold)
{
    static struct framed_caller callers[8];
    struct fake_user first = {0};

    prepare();
    stage.world.host.max_links = 1;
    stage.world.host.max_uses = 6;
    stage.server.calls.channels = 2;
    framed_stage_open(&stage);
    fake_hold(&stage.world, &first, A); /* a use of six, and of two streams */
    cr_assert(eq(uint, room(callers, 3), 1));
    framed_session_limit(stage.server.session, 4);
    fake_settle(&stage.world);
    cr_assert(eq(uint, cases_count(&callers[1].user, 1, POOL_READY), 1)); /* two who waited have their channels */
    cr_assert(eq(int, callers[2].user.status, POOL_READY));
    fake_give_back(&first);
    fake_give_back(&callers[0].user);
    framed_session_limit(stage.server.session, 100);
    fake_settle(&stage.world);
    cr_assert(eq(uint, room(callers + 3, 4), 2)); /* four were used */
    for (int i = 1; i < 5; i++)
        fake_give_back(&callers[i].user);
    fake_run(&stage.world, 0.1);
    cr_assert(eq(uint, accepted(), 2));
    cr_assert(eq(int, callers[6].user.status, POOL_READY));
    framed_stage_end(&stage);
}

static void leave_soon(void *session)
{
    if (session == stage.server.session)
        leave(session);
}

static bool hello_and_leave_after_100_ms(struct framed_session *session, const void *token, size_t n)
{
    (void)token, (void)n;
    testing_at(stage.world.t, testing_now(stage.world.t) + 0.1, leave_soon, session);
    return true;
}

Test(cases, T114_a_framed_server_of_100_ms_costs_no_call)
{
    begin();
    stage.server.calls.hello = hello_and_leave_after_100_ms;
    double until = testing_now(stage.world.t) + 1;
    while (testing_now(stage.world.t) < until)
        call_whole();
    cr_assert(ge(uint, accepted(), 9));
    framed_stage_end(&stage);
}

Test(cases, T115_new_calls_are_refused_in_a_graceful_stop_and_the_old_one_goes_on)
{
    struct fake_caller late = {.call = {.to = A}};
    struct framed_caller old = {0};

    begin();
    cr_assert(eq(int, framed_call(&stage, &old, "x"), 0));
    fake_settle(&stage.world);
    for (int twice = 0; twice < 2; twice++) {
        cr_assert(eq(int, pool_host_drain(fake_host(&stage.world, A), INFINITY), 0));
        cr_assert(eq(int, fake_call(&stage.world, &late, "q"), LINKPOOL_ECLOSED));
        fake_run(&stage.world, 50);
        cr_assert(eq(int, framed_send(&old, "x", 1), 0));
        fake_settle(&stage.world);
        cr_assert(eq(uint, old.answers, 2 + (unsigned)twice));
        cr_assert(eq(uint, open_now(), 1));
    }
    fake_give_back(&old.user);
    fake_settle(&stage.world);
    cr_assert(eq(uint, open_now(), 0));
    framed_stage_end(&stage);
}

enum {
    TWENTY = 20
};

static struct fake_caller twenty[TWENTY];
static unsigned n_called;

static void call_the_next(void *data)
{
    (void)data;
    twenty[n_called].call.to = A;
    twenty[n_called].call.retries = n_called % 2; /* every other may be tried again */
    cr_assert(eq(int, fake_call(&stage.world, &twenty[n_called], "q"), POOL_PENDING));
    n_called++;
}

static void take_the_first(void *data)
{
    (void)data;
    framed_session_goaway(stage.server.session, 2, 0, "");
}

/* Five calls at a time, and the notice in the midst of them. */
Test(cases, T117_calls_that_are_made_while_a_leave_takes_one_are_told_once_each)
{
    begin();
    call_whole(); /* its room is known */
    struct framed_session *old = stage.server.session;
    stage.server.holds = true;
    for (unsigned i = 0; i < TWENTY; i++) {
        testing_at(stage.world.t, testing_now(stage.world.t) + 0.001 * (i / 5), call_the_next, NULL);
        if (i == 12)
            testing_at(stage.world.t, testing_now(stage.world.t) + 0.001 * (i / 5), take_the_first, NULL);
    }
    fake_run(&stage.world, 0.1);
    unsigned denied = 0, again = 0;
    for (unsigned i = 0; i < TWENTY; i++) {
        denied += twenty[i].done;
        again += twenty[i].call.attempts == 2;
        if (twenty[i].done)
            fake_called(&twenty[i], LINKPOOL_ELOST, POOL_NOT_SENT);
    }
    cr_assert(eq(uint, twenty[0].done, 0));
    cr_assert(ge(uint, denied, 5));
    cr_assert(ge(uint, again, 3));
    cr_assert(eq(uint, accepted(), 2));
    framed_session_answer(old, 2, "old", 3);
    for (uint32_t id = 1; id <= framed_session_last_id(stage.server.session); id++)
        framed_session_answer(stage.server.session, id, "new", 3);
    fake_settle(&stage.world);
    cr_assert(eq(str, twenty[0].answer, "old"));
    for (unsigned i = 0; i < TWENTY; i++) {
        cr_assert(eq(uint, twenty[i].done, 1), "call %u", i);
        if (i && !twenty[i].status)
            cr_assert(eq(str, twenty[i].answer, "new"));
    }
    framed_stage_end(&stage);
}

Test(cases, T119_the_code_and_words_of_a_leave_are_kept_graceful_or_abrupt)
{
    for (int abrupt = 0; abrupt < 2; abrupt++) {
        struct fake_caller caller = {0};
        char text[600];
        begin();
        stage.server.holds = true;
        call_out(&caller, "q");
        framed_session_goaway(stage.server.session, abrupt ? 1 : 0, 300, "maintenance");
        if (abrupt)
            testing_conn_close(framed_peer_connection(&stage.server));
        fake_settle(&stage.world);
        fake_called(&caller, LINKPOOL_ELOST, abrupt ? POOL_SENT_NO_ANSWER : POOL_NOT_SENT);
        cr_assert(eq(int, caller.call.reason, LINK_SENT_AWAY));
        pool_host_explain(caller.call.last_host, text, sizeof text);
        cr_assert(ne(ptr, strstr(text, "300: maintenance"), NULL), "%s", text);
        framed_stage_end(&stage);
    }
}

Test(cases, T120_a_framed_link_closes_right_after_its_last_call)
{
    struct fake_caller callers[2] = {0};

    begin();
    stage.server.holds = true;
    call_out(&callers[0], "q");
    call_out(&callers[1], "q");
    leave(stage.server.session);
    fake_settle(&stage.world);
    framed_session_answer(stage.server.session, 2, "2", 1);
    fake_settle(&stage.world);
    cr_assert(eq(uint, open_now(), 1));
    framed_session_answer(stage.server.session, 1, "1", 1);
    fake_settle(&stage.world);
    cr_assert(eq(uint, open_now(), 0));
    cr_assert(eq(str, callers[0].answer, "1"));
    cr_assert(eq(str, callers[1].answer, "2"));
    framed_stage_end(&stage);
}

Test(cases, T122_a_host_that_drains_ends_with_its_last_call)
{
    struct fake_caller caller = {0};

    begin();
    call_whole();
    pool_host_drain(fake_host(&stage.world, A), INFINITY); /* idle: at once */
    fake_settle(&stage.world);
    cr_assert(eq(uint, open_now(), 0));
    pool_host_start(fake_host(&stage.world, A));
    fake_settle(&stage.world);
    stage.server.holds = true;
    call_out(&caller, "q");
    pool_host_drain(fake_host(&stage.world, A), INFINITY);
    fake_settle(&stage.world);
    cr_assert(eq(uint, open_now(), 1));
    framed_session_answer(stage.server.session, 1, "1", 1);
    fake_settle(&stage.world);
    fake_called(&caller, 0, POOL_NOT_SENT);
    cr_assert(eq(uint, open_now(), 0));
    framed_stage_end(&stage);
}

Test(cases, T126_the_next_call_goes_to_a_new_framed_link_and_the_old_one_finishes)
{
    struct fake_caller old = {0};

    begin();
    stage.server.holds = true;
    call_out(&old, "q");
    struct framed_session *session = stage.server.session;
    leave(session);
    fake_settle(&stage.world);
    stage.server.holds = false;
    call_whole();
    cr_assert(eq(uint, open_now(), 2));
    framed_session_answer(session, 1, "old", 3);
    fake_settle(&stage.world);
    cr_assert(eq(str, old.answer, "old"));
    cr_assert(eq(uint, open_now(), 1));
    cr_assert(eq(u64, fake_stats(&stage.world).ends[LINK_CLOSED_BY_PEER], 1));
    framed_stage_end(&stage);
}

/* ---- the end of the pool ---- */

Test(cases, T129_calls_out_and_in_line_are_told_of_the_end)
{
    struct fake_caller callers[3] = {0};

    prepare();
    stage.world.host.max_links = 1;
    stage.server.calls.channels = 2;
    stage.server.holds = true;
    framed_stage_open(&stage);
    for (int i = 0; i < 3; i++)
        call_out(&callers[i], "q");
    pool_free(stage.world.pool);
    stage.world.pool = NULL;
    for (int i = 0; i < 3; i++)
        fake_called(&callers[i], LINKPOOL_ECLOSED, i < 2 ? POOL_SENT_NO_ANSWER : POOL_NOT_SENT);
    cr_assert(eq(uint, testing_open_descriptors(stage.world.t), 0));
    framed_stage_end(&stage);
}

/* ---- peers that send us away ---- */

/* The first request of a link is answered: who leaves before that is not believed to leave in order. */
static void answer_and_turn_away(struct framed_session *session, uint32_t id, const void *payload, size_t n)
{
    if (id == 1)
        framed_session_answer(session, id, payload, n);
    else
        framed_session_goaway(session, id - 1, FRAMED_TOO_MANY_PINGS, "enhance your calm");
}

Test(cases, XK10_a_peer_that_says_too_many_pings_is_left_alone_for_a_growing_backoff)
{
    prepare();
    stage.world.backoff.stable_after = 10;
    framed_stage_open(&stage);
    stage.server.calls.request = answer_and_turn_away;
    double from = testing_now(stage.world.t);
    while (testing_now(stage.world.t) < from + 50) { /* somebody always asks, and asks again as soon as he was told */
        struct fake_caller caller = {.call = {.to = A, .flags = POOL_CALL_WAIT_FOR_READY, .retries = 9}};
        fake_call(&stage.world, &caller, "q");
        while (!caller.done)
            fake_run(&stage.world, 0.05);
    }
    cr_assert(ge(uint, accepted(), 6));
    cr_assert(le(uint, accepted(), 12)); /* 0.2, 0.4, 0.8 and so on to 10 s */
    cr_assert(eq(int, fake_host_stats(fake_host(&stage.world, A)).last_reason, LINK_SENT_AWAY));
    framed_stage_end(&stage);
}

Test(cases, XK11_a_framed_link_that_was_told_to_go_is_replaced_at_once)
{
    struct fake_caller old[3] = {0}, next[3] = {0};

    begin();
    stage.server.holds = true;
    for (int i = 0; i < 3; i++)
        call_out(&old[i], "q");
    struct framed_session *session = stage.server.session;
    framed_session_goaway(session, UINT32_MAX, 0, "");
    fake_settle(&stage.world);
    double now = testing_now(stage.world.t);
    stage.server.holds = false;
    for (int i = 0; i < 3; i++)
        call_out(&next[i], "q");
    for (int i = 0; i < 3; i++)
        fake_called(&next[i], 0, POOL_NOT_SENT);
    cr_assert(le(dbl, testing_now(stage.world.t) - now, 1e-3));
    cr_assert(eq(uint, framed_session_last_id(session), 3));
    for (uint32_t id = 1; id <= 3; id++)
        framed_session_answer(session, id, "old", 3);
    fake_settle(&stage.world);
    for (int i = 0; i < 3; i++)
        cr_assert(eq(str, old[i].answer, "old"));
    cr_assert(eq(uint, open_now(), 1));
    framed_stage_end(&stage);
}
