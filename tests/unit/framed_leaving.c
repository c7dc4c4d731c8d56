/* framed_leaving.c - framed links whose peer leaves, or that leave themselves: GOAWAY, numbers that run out. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#include "link/framed_link.h"
#include "link/internal.h"
#include "tests/fakes/framed_stage.h"

enum {
    N = 4
};

static struct framed_caller callers[N];

/* Four requests under way. */
static void begin(struct framed_stage *stage)
{
    memset(callers, 0, sizeof callers);
    framed_stage_begin(stage);
    stage->server.holds = true;
    framed_stage_open(stage);
    for (int i = 0; i < N; i++)
        cr_assert(eq(int, framed_call(stage, &callers[i], "x"), 0));
    fake_settle(&stage->world);
    cr_assert(eq(uint, stage->server.n_asked, N));
}

static void expect_denied(unsigned from)
{
    for (unsigned i = 0; i < N; i++) {
        cr_assert(eq(uint, callers[i].user.closed, i + 1 > from), "caller %u", i + 1);
        if (callers[i].user.closed)
            cr_assert(eq(int, callers[i].user.lease.fate, POOL_NOT_SENT));
    }
}

Test(framed_leaving, those_up_to_the_last_id_finish_and_those_above_are_told_not_processed)
{
    struct framed_stage stage;

    begin(&stage);
    framed_session_goaway(stage.server.session, 2, 0, "");
    fake_settle(&stage.world);
    expect_denied(2);
    cr_assert(eq(int, link_state(framed_link_of(&stage)), LINK_DRAINING));
    framed_session_answer(stage.server.session, 1, "a", 1);
    framed_session_answer(stage.server.session, 2, "b", 1);
    fake_settle(&stage.world);
    cr_assert(eq(str, callers[0].answer, "a"));
    cr_assert(eq(str, callers[1].answer, "b"));
    cr_assert(eq(int, framed_send(&callers[0], "y", 1), LINKPOOL_ESTATE)); /* no more on this link */
    fake_give_back(&callers[0].user);
    fake_give_back(&callers[1].user);
    fake_settle(&stage.world);
    cr_assert(eq(u64, fake_stats(&stage.world).ends[LINK_CLOSED_BY_PEER], 1));
    framed_stage_end(&stage);
}

Test(framed_leaving, a_second_notice_may_lower_the_last_id)
{
    struct framed_stage stage;

    begin(&stage);
    framed_session_goaway(stage.server.session, UINT32_MAX, 0, "soon");
    fake_settle(&stage.world);
    expect_denied(N);
    cr_assert(eq(int, link_state(framed_link_of(&stage)), LINK_DRAINING));
    framed_session_goaway(stage.server.session, 3, 0, "now");
    fake_settle(&stage.world);
    expect_denied(3);
    framed_session_goaway(stage.server.session, 3, 0, "the same again");
    fake_settle(&stage.world);
    expect_denied(3);
    framed_session_goaway(stage.server.session, 0, 0, "none");
    fake_settle(&stage.world);
    expect_denied(0);
    framed_stage_end(&stage);
}

Test(framed_leaving, one_that_raises_it_is_a_protocol_error)
{
    struct framed_stage stage;

    begin(&stage);
    framed_session_goaway(stage.server.session, 2, 0, "");
    fake_settle(&stage.world);
    framed_session_goaway(stage.server.session, 3, 0, "");
    fake_settle(&stage.world);
    cr_assert(eq(int, callers[0].user.lease.reason, LINK_PROTOCOL_ERROR));
    cr_assert(eq(int, callers[0].user.lease.fate, POOL_SENT_NO_ANSWER));
    framed_stage_end(&stage);
}

Test(framed_leaving, who_has_sent_nothing_yet_is_told_not_processed)
{
    struct framed_caller quiet = {0}, answered = {0};
    struct framed_stage stage;

    begin(&stage);
    framed_hold(&stage, &quiet);
    cr_assert(eq(int, framed_call(&stage, &answered, "x"), 0));
    fake_settle(&stage.world);
    framed_session_answer(stage.server.session, N + 1, "a", 1);
    fake_settle(&stage.world);
    framed_session_goaway(stage.server.session, UINT32_MAX, 0, "");
    fake_settle(&stage.world);
    cr_assert(eq(uint, quiet.user.closed, 1));
    cr_assert(eq(int, quiet.user.lease.fate, POOL_NOT_SENT));
    cr_assert(eq(uint, answered.user.closed, 0)); /* it has what it wanted, and gives the channel back when it likes */
    framed_stage_end(&stage);
}

