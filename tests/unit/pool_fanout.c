/* pool_fanout.c - many calls as one: how many are enough, what becomes of the rest, when it is told. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <string.h>

#include "pool/internal.h"
#include "tests/fakes/calls.h"

static const char a[] = "10.0.0.1:80", b[] = "10.0.0.2:80", c[] = "10.0.0.3:80";

enum {
    MANY = 1000
};

static struct fake_world world;
static struct fake_server *server;
static struct pool_call calls[MANY];
static struct pool_fanout group;
static unsigned told, own_told;
static double told_at;
static void (*then)(void);

static void on_group(struct pool_fanout *one)
{
    cr_assert(eq(ptr, one, &group));
    told++;
    told_at = testing_now(world.t);
    if (then)
        then();
}

static void on_own(struct pool_call *call)
{
    (void)call;
    own_told++;
}

static void begin(size_t n, size_t wanted)
{
    fake_calls_begin(&world);
    fake_world_open(&world);
    server = fake_server(&world, a);
    server->holds = true;
    memset(calls, 0, sizeof calls);
    memset(&group, 0, sizeof group);
    told = own_told = 0;
    then = NULL;
    for (size_t i = 0; i < n; i++)
        calls[i] = (struct pool_call){.to = a, .request = "x", .request_size = 1};
    group = (struct pool_fanout){.calls = calls, .n = n, .wanted = wanted, .done = on_group};
}

static void warm(void)
{
    struct fake_caller first = {.call = {.to = a}};

    server->holds = false;
    fake_call_out(&world, &first, "warm");
    server->holds = true;
    server->n = 0;
}

static void start(void)
{
    cr_assert(eq(int, pool_fanout(world.pool, &group), POOL_PENDING));
    cr_assert(eq(uint, told + own_told, 0), "told before pool_fanout() returned");
}

static void expect(int status, size_t answered, size_t failed)
{
    cr_assert(eq(uint, told, 1));
    cr_assert(eq(int, group.status, status));
    cr_assert(eq(sz, group.answered, answered));
    cr_assert(eq(sz, group.failed, failed));
}

static unsigned count(int status)
{
    unsigned n = 0;

    for (size_t i = 0; i < group.n; i++)
        n += calls[i].status == status;
    return n;
}

static void free_pool(void)
{
    struct pool *pool = world.pool;

    world.pool = NULL;
    pool_free(pool);
}

static void end(void)
{
    if (world.pool) {
        cr_assert(eq(sz, world.pool->call_bytes, 0));
        cr_assert(eq(ptr, world.pool->groups, NULL));
        cr_assert(eq(int, pool_fanout_cancel(&group), LINKPOOL_ESTATE));
    }
    fake_world_end(&world);
}

static void answer(unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++)
        fake_server_answer(server, i, NULL);
    fake_settle(&world);
}

/* ---- how many are enough ---- */

Test(pool_fanout, all_are_awaited_and_it_is_told_in_the_turn_of_the_last)
{
    begin(5, 0);
    start();
    fake_settle(&world);
    answer(0, 4);
    cr_assert(eq(uint, told, 0));
    cr_assert(eq(int, group.status, POOL_PENDING));
    double at = testing_now(world.t);
    answer(4, 5);
    expect(0, 5, 0);
    cr_assert(le(dbl, told_at, at + 1e-6));
    end();
}

