/* n_calls.c - REFERENCE's N, and of G and R what is about requests: calls over shared links, in a pool. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/fakes/calls.h"

#define A "10.0.0.1:80"

enum {
    FRAMES = 1024 /* N7's */
};

static struct fake_caller callers[FRAMES + 1];
static char texts[FRAMES + 1][8];

static struct fake_server *begin(struct fake_world *world)
{
    fake_calls_begin(world);
    fake_world_open(world);
    return fake_server(world, A);
}

static int call(struct fake_world *world, unsigned i)
{
    snprintf(texts[i], sizeof texts[i], "%u", i);
    callers[i].call.to = A;
    return fake_call(world, &callers[i], texts[i]);
}

static void call_all(struct fake_world *world, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++)
        cr_assert(eq(int, call(world, i), POOL_PENDING));
}

static void expect_in_order(const struct fake_server *server, unsigned n)
{
    cr_assert(eq(uint, server->n, n));
    for (unsigned i = 0; i < n; i++)
        cr_assert(eq(str, (char *)server->requests[i].text, texts[i]), "frame %u", i);
}

static void expect_all(unsigned from, unsigned to, int status)
{
    for (unsigned i = from; i < to; i++) {
        cr_assert(eq(uint, callers[i].done, 1), "call %u", i);
        cr_assert(eq(int, callers[i].status, status), "call %u", i);
    }
}

/* ---- N7, N8, N9 ---- */

static void on_none(struct pool_call *call)
{
    (void)call;
    cr_fatal("told of a call that was refused");
}

Test(conformance, N7_requests_not_yet_written_queue_under_two_bounds)
{
    struct fake_world world;
    struct fake_server *server = begin(&world);
    struct fake_caller big = {.call = {.to = A}};
    static char payload[1 << 20], larger[(8 << 20) + 1];

    testing_peer_delay(server->peer, 1, 0);
    big.call.request = larger;
    big.call.request_size = sizeof larger;
    big.call.done = on_none;
    cr_assert(eq(int, pool_call(world.pool, &big.call), LINKPOOL_EFULL)); /* alone as it is */
    cr_assert(eq(int, big.call.bound, POOL_BOUND_CALL_BYTES));
    call_all(&world, 0, FRAMES);
    cr_assert(eq(int, call(&world, FRAMES), LINKPOOL_EFULL));
    cr_assert(eq(int, callers[FRAMES].call.bound, POOL_BOUND_LINE));
    fake_run(&world, 2);
    cr_assert(eq(uint, callers[FRAMES].done, 0)); /* nothing was kept */
    expect_all(0, FRAMES, 0);
    fake_calls_ways.is_full = true; /* ready, and taking nothing */
    big.call.request = payload;
    big.call.request_size = sizeof payload;
    big.call.done = callers[0].call.done;
    for (unsigned i = 0; i < 8; i++) {
        callers[i].call.request = payload;
        callers[i].call.request_size = sizeof payload;
        cr_assert(eq(int, pool_call(world.pool, &callers[i].call), POOL_PENDING));
    }
    cr_assert(eq(int, pool_call(world.pool, &big.call), LINKPOOL_EFULL));
    cr_assert(eq(int, big.call.bound, POOL_BOUND_CALL_BYTES));
    for (unsigned i = 0; i < 8; i++)
        cr_assert(eq(int, pool_call_cancel(&callers[i].call), 0));
    fake_world_end(&world);
}

Test(conformance, N8_a_queued_request_past_its_deadline_is_not_sent)
{
    struct fake_world world;
    struct fake_server *server = begin(&world);

    testing_peer_delay(server->peer, 1, 0);
    callers[0].call.timeout = 0.5;
    call_all(&world, 0, 3);
    fake_run(&world, 0.9);
    expect_all(0, 1, LINKPOOL_ETIMEDOUT);
    fake_run(&world, 1);
    expect_all(0, 1, LINKPOOL_ETIMEDOUT);
    expect_all(1, 3, 0);
    cr_assert(eq(str, (char *)fake_server_heard(server), "1 2"));
    fake_calls_ways.is_full = true;
    call_all(&world, 3, 6);
    fake_settle(&world);
    pool_free(world.pool);
    world.pool = NULL;
    expect_all(3, 6, LINKPOOL_ECLOSED);
    fake_world_end(&world);
}

static struct fake_world *the_world;

static void call_next(void *data)
{
    unsigned *next = data;

    cr_assert(eq(int, call(the_world, (*next)++), POOL_PENDING));
}

static void call_in_the_same_turn(struct fake_caller *caller)
{
    static unsigned next = 20;

    if (caller == &callers[0])
        call_next(&next);
}