Test(framed_leaving, one_that_was_answered_and_then_refused_room_is_not_denied)
{
    static char bytes[8000];
    struct framed_caller caller = {0}, large = {0};
    struct framed_stage stage;

    memset(callers, 0, sizeof callers);
    framed_stage_begin(&stage);
    stage.options.max_queue = 4096;
    testing_send_buffer(stage.world.t, 2000);
    framed_stage_open(&stage);
    framed_hold(&stage, &large);
    cr_assert(eq(int, framed_call(&stage, &caller, "x"), 0));
    fake_settle(&stage.world);
    cr_assert(eq(uint, caller.answers, 1));
    testing_peer_window(stage.server.peer, 0);
    cr_assert(eq(int, framed_send(&large, bytes, sizeof bytes), 0));
    cr_assert(eq(int, framed_send(&caller, bytes, 10), LINKPOOL_EAGAIN));
    testing_peer_window(stage.server.peer, SIZE_MAX);
    fake_run(&stage.world, 0.1);
    cr_assert(eq(uint, caller.writables, 1)); /* it is told, and leaves it */
    framed_session_goaway(stage.server.session, UINT32_MAX, 0, "");
    fake_settle(&stage.world);
    cr_assert(eq(uint, caller.user.closed, 0));
    framed_stage_end(&stage);
}

Test(framed_leaving, what_was_in_line_does_not_go)
{
    static char bytes[5000];
    struct framed_caller large = {0}, queued = {0};
    struct framed_stage stage;

    memset(callers, 0, sizeof callers);
    framed_stage_begin(&stage);
    stage.server.holds = true;
    testing_send_buffer(stage.world.t, 2000);
    framed_stage_open(&stage);
    framed_hold(&stage, &large);
    framed_hold(&stage, &queued);
    testing_peer_window(stage.server.peer, 0);
    cr_assert(eq(int, framed_send(&large, bytes, sizeof bytes), 0));
    cr_assert(eq(int, framed_send(&queued, "x", 1), 0));
    framed_session_goaway(stage.server.session, UINT32_MAX, 0, "");
    fake_settle(&stage.world);
    cr_assert(eq(uint, queued.user.closed, 1));
    cr_assert(eq(int, queued.user.lease.fate, POOL_NOT_SENT));
    cr_assert(eq(uint, large.user.closed, 0));
    testing_peer_window(stage.server.peer, SIZE_MAX);
    fake_run(&stage.world, 0.1);
    cr_assert(eq(uint, stage.server.n_asked, 1));
    cr_assert(eq(sz, stage.server.asked[0].n, sizeof bytes));
    framed_stage_end(&stage);
}

/* It was gathered in that very read: nothing was in its way but the turn's end. */
Test(framed_leaving, what_was_asked_in_the_turn_of_the_notice_does_not_go)
{
    struct framed_caller caller = {.again = "y"};
    struct framed_stage stage;

    framed_stage_begin(&stage);
    stage.server.holds = true;
    framed_stage_open(&stage);
    cr_assert(eq(int, framed_call(&stage, &caller, "x"), 0));
    fake_settle(&stage.world);
    framed_session_answer(stage.server.session, 1, "z", 1);
    framed_session_goaway(stage.server.session, UINT32_MAX, 0, "");
    fake_run(&stage.world, 0.1);
    cr_assert(eq(int, caller.sent, 0));
    cr_assert(eq(uint, caller.user.closed, 1));
    cr_assert(eq(int, caller.user.lease.fate, POOL_NOT_SENT));
    cr_assert(eq(uint, stage.server.n_asked, 1));
    framed_stage_end(&stage);
}

