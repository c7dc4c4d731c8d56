/* g6.c - REFERENCE's G6: a peer that stops in order, over framed links. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#include "tests/fakes/calls.h"
#include "tests/fakes/framed_stage.h"

static const char *const addresses[] = {"10.0.0.1:80", "10.0.0.2:80"};

enum {
    CALLS = 5,
    TAKEN = 2,           /* of those, by the first server as it stops */
    LARGEST = 2147483647 /* any id: it does not know yet */
};

static struct framed_stage stage;
static struct framed_peer other;
static struct fake_caller callers[CALLS];
static struct pool_target *target;

static void begin(size_t n_hosts)
{
    framed_stage_begin(&stage);
    stage.world.host.max_links = 4;
    stage.server.holds = true;
    framed_stage_open(&stage);
    if (n_hosts > 1)
        framed_peer_begin(&other, fake_peer(&stage.world, addresses[1], TESTING_ACCEPT));
    target = fake_target(&stage.world, "db", &pool_pick_first, addresses, n_hosts);
}

/* Calls to the first host, all of them out. */
static void call_all(unsigned retries)
{
    struct fake_user user = {0};

    fake_hold(&stage.world, &user, "db");
    fake_give_back(&user);
    for (int i = 0; i < CALLS; i++) {
        callers[i] = (struct fake_caller){.call = {.target = target, .retries = retries}};
        fake_call_out(&stage.world, &callers[i], "q");
    }
    cr_assert(eq(uint, stage.server.n_asked, CALLS));
}

static void answer_the_first(void *session)
{
    for (uint32_t id = 1; id <= TAKEN; id++)
        framed_session_answer(session, id, "done", 4);
}

/* It listens no more; says that it leaves, and a moment later what it still does; and does that within 0.4 s. */
static void stop_in_order(void)
{
    testing_peer_behave(stage.server.peer, TESTING_REFUSE);
    testing_at(stage.world.t, testing_now(stage.world.t) + 0.4, answer_the_first, stage.server.session);
    framed_session_goaway(stage.server.session, LARGEST, 0, "");
    fake_run(&stage.world, 0.1);
    for (int i = 0; i < CALLS; i++)
        cr_assert(eq(uint, callers[i].done, 0)); /* it may have taken all of them */
    framed_session_goaway(stage.server.session, TAKEN, 0, "");
    fake_run(&stage.world, 0.1);
}

static void expect_the_first_end_well(void)
{
    for (int i = 0; i < TAKEN; i++)
        cr_assert(eq(uint, callers[i].done, 0));
    fake_run(&stage.world, 0.3);
    for (int i = 0; i < TAKEN; i++) {
        fake_called(&callers[i], 0, POOL_NOT_SENT);
        cr_assert(eq(str, callers[i].answer, "done"));
    }
    cr_assert(eq(uint, testing_peer_open(stage.server.peer), 0)); /* and the old link is over */
}

Test(conformance, G6_calls_within_the_last_id_finish_and_later_ones_go_to_another_host)
{
    begin(2);
    call_all(1);
    stop_in_order();
    for (int i = TAKEN; i < CALLS; i++) {
        fake_called(&callers[i], 0, POOL_NOT_SENT);
        cr_assert(eq(uint, callers[i].call.attempts, 2));
        cr_assert(eq(str, (char *)pool_host_address(callers[i].call.last_host), (char *)addresses[1]));
    }
    cr_assert(eq(uint, other.n_asked, CALLS - TAKEN));
    cr_assert(eq(int, pool_target_state(target), LINK_READY));
    expect_the_first_end_well();
    cr_assert(eq(int, pool_target_state(target), LINK_READY));
    framed_stage_end(&stage);
}

Test(conformance, G6_later_ones_go_to_another_link_where_the_server_takes_one)
{
    begin(1);
    call_all(1);
    struct framed_session *old = stage.server.session;
    testing_at(stage.world.t, testing_now(stage.world.t) + 0.4, answer_the_first, old);
    framed_session_goaway(old, LARGEST, 0, "");
    stage.server.holds = false;
    framed_session_goaway(old, TAKEN, 0, "");
    fake_run(&stage.world, 0.2);
    for (int i = TAKEN; i < CALLS; i++)
        fake_called(&callers[i], 0, POOL_NOT_SENT);
    cr_assert(eq(uint, testing_peer_accepted(stage.server.peer), 2));
    fake_run(&stage.world, 0.3);
    for (int i = 0; i < TAKEN; i++)
        fake_called(&callers[i], 0, POOL_NOT_SENT);
    cr_assert(eq(uint, testing_peer_open(stage.server.peer), 1));
    framed_stage_end(&stage);
}

Test(conformance, G6_later_ones_fail_as_retryable_and_the_target_is_in_transient_failure)
{
    struct fake_caller late = {.call = {.to = "db"}}, patient = {.call = {.to = "db"}};

    begin(1);
    call_all(0);
    stop_in_order();
    for (int i = TAKEN; i < CALLS; i++) {
        fake_called(&callers[i], LINKPOOL_ELOST, POOL_NOT_SENT); /* nothing was done with them */
        cr_assert(eq(int, callers[i].call.reason, LINK_CLOSED_BY_PEER));
    }
    cr_assert(eq(int, fake_call(&stage.world, &late, "q"), POOL_PENDING)); /* the next use finds nobody there */
    fake_run(&stage.world, 0.01);
    cr_assert(eq(int, late.status, LINKPOOL_EUNAVAILABLE));
    cr_assert(eq(int, late.call.reason, LINK_REFUSED));
    cr_assert(eq(int, pool_target_state(target), LINK_BACKOFF));
    expect_the_first_end_well();
    cr_assert(eq(int, pool_target_state(target), LINK_BACKOFF)); /* whatever becomes of the old link */
    testing_peer_behave(stage.server.peer, TESTING_ACCEPT);
    stage.server.holds = false;
    patient.call.flags = POOL_CALL_WAIT_FOR_READY;
    fake_call_out(&stage.world, &patient, "q");
    fake_run(&stage.world, 1);
    fake_called(&patient, 0, POOL_NOT_SENT);
    cr_assert(eq(int, pool_target_state(target), LINK_READY));
    framed_stage_end(&stage);
}

/* Without anybody asking, where the target is kept up. */
Test(conformance, G6_a_target_that_is_kept_up_is_in_transient_failure_by_itself)
{
    begin(1);
    struct pool_target *kept = fake_target(&stage.world, "kept", &pool_round_robin, addresses, 1);
    pool_target_start(kept);
    call_all(0);
    struct fake_user user = {0};
    fake_hold(&stage.world, &user, "kept");
    fake_give_back(&user);
    stop_in_order();
    fake_run(&stage.world, 0.1);
    cr_assert(eq(int, pool_target_state(kept), LINK_BACKOFF));
    framed_stage_end(&stage);
}