Test(pool_fanout, k_of_n_are_enough_and_the_rest_is_given_up_without_a_word)
{
    struct fake_caller next = {.call = {.to = a}};

    begin(6, 2);
    for (unsigned i = 0; i < 6; i++)
        calls[i].done = on_own;
    start();
    fake_settle(&world);
    answer(3, 5);
    expect(0, 2, 0);
    cr_assert(eq(uint, own_told, 2));
    cr_assert(eq(uint, count(0), 2));
    cr_assert(eq(uint, count(LINKPOOL_ECANCELLED), 4));
    for (unsigned i = 0; i < 6; i++)
        cr_assert(eq(int, calls[i].fate, i == 3 || i == 4 ? POOL_NOT_SENT : POOL_SENT_NO_ANSWER));
    fake_call_out(&world, &next, "next");
    answer(0, 3); /* their answers reach nobody */
    answer(5, 6);
    cr_assert(eq(uint, next.done, 0));
    cr_assert(eq(uint, fake_calls_ways.swallowed, 4));
    cr_assert(eq(uint, fake_calls_ways.strays, 0));
    answer(6, 7);
    cr_assert(eq(str, next.answer, "next"));
    cr_assert(eq(uint, own_told, 2));
    end();
}

Test(pool_fanout, two_answers_in_one_turn_tell_it_once)
{
    begin(3, 1);
    start();
    fake_settle(&world);
    for (unsigned i = 0; i < 3; i++)
        fake_server_answer(server, i, NULL);
    fake_settle(&world);
    expect(0, 1, 0);
    cr_assert(eq(uint, count(LINKPOOL_ECANCELLED), 2));
    end();
}

Test(pool_fanout, when_too_many_have_failed_it_is_told)
{
    begin(5, 3);
    start();
    fake_settle(&world);
    answer(0, 1);
    fake_server_deny(server, 1);
    fake_server_deny(server, 2);
    fake_settle(&world);
    cr_assert(eq(uint, told, 0));
    fake_server_deny(server, 3);
    fake_settle(&world);
    expect(LINKPOOL_ELOST, 1, 3);
    cr_assert(eq(uint, count(LINKPOOL_ELOST), 3));
    cr_assert(eq(uint, count(LINKPOOL_ECANCELLED), 1));
    end();
}

Test(pool_fanout, heard_out_it_is_told_when_each_has_answered_or_failed)
{
    begin(5, 2);
    group.flags = POOL_FANOUT_HEAR_ALL;
    start();
    fake_settle(&world);
    answer(0, 3); /* enough */
    cr_assert(eq(uint, told, 0));
    fake_server_deny(server, 3);
    fake_settle(&world);
    cr_assert(eq(uint, told, 0));
    answer(4, 5);
    expect(0, 4, 1);
    cr_assert(eq(uint, count(LINKPOOL_ECANCELLED), 0));
    end();
}

Test(pool_fanout, heard_out_it_goes_on_when_too_many_have_failed)
{
    begin(4, 0);
    group.flags = POOL_FANOUT_HEAR_ALL;
    calls[0].flags = 1 << 30; /* cannot be started */
    start();
    fake_settle(&world);
    fake_server_deny(server, 0);
    fake_settle(&world);
    cr_assert(eq(uint, told, 0));
    answer(1, 3);
    expect(LINKPOOL_ELOST, 2, 2);
    cr_assert(eq(int, calls[0].status, LINKPOOL_EINVAL));
    cr_assert(eq(int, calls[1].status, LINKPOOL_ELOST));
    end();
}

Test(pool_fanout, heard_out_it_has_what_there_is_at_its_deadline)
{
    for (size_t wanted = 2; wanted <= 3; wanted++) {
        begin(4, wanted);
        group.flags = POOL_FANOUT_HEAR_ALL;
        group.timeout = 3;
        start();
        fake_settle(&world);
        answer(0, 2);
        fake_server_deny(server, 2);
        fake_run(&world, 2.9);
        cr_assert(eq(uint, told, 0));
        fake_run(&world, 0.2);
        expect(wanted == 2 ? 0 : LINKPOOL_ETIMEDOUT, 2, 1);
        cr_assert(eq(int, calls[3].status, LINKPOOL_ETIMEDOUT));
        end();
    }
}

Test(pool_fanout, an_error_of_a_peer_is_no_answer_to_it)
{
    begin(3, 2);
    start();
    fake_settle(&world);
    fake_server_err(server, 0, "no");
    answer(1, 2);
    fake_settle(&world);
    cr_assert(eq(uint, told, 0));
    cr_assert(eq(sz, group.failed, 1));
    answer(2, 3);
    expect(0, 2, 1);
    cr_assert(eq(uint, count(LINKPOOL_EPEER), 1));
    end();
}