/* Before the link is ready, within the turn in which it is, while those who won are told, and after. */
Test(conformance, N9_requests_are_sent_in_the_order_of_the_calls)
{
    struct fake_world world;
    struct fake_server *server = begin(&world);
    unsigned next = 10;

    the_world = &world;
    fake_calls_ways.room = 50;
    testing_peer_delay(server->peer, 0.01, 0);
    double at = testing_now(world.t) + 0.01;
    call_all(&world, 0, 10);
    for (unsigned i = 0; i < 10; i++)
        testing_at(world.t, at, call_next, &next);
    fake_run(&world, 0.1);
    expect_in_order(server, 20);
    callers[0] = (struct fake_caller){.then = call_in_the_same_turn};
    memset(callers + 1, 0, sizeof callers[0] * 20);
    server->n = 0;
    fake_calls_ways.takes = 7; /* and where the protocol takes only a few at a time */
    fake_calls_ways.room = 50;
    call_all(&world, 0, 20);
    for (unsigned i = 0; i < 4; i++) {
        fake_settle(&world);
        fake_calls_ways.takes = 7;
        fake_calls_let();
    }
    fake_settle(&world);
    expect_in_order(server, 21);
    fake_world_end(&world);
}

/* ---- N10, N13, G4, R5 ---- */

Test(conformance, N10_an_answer_finds_its_call_and_a_lost_link_fails_all_its_calls)
{
    struct fake_world world;
    struct fake_server *server = begin(&world);

    server->holds = true;
    call_all(&world, 0, 8);
    fake_settle(&world);
    for (unsigned i = 8; i-- > 4;)
        fake_server_answer(server, i, NULL);
    fake_settle(&world);
    expect_all(4, 8, 0);
    for (unsigned i = 4; i < 8; i++)
        cr_assert(eq(str, callers[i].answer, texts[i]));
    testing_peer_cut(server->peer, LINK_RESET);
    fake_settle(&world);
    expect_all(0, 4, LINKPOOL_ELOST);
    for (unsigned i = 0; i < 4; i++)
        cr_assert(eq(int, callers[i].call.fate, POOL_SENT_NO_ANSWER));
    fake_world_end(&world);
}

Test(conformance, N13_a_failed_write_closes_the_link)
{
    struct fake_world world;
    struct fake_server *server = begin(&world);

    server->holds = true;
    call_all(&world, 0, 3);
    fake_settle(&world);
    testing_fail_call(world.t, TESTING_SENDMSG, 1, EPIPE, false);
    call_all(&world, 3, 4);
    fake_settle(&world);
    expect_all(0, 4, LINKPOOL_ELOST);
    for (unsigned i = 0; i < 4; i++) {
        cr_assert(eq(int, callers[i].call.system_errno, EPIPE));
        cr_assert(eq(int, callers[i].call.fate, i < 3 ? POOL_SENT_NO_ANSWER : POOL_NOT_SENT));
    }
    cr_assert(eq(uint, testing_peer_open(server->peer), 0));
    fake_world_end(&world);
}

Test(conformance, G4_a_call_is_told_in_the_turn_in_which_its_server_stops)
{
    struct fake_world world;
    struct fake_server *server = begin(&world);

    server->holds = true;
    call_all(&world, 0, 2);
    fake_settle(&world);
    testing_peer_cut(server->peer, LINK_CLOSED_BY_PEER);
    fake_turn(&world);
    expect_all(0, 2, LINKPOOL_ELOST);
    cr_assert(eq(int, callers[0].call.reason, LINK_CLOSED_BY_PEER));
    server->holds = false;
    callers[2].call.flags = POOL_CALL_WAIT_FOR_READY;
    call_all(&world, 2, 3);
    fake_run(&world, 1);
    expect_all(2, 3, 0);
    fake_world_end(&world);
}

Test(conformance, R5_requests_made_while_disconnected_go_out_after_the_reconnect)
{
    struct fake_world world;
    struct fake_server *server = begin(&world);

    call_all(&world, 0, 1);
    fake_settle(&world);
    testing_peer_behave(server->peer, TESTING_REFUSE);
    testing_peer_cut(server->peer, LINK_RESET);
    fake_settle(&world);
    for (unsigned i = 1; i < 6; i++) {
        callers[i].call.flags = POOL_CALL_WAIT_FOR_READY;
        call_all(&world, i, i + 1);
        fake_run(&world, 0.1);
    }
    testing_peer_behave(server->peer, TESTING_ACCEPT);
    fake_run(&world, 3);
    expect_all(0, 6, 0);
    expect_in_order(server, 6);
    fake_world_end(&world);
}
