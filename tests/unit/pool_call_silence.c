/* pool_call_silence.c - which time-outs end a framed link: those that met silence, and what is no silence. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#include "linkpool/call.h"
#include "tests/fakes/framed_stage.h"

enum {
    ANSWER = 5, /* its frame's type */
    ALL = 100000
};

static struct framed_stage stage;
static struct pool_call patient, hasty;
static unsigned char bytes[ALL];

static void on_done(struct pool_call *call)
{
    (void)call;
}

static void on_part(struct pool_call *call, const void *piece, size_t n)
{
    (void)call, (void)piece, (void)n;
}

static void begin(void)
{
    framed_stage_begin(&stage);
    stage.server.holds = true;
    framed_stage_open(&stage);
}

static void ask(struct pool_call *call, double timeout)
{
    call->to = framed_address;
    call->timeout = timeout;
    call->done = on_done;
    cr_assert(eq(int, pool_call(stage.world.pool, call), POOL_PENDING));
    fake_settle(&stage.world);
}

static uint64_t ends(void)
{
    return fake_stats(&stage.world).ends[LINK_TIMED_OUT];
}

/* One that runs out of time while so many bytes come. */
static void run_out(size_t n)
{
    ask(&hasty, 1);
    fake_run(&stage.world, 0.5);
    framed_peer_say(&stage.server, bytes, n);
    fake_run(&stage.world, 1);
    cr_assert(eq(int, hasty.status, LINKPOOL_ETIMEDOUT));
}

static void expect_a_large_answer_is_life(size_t all, size_t at_once)
{
    begin();
    ask(&patient, 1000);
    framed_session_frame(stage.server.session, (uint32_t)all, ANSWER, 0, 0, 1, bytes, 1);
    for (size_t sent = 1; sent < all; sent += at_once)
        run_out(at_once);
    cr_assert(eq(int, patient.status, 0));
    cr_assert(eq(sz, patient.answer_size, all));
    cr_assert(eq(u64, ends(), 0));
    for (unsigned i = 0; i < 3; i++) /* now it is silent */
        run_out(0);
    cr_assert(eq(u64, ends(), 1));
    framed_stage_end(&stage);
}

Test(pool_call_silence, a_large_answer_under_way_is_life)
{
    for (unsigned in_pieces = 0; in_pieces < 2; in_pieces++) {
        patient.part = in_pieces ? on_part : NULL;
        expect_a_large_answer_is_life(10001, 1000);  /* gathered as it comes */
        expect_a_large_answer_is_life(90001, 15000); /* read in place */
    }
}

/* Nobody waits for it any more. */
Test(pool_call_silence, one_that_was_given_up_is_life_while_it_comes)
{
    begin();
    ask(&patient, 1000);
    framed_session_frame(stage.server.session, 8001, ANSWER, 0, 0, 1, bytes, 1);
    cr_assert(eq(int, pool_call_cancel(&patient), 0));
    for (unsigned i = 0; i < 8; i++)
        run_out(1000);
    cr_assert(eq(u64, ends(), 0));
    framed_stage_end(&stage);
}

/* A peer that is slower than its callers wait is slow over any link. */
Test(pool_call_silence, a_late_answer_is_life)
{
    begin();
    ask(&hasty, 1);
    for (uint32_t i = 1; i < 10; i++) {
        fake_run(&stage.world, 1.5);
        cr_assert(eq(int, hasty.status, LINKPOOL_ETIMEDOUT));
        ask(&hasty, 1);
        framed_session_answer(stage.server.session, i, "late", 4);
        fake_settle(&stage.world);
    }
    cr_assert(eq(u64, ends(), 0));
    framed_stage_end(&stage);
}

static void ping(void)
{
    framed_session_ping(stage.server.session, "12345678");
}

static void change_limit(void)
{
    framed_session_limit(stage.server.session, 50);
}

/* The peer's loop runs, and whoever is to answer hangs. */
Test(pool_call_silence, signs_of_life_that_are_no_answers_change_nothing)
{
    void (*const signs[])(void) = {ping, change_limit};

    for (unsigned i = 0; i < 2; i++) {
        begin();
        for (unsigned n = 0; n < 3; n++) {
            cr_assert(eq(u64, ends(), 0));
            ask(&hasty, 1);
            fake_run(&stage.world, 0.5);
            signs[i]();
            fake_run(&stage.world, 1);
            cr_assert(eq(int, hasty.status, LINKPOOL_ETIMEDOUT));
        }
        cr_assert(eq(u64, ends(), 1));
        framed_stage_end(&stage);
    }
}

/* With a heartbeat its answers are heard, and they are the transport's. */
Test(pool_call_silence, a_peer_that_answers_pings_alone_is_given_up)
{
    struct heartbeat_policy policy = heartbeat_default;

    policy.interval = policy.watch_interval = 0.3;
    framed_stage_begin(&stage);
    stage.world.host.heartbeat = &policy;
    stage.server.holds = true;
    framed_stage_open(&stage);
    for (unsigned n = 0; n < 3; n++) {
        cr_assert(eq(u64, ends(), 0));
        ask(&hasty, 2);
        fake_run(&stage.world, 3);
    }
    cr_assert(eq(u64, ends(), 1));
    framed_stage_end(&stage);
}