Test(pool_fanout, at_its_deadline_it_has_what_there_is)
{
    static const double group_times[] = {2, 0}, call_times[] = {INFINITY, 0};

    for (unsigned i = 0; i < 2; i++) { /* its own time, and all by default, where both are due at once */
        begin(5, 0);
        for (unsigned k = 0; k < 5; k++)
            calls[k].timeout = call_times[i];
        group.timeout = group_times[i];
        warm();
        double since = testing_now(world.t);
        start();
        fake_settle(&world);
        answer(0, 2);
        fake_run(&world, 20);
        cr_assert(eq(uint, told, 1));
        cr_assert(eq(int, group.status, LINKPOOL_ETIMEDOUT));
        cr_assert(eq(sz, group.answered, 2));
        cr_assert(epsilon_eq(dbl, told_at - since, i ? 5 : 2, 1e-6));
        cr_assert(eq(uint, count(LINKPOOL_ETIMEDOUT), 3)); /* each says why it is missing */
        cr_assert(eq(int, calls[4].fate, POOL_SENT_NO_ANSWER));
        end();
    }
}

Test(pool_fanout, at_its_deadline_each_call_says_what_ate_its_time)
{
    begin(3, 0);
    fake_peer(&world, b, TESTING_BLACK_HOLE);
    fake_peer(&world, c, TESTING_REFUSE);
    calls[1].to = b;
    calls[2].to = c;
    calls[2].flags = POOL_CALL_WAIT_FOR_READY;
    group.timeout = 1;
    start();
    fake_run(&world, 2);
    expect(LINKPOOL_ETIMEDOUT, 0, 0);
    cr_assert(eq(int, calls[0].stage, POOL_STAGE_NONE)); /* its peer */
    cr_assert(eq(int, calls[0].fate, POOL_SENT_NO_ANSWER));
    cr_assert(eq(int, calls[1].stage, POOL_STAGE_CONNECT));
    cr_assert(eq(int, calls[1].fate, POOL_NOT_SENT));
    cr_assert(eq(int, calls[2].stage, POOL_STAGE_BACKOFF));
    cr_assert(eq(int, calls[2].reason, LINK_REFUSED));
    end();
}

Test(pool_fanout, a_link_silent_until_the_deadline_three_times_is_ended)
{
    begin(1, 0);
    group.timeout = 1;
    for (unsigned i = 0; i < 3; i++) {
        cr_assert(eq(uint, testing_peer_open(server->peer), i > 0));
        start();
        fake_run(&world, 2);
        expect(LINKPOOL_ETIMEDOUT, 0, 0);
        told = 0;
    }
    cr_assert(eq(uint, testing_peer_open(server->peer), 0));
    end();
}

Test(pool_fanout, without_a_time_it_waits_for_its_calls)
{
    begin(3, 0);
    group.timeout = INFINITY;
    for (unsigned i = 0; i < 3; i++)
        calls[i].timeout = 50;
    start();
    fake_run(&world, 49);
    cr_assert(eq(uint, told, 0));
    fake_run(&world, 2);
    expect(LINKPOOL_ELOST, 0, 1);
    end();
}

/* ---- calls that cannot be started ---- */

Test(pool_fanout, a_call_that_cannot_be_started_has_failed)
{
    begin(4, 3);
    calls[1].to = "no address";
    start();
    cr_assert(eq(int, calls[1].status, LINKPOOL_EADDRESS));
    fake_settle(&world);
    answer(0, 3);
    expect(0, 3, 1);
    end();
}