Test(framed_leaving, a_link_that_is_closed_in_order_says_goodbye)
{
    struct framed_caller caller = {0};
    struct framed_stage stage;

    framed_stage_begin(&stage);
    framed_stage_open(&stage);
    cr_assert(eq(int, framed_call(&stage, &caller, "x"), 0));
    fake_settle(&stage.world);
    fake_give_back(&caller.user);
    fake_run(&stage.world, stage.world.host.idle_timeout + 1);
    cr_assert(eq(uint, stage.server.n_goaways, 1));
    cr_assert(eq(u32, stage.server.goaway_code, 0));
    framed_stage_end(&stage);
}

Test(framed_leaving, at_the_goodbye_nothing_goes_that_its_holder_was_told_is_lost)
{
    static char bytes[1988];
    struct framed_caller first = {0}, second = {0};
    struct framed_stage stage;

    framed_stage_begin(&stage);
    stage.server.holds = true;
    testing_send_buffer(stage.world.t, 2000);
    framed_stage_open(&stage);
    framed_hold(&stage, &first);
    framed_hold(&stage, &second);
    testing_peer_window(stage.server.peer, 0);
    cr_assert(eq(int, framed_send(&first, bytes, sizeof bytes), 0));
    cr_assert(eq(int, framed_send(&second, "x", 1), 0));
    fake_turn(&stage.world);
    testing_peer_window(stage.server.peer, 500);
    fake_turn(&stage.world); /* there is room in the socket, and the link has not heard of it */
    pool_free(stage.world.pool);
    stage.world.pool = NULL;
    testing_peer_window(stage.server.peer, SIZE_MAX);
    fake_run(&stage.world, 0.1);
    cr_assert(eq(str, stage.server.order, "qg"));
    framed_stage_end(&stage);
}

Test(framed_leaving, a_goodbye_is_said_from_within_a_callback_too)
{
    struct framed_caller caller = {0};
    struct framed_stage stage;

    framed_stage_begin(&stage);
    stage.world.host.max_uses = 1;
    framed_stage_open(&stage);
    caller.releases = true; /* while its answer is told */
    cr_assert(eq(int, framed_call(&stage, &caller, "x"), 0));
    fake_settle(&stage.world);
    cr_assert(eq(u64, fake_stats(&stage.world).ends[LINK_USED_UP], 1));
    cr_assert(eq(str, stage.server.order, "qg"));
    framed_stage_end(&stage);
}

/* ---- a link that is lost ---- */

Test(framed_leaving, when_a_link_is_lost_each_is_told_what_became_of_its_request)
{
    static char bytes[5000];
    struct framed_caller half = {0}, queued = {0}, refused = {0}, quiet = {0};
    struct framed_stage stage;

    framed_stage_begin(&stage);
    stage.server.holds = true;
    stage.options.max_queue = 4096;
    testing_send_buffer(stage.world.t, 2000);
    framed_stage_open(&stage);
    framed_hold(&stage, &half);
    framed_hold(&stage, &queued);
    framed_hold(&stage, &refused);
    framed_hold(&stage, &quiet);
    testing_peer_window(stage.server.peer, 0);
    cr_assert(eq(int, framed_send(&half, bytes, sizeof bytes), 0));
    cr_assert(eq(int, framed_send(&queued, bytes, 10), 0));
    cr_assert(eq(int, framed_send(&refused, bytes, 2000), LINKPOOL_EAGAIN));
    testing_peer_cut(stage.server.peer, LINK_RESET);
    fake_run(&stage.world, 0.1);
    cr_assert(eq(int, half.user.lease.fate, POOL_SENT_NO_ANSWER));
    cr_assert(eq(int, queued.user.lease.fate, POOL_NOT_SENT));
    cr_assert(eq(int, refused.user.lease.fate, POOL_NOT_SENT));
    cr_assert(eq(int, quiet.user.lease.fate, POOL_NOT_SENT));
    framed_stage_end(&stage);
}