Test(pool_fanout, once_it_cannot_be_had_the_rest_is_not_sent)
{
    begin(5, 4);
    calls[1].to = calls[2].to = NULL;
    calls[4].answer = "old";
    start();
    cr_assert(eq(uint, told, 0));
    fake_settle(&world);
    expect(LINKPOOL_ELOST, 0, 2);
    cr_assert(eq(uint, server->n, 0)); /* not even the first: it had still to wait for its link */
    cr_assert(eq(int, calls[3].status, LINKPOOL_ECANCELLED));
    cr_assert(eq(int, calls[4].status, LINKPOOL_ECANCELLED));
    cr_assert(eq(ptr, (void *)calls[4].answer, NULL));
    end();
}

static void start_anew(void)
{
    if (told < 4)
        cr_assert(eq(int, pool_fanout(world.pool, &group), POOL_PENDING));
}

Test(pool_fanout, one_that_fails_at_once_and_is_started_anew_leaves_turns_between)
{
    begin(1, 0);
    calls[0].to = "no address";
    then = start_anew;
    start();
    for (unsigned i = 1; i <= 4; i++) {
        fake_turn(&world);
        cr_assert(eq(uint, told, i));
    }
    end();
}

static void expect_refused(int error)
{
    cr_assert(eq(int, pool_fanout(world.pool, &group), error));
    if (error != LINKPOOL_ESTATE)
        cr_assert(eq(int, group.status, error));
    fake_settle(&world);
    cr_assert(eq(uint, told, 0));
    cr_assert(eq(uint, server->n, 0));
}

Test(pool_fanout, what_cannot_be_meant_is_refused)
{
    static const double times[] = {-1, -INFINITY, NAN, 4e8};

    begin(3, 0);
    for (unsigned i = 0; i < 4; i++) {
        group.timeout = times[i];
        expect_refused(LINKPOOL_EINVAL);
    }
    group.timeout = 0;
    group.wanted = 4;
    expect_refused(LINKPOOL_EINVAL);
    group.wanted = 0;
    group.n = 0;
    expect_refused(LINKPOOL_EINVAL);
    group.n = 3;
    group.calls = NULL;
    expect_refused(LINKPOOL_EINVAL);
    group.calls = calls;
    group.done = NULL;
    expect_refused(LINKPOOL_EINVAL);
    group.done = on_group;
    group.flags = POOL_FANOUT_HEAR_ALL << 1;
    expect_refused(LINKPOOL_EINVAL);
    group.flags = 0;
    pool_drain(world.pool, 10, NULL, NULL);
    expect_refused(LINKPOOL_ECLOSED);
    end();
}

Test(pool_fanout, a_call_is_in_one_group_at_a_time)
{
    struct pool_fanout other = {.calls = calls + 2, .n = 3, .done = on_group};

    begin(4, 0);
    start();
    cr_assert(eq(int, pool_fanout(world.pool, &group), LINKPOOL_ESTATE));
    cr_assert(eq(int, pool_fanout(world.pool, &other), LINKPOOL_ESTATE)); /* shares two with the first */
    cr_assert(eq(int, pool_fanout_cancel(&other), LINKPOOL_ESTATE));
    calls[0].done = on_own;
    cr_assert(eq(int, pool_call(world.pool, &calls[0]), LINKPOOL_ESTATE));
    fake_settle(&world);
    answer(0, 4);
    expect(0, 4, 0);
    end();
}

/* ---- given up by the user ---- */

Test(pool_fanout, a_call_given_up_by_the_user_counts_as_failed_and_nothing_is_told_inside)
{
    begin(4, 3);
    for (unsigned i = 0; i < 4; i++)
        calls[i].done = on_own;
    start();
    fake_settle(&world);
    cr_assert(eq(int, pool_call_cancel(&calls[0]), 0));
    fake_settle(&world);
    cr_assert(eq(uint, told, 0));
    cr_assert(eq(int, pool_call_cancel(&calls[1]), 0));
    cr_assert(eq(uint, told, 0)); /* from the loop */
    cr_assert(eq(int, pool_call_cancel(&calls[2]), LINKPOOL_ESTATE));
    fake_settle(&world);
    expect(LINKPOOL_ELOST, 0, 2);
    cr_assert(eq(uint, own_told, 0));
    end();
}

/* Outside the loop a driver's clock goes on whenever the end of the turn is asked for: time is up before it has rung.
 */
Test(pool_fanout, one_given_up_outside_the_loop_may_find_time_up_and_the_last_link_led_away)
{
    begin(2, 2);
    group.timeout = 1;
    warm();
    start();
    fake_settle(&world);
    fake_calls_going(NULL);
    world.pool->core.driver->now += 1;
    cr_assert(eq(int, pool_call_cancel(&calls[0]), 0)); /* the other holds the link alone now, which ends with it */
    cr_assert(eq(int, calls[1].status, LINKPOOL_ETIMEDOUT));
    fake_settle(&world);
    expect(LINKPOOL_ETIMEDOUT, 0, 1);
    end();
}

Test(pool_fanout, any_time_above_none_is_one)
{
    static const double times[] = {1e-6, 5e-7, 1e-9, 1e-300};

    for (unsigned i = 0; i < sizeof times / sizeof *times; i++) {
        begin(2, 0);
        group.timeout = times[i];
        start();
        cr_assert(eq(uint, told, 0));
        fake_settle(&world);
        fake_run(&world, 1);
        expect(LINKPOOL_ETIMEDOUT, 0, 0);
        end();
    }
}

Test(pool_fanout, given_up_it_tells_nothing_and_leaves_nothing)
{
    for (unsigned moment = 0; moment < 4; moment++) {
        begin(3, 0);
        if (moment == 1)
            warm();
        for (unsigned i = 0; i < 3; i++)
            calls[i].done = on_own;
        if (moment == 3)
            calls[0].to = NULL; /* decided at once, and untold */
        start();
        if (moment == 2)
            fake_settle(&world);
        cr_assert(eq(int, pool_fanout_cancel(&group), 0));
        cr_assert(eq(int, group.status, LINKPOOL_ECANCELLED));
        cr_assert(eq(int, pool_fanout_cancel(&group), LINKPOOL_ESTATE));
        cr_assert(eq(sz, world.pool->call_bytes, 0));
        fake_run(&world, 20);
        cr_assert(eq(uint, told + own_told, 0));
        end();
    }
}

/* ---- what may be done inside ---- */

static void on_own_cancels(struct pool_call *call)
{
    on_own(call);
    cr_assert(eq(int, pool_fanout_cancel(&group), 0)); /* decided, and not told yet */
    memset(&group, 0, sizeof group);                   /* it is the user's again */
}

Test(pool_fanout, the_last_calls_own_done_may_give_up_the_group)
{
    begin(2, 0);
    calls[1].done = on_own_cancels;
    start();
    fake_settle(&world);
    answer(0, 2);
    fake_run(&world, 10);
    cr_assert(eq(uint, own_told, 1));
    cr_assert(eq(uint, told, 0));
    end();
}

static void on_own_again(struct pool_call *call)
{
    on_own(call);
    if (own_told == 1)
        cr_assert(eq(int, pool_call(world.pool, call), POOL_PENDING));
}

Test(pool_fanout, a_call_may_be_made_again_by_its_own_done_and_is_of_no_group_then)
{
    begin(3, 2);
    calls[0].done = on_own_again;
    start();
    fake_settle(&world);
    answer(0, 2);
    expect(0, 2, 0);
    cr_assert(eq(int, calls[0].status, POOL_PENDING));
    answer(3, 4);
    cr_assert(eq(int, calls[0].status, 0));
    cr_assert(eq(uint, own_told, 2));
    cr_assert(eq(uint, told, 1));
    end();
}

static void on_own_frees(struct pool_call *call)
{
    on_own(call);
    free_pool();
}