Test(framed_leaving, an_empty_request_that_went_was_sent)
{
    struct framed_caller caller = {0};
    struct framed_stage stage;

    framed_stage_begin(&stage);
    stage.server.holds = true;
    framed_stage_open(&stage);
    framed_hold(&stage, &caller);
    cr_assert(eq(int, framed_send(&caller, NULL, 0), 0));
    fake_settle(&stage.world);
    testing_peer_cut(stage.server.peer, LINK_RESET);
    fake_run(&stage.world, 0.1);
    cr_assert(eq(int, caller.user.lease.fate, POOL_SENT_NO_ANSWER));
    framed_stage_end(&stage);
}

/* ---- numbers ---- */

static struct framed_link *state_of(struct framed_stage *stage)
{
    return framed_link_of(stage)->protocol.state;
}

Test(framed_leaving, a_link_whose_numbers_run_out_is_replaced)
{
    struct framed_caller caller = {0}, next = {0};
    struct framed_stage stage;

    framed_stage_begin(&stage);
    framed_stage_open(&stage);
    stage.server.holds = true;
    framed_hold(&stage, &caller);
    state_of(&stage)->writer.last_id = FRAMED_MAX_ID - FRAMED_LAST_IDS - 1;
    stage.server.calls.request = NULL;
    framed_session_free(NULL);
    cr_assert(eq(int, link_state(framed_link_of(&stage)), LINK_READY));
    state_of(&stage)->writer.last_id++;
    framed_session_ping(stage.server.session, "12345678");
    fake_settle(&stage.world);
    cr_assert(eq(int, link_state(framed_link_of(&stage)), LINK_DRAINING));
    cr_assert(eq(uint, caller.user.closed, 0));
    framed_session_ping(stage.server.session, "12345678"); /* it is led away once */
    fake_settle(&stage.world);
    cr_assert(eq(uint, stage.server.n_pongs, 2));
    cr_assert(eq(int, fake_ask(&stage.world, &next.user, framed_address), POOL_PENDING));
    state_of(&stage)->writer.last_id = FRAMED_MAX_ID - 1;
    cr_assert(eq(int, framed_send(&caller, "last", 4), 0)); /* those out go on while there are numbers */
    fake_turn(&stage.world);
    cr_assert(eq(u32, state_of(&stage)->writer.last_id, FRAMED_MAX_ID));
    cr_assert(eq(int, pool_release(&caller.user.lease, POOL_REUSE), 0));
    fake_run(&stage.world, 1);
    cr_assert(eq(int, next.user.status, POOL_READY));
    cr_assert(eq(u32, state_of(&stage)->writer.last_id, 0)); /* a new link */
    cr_assert(eq(u64, fake_stats(&stage.world).ends[LINK_USED_UP], 1));
    stage.server.fault[0] = '\0'; /* the server counts from 1 */
    framed_stage_end(&stage);
}

Test(framed_leaving, without_a_number_nothing_is_sent)
{
    struct framed_caller caller = {0};
    struct framed_stage stage;

    framed_stage_begin(&stage);
    framed_stage_open(&stage);
    framed_hold(&stage, &caller);
    state_of(&stage)->writer.last_id = FRAMED_MAX_ID;
    cr_assert(eq(int, framed_send(&caller, "x", 1), LINKPOOL_ESTATE));
    framed_stage_end(&stage);
}

/* ---- a pool that is drained ---- */

/* Closed and dialled again without a pause, it would be. */
Test(framed_leaving, while_draining_a_link_without_room_stays_for_those_who_wait)
{
    struct framed_caller caller = {0};
    struct framed_stage stage;

    framed_stage_begin(&stage);
    stage.server.calls.channels = 0;
    framed_stage_open(&stage);
    cr_assert(eq(int, fake_ask(&stage.world, &caller.user, framed_address), POOL_PENDING));
    cr_assert(eq(int, pool_drain(stage.world.pool, 3, NULL, NULL), 0));
    fake_run(&stage.world, 1);
    cr_assert(eq(uint, testing_peer_attempts(stage.server.peer), 1));
    framed_session_limit(stage.server.session, 1);
    fake_settle(&stage.world);
    cr_assert(eq(int, caller.user.status, POOL_READY));
    fake_give_back(&caller.user);
    fake_settle(&stage.world);
    cr_assert(eq(uint, stage.server.n_goaways, 1));
    framed_stage_end(&stage);
}