Test(pool_fanout, a_calls_own_done_may_free_the_pool)
{
    for (unsigned last = 0; last < 2; last++) {
        begin(3, last ? 1 : 0);
        calls[0].done = on_own_frees;
        start();
        fake_settle(&world);
        answer(0, 1);
        cr_assert(eq(ptr, world.pool, NULL));
        if (last)
            expect(0, 1, 0);
        else
            expect(LINKPOOL_ELOST, 1, 1);
        fake_run(&world, 1);
        end();
    }
}

Test(pool_fanout, its_done_may_free_the_pool_from_any_outcome)
{
    for (unsigned outcome = 0; outcome < 4; outcome++) {
        begin(3, 0);
        then = free_pool;
        if (outcome == 3)
            calls[2].to = NULL;
        start();
        if (outcome < 3)
            fake_settle(&world);
        if (outcome == 0)
            answer(0, 3);
        else if (outcome == 1)
            testing_peer_cut(server->peer, LINK_RESET);
        fake_run(&world, 20);
        cr_assert(eq(uint, told, 1));
        cr_assert(eq(ptr, world.pool, NULL));
        end();
    }
}

static void start_in_the_void(void)
{
    struct pool_fanout other = {.calls = calls, .n = 1, .done = on_group};

    cr_assert(eq(int, pool_fanout(server ? group.data : NULL, &other), LINKPOOL_ECLOSED));
}

static struct pool_fanout second;
static unsigned second_told;

static void on_second(struct pool_fanout *one)
{
    (void)one;
    second_told++;
}

static void give_up_second(void)
{
    cr_assert(eq(int, pool_fanout_cancel(&second), 0));
}

Test(pool_fanout, its_done_may_give_up_another_that_was_decided_with_it)
{
    begin(2, 0);
    warm();
    second_told = 0;
    group.n = 1;
    second = (struct pool_fanout){.calls = calls + 1, .n = 1, .done = on_second};
    then = give_up_second;
    start();
    cr_assert(eq(int, pool_fanout(world.pool, &second), POOL_PENDING));
    fake_settle(&world);
    answer(0, 2);
    expect(0, 1, 0);
    cr_assert(eq(uint, second_told, 0));
    cr_assert(eq(int, second.status, LINKPOOL_ECANCELLED));
    end();
}

/* Another call runs out of time with the group, and takes the link with it. */
Test(pool_fanout, at_its_deadline_a_call_lost_in_that_turn_is_told_no_more)
{
    struct fake_caller other = {.call = {.to = a, .timeout = 1}};

    begin(2, 0);
    warm();
    world.host.max_unanswered = 1;
    cr_assert(eq(int, pool_host_set_options(fake_host(&world, a), &world.host), 0));
    group.timeout = 1;
    double asked = testing_now(world.t);
    fake_call(&world, &other, "o");
    start();
    fake_run(&world, 5);
    fake_called(&other, LINKPOOL_ETIMEDOUT, POOL_SENT_NO_ANSWER);
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_TIMED_OUT], 1));
    expect(LINKPOOL_ETIMEDOUT, 0, 0);
    cr_assert(epsilon_eq(dbl, told_at - asked, 1, 1e-5));
    cr_assert(eq(uint, count(LINKPOOL_ETIMEDOUT), 2));
    cr_assert(eq(uint, fake_stats(&world).leased, 0));
    end();
}

/* The end of a drain is due with it, and rings first. */
Test(pool_fanout, at_its_deadline_a_call_that_failed_in_that_turn_is_told_no_more)
{
    struct fake_user early = {.lease.timeout = 0.5};

    begin(2, 0);
    testing_peer_behave(server->peer, TESTING_BLACK_HOLE);
    group.timeout = 1;
    fake_ask(&world, &early, a);
    start();
    cr_assert(eq(int, pool_drain(world.pool, 1, NULL, NULL), 0));
    fake_run(&world, 5);
    expect(LINKPOOL_ETIMEDOUT, 0, 0);
    cr_assert(eq(uint, fake_stats(&world).waiting, 0));
    end();
}

Test(pool_fanout, without_memory_for_its_deadline_it_is_refused)
{
    static struct pool_fanout groups[64];
    unsigned refused = 0;

    begin(64, 0);
    warm();
    testing_fail_allocation(world.t, 1, true);
    for (unsigned i = 0; i < 64; i++) {
        groups[i] = (struct pool_fanout){.calls = calls + i, .n = 1, .done = on_second};
        refused += pool_fanout(world.pool, &groups[i]) == LINKPOOL_ENOMEM;
    }
    cr_assert(ne(uint, refused, 0));
    cr_assert(ne(uint, refused, 64));
    testing_fail_allocation(world.t, 0, false);
    second_told = 0;
    fake_run(&world, 20);
    cr_assert(eq(uint, second_told, 64 - refused));
    end();
}

Test(pool_fanout, pool_free_tells_it_decided_or_not)
{
    for (unsigned decided = 0; decided < 2; decided++) {
        begin(3, 0);
        group.data = world.pool;
        then = start_in_the_void;
        calls[0].done = calls[2].done = on_own;
        if (decided)
            calls[2].to = NULL;
        start();
        if (!decided)
            fake_settle(&world);
        free_pool();
        cr_assert(eq(uint, told, 1));
        cr_assert(eq(int, group.status, LINKPOOL_ELOST));
        cr_assert(eq(int, calls[0].status, decided ? LINKPOOL_ECANCELLED : LINKPOOL_ECLOSED));
        end();
    }
}

Test(pool_fanout, a_child_forgets_it_without_a_word)
{
    for (unsigned decided = 0; decided < 2; decided++) {
        begin(3, 0);
        if (decided)
            calls[2].to = NULL;
        start();
        if (!decided)
            fake_settle(&world);
        pool_after_fork(world.pool);
        cr_assert(eq(int, group.status, LINKPOOL_ECLOSED));
        fake_run(&world, 20);
        cr_assert(eq(uint, told, 0));
        for (unsigned i = 0; i < 3; i++)
            calls[i].to = a;
        server->holds = false;
        start(); /* and can be started again */
        fake_settle(&world);
        expect(0, 3, 0);
        end();
    }
}

/* ---- many ---- */

Test(pool_fanout, a_thousand_calls_share_links)
{
    begin(MANY, 0);
    world.host.max_links = 10;
    server->holds = false;
    for (unsigned i = 0; i < MANY; i++)
        calls[i].done = on_own;
    start();
    fake_run(&world, 1);
    expect(0, MANY, 0);
    cr_assert(eq(uint, own_told, MANY));
    cr_assert(le(uint, testing_peer_accepted(server->peer), 10));
    end();
}

Test(pool_fanout, a_thousand_calls_lost_at_once_tell_it_once)
{
    begin(MANY, MANY - 1);
    warm();
    start();
    fake_settle(&world);
    testing_peer_cut(server->peer, LINK_RESET);
    fake_run(&world, 10);
    cr_assert(eq(uint, told, 1));
    cr_assert(eq(sz, group.failed, 2));
    end();
}

Test(pool_fanout, two_hosts_one_down_give_what_there_is)
{
    begin(4, 2);
    fake_peer(&world, b, TESTING_REFUSE);
    calls[2].to = calls[3].to = b;
    server->holds = false;
    start();
    fake_run(&world, 10);
    cr_assert(eq(int, group.status, 0));
    cr_assert(eq(sz, group.answered, 2));
    end();
}

Test(pool_fanout, without_memory_it_fails_and_leaves_nothing)
{
    for (unsigned nth = 1, met = 1; met; nth++) {
        begin(40, 0);
        server->holds = false;
        testing_fail_allocation(world.t, nth, false);
        uint64_t before = testing_allocations(world.t);
        int status = pool_fanout(world.pool, &group);
        cr_assert(status == POOL_PENDING || status == LINKPOOL_ENOMEM);
        fake_run(&world, 20);
        met = testing_allocations(world.t) - before >= nth;
        cr_assert(eq(uint, told, status == POOL_PENDING));
        end();
    }
}
