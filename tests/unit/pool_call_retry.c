/* pool_call_retry.c - what is tried again, where, and how often: never so that it makes an outage worse. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <string.h>

#include "pool/internal.h"
#include "tests/fakes/calls.h"

static const char a[] = "10.0.0.1:80", b[] = "10.0.0.2:80";

static struct fake_world world;
static struct fake_server *first, *second;
static struct pool_target *target;

/* Two servers, which say nothing by themselves, and a target of both. */
static void begin(const struct pool_picker *picker)
{
    fake_calls_begin(&world);
    world.backoff = backoff_edge; /* READY is proof at once: a loss is no verdict */
    fake_world_open(&world);
    first = fake_server(&world, a);
    second = fake_server(&world, b);
    first->holds = second->holds = true;
    target = fake_target(&world, "db", picker, (const char *const[]){a, b}, 2);
}

static void end(void)
{
    if (world.pool)
        cr_assert(eq(sz, world.pool->call_bytes, 0));
    fake_world_end(&world);
}

static struct fake_server *other_than(const struct fake_caller *caller)
{
    return strcmp(pool_host_address(caller->call.last_host), a) ? first : second;
}

static struct fake_server *one_of(const struct fake_caller *caller)
{
    return other_than(caller) == first ? second : first;
}

/* ---- what may be ---- */

Test(pool_call_retry, what_the_peer_did_nothing_with_goes_to_another_host)
{
    struct fake_caller caller = {.call = {.to = "db", .retries = 1}};

    begin(&pool_round_robin);
    fake_call_out(&world, &caller, "x");
    struct fake_server *tried = one_of(&caller), *other = other_than(&caller);
    fake_server_deny(tried, 0);
    fake_settle(&world);
    cr_assert(eq(uint, other->n, 1));
    fake_server_answer(other, 0, "other");
    fake_settle(&world);
    fake_called(&caller, 0, POOL_NOT_SENT);
    cr_assert(eq(str, caller.answer, "other"));
    cr_assert(eq(uint, caller.call.attempts, 2));
    end();
}

Test(pool_call_retry, where_there_is_one_host_it_is_tried_there_again)
{
    for (unsigned way = 0; way < 2; way++) {
        struct fake_caller caller = {.call = {.retries = 2}};
        begin(&pool_round_robin);
        if (way)
            caller.call.host = pool_host(world.pool, a);
        else
            caller.call.to = a;
        fake_call_out(&world, &caller, "x");
        if (way)
            pool_host_drop(caller.call.host);
        for (unsigned i = 0; i < 2; i++) {
            fake_server_deny(first, i);
            fake_settle(&world);
        }
        fake_server_answer(first, 2, NULL);
        fake_settle(&world);
        fake_called(&caller, 0, POOL_NOT_SENT);
        cr_assert(eq(uint, caller.call.attempts, 3));
        end();
    }
}

Test(pool_call_retry, an_error_of_the_peers_is_an_answer_and_not_tried_again)
{
    struct fake_caller caller = {.call = {.to = a, .retries = 3, .flags = POOL_CALL_SAFE_TO_REPEAT}};

    begin(&pool_round_robin);
    fake_call_out(&world, &caller, "x");
    fake_server_err(first, 0, "no");
    fake_settle(&world);
    fake_called(&caller, LINKPOOL_EPEER, POOL_SENT_NO_ANSWER);
    cr_assert(eq(uint, caller.call.attempts, 1));
    cr_assert(eq(uint, first->n, 1));
    end();
}

Test(pool_call_retry, tried_as_often_as_wished_and_no_more)
{
    for (unsigned retries = 0; retries < 4; retries++) {
        struct fake_caller caller = {.call = {.to = a, .retries = retries}};
        begin(&pool_round_robin);
        fake_call_out(&world, &caller, "x");
        for (unsigned i = 0; i < 6 && i < first->n; i++) {
            fake_server_deny(first, i);
            fake_settle(&world);
        }
        fake_called(&caller, LINKPOOL_ELOST, POOL_NOT_SENT);
        cr_assert(eq(int, caller.call.reason, LINK_PROTOCOL_ERROR));
        cr_assert(eq(uint, caller.call.attempts, retries + 1));
        cr_assert(eq(uint, first->n, retries + 1));
        end();
    }
}

Test(pool_call_retry, what_was_sent_is_tried_again_only_if_it_is_safe)
{
    for (unsigned safe = 0; safe < 2; safe++) {
        struct fake_caller caller = {.call = {.to = "db", .retries = 1, .flags = safe ? POOL_CALL_SAFE_TO_REPEAT : 0}};
        begin(&pool_round_robin);
        fake_call_out(&world, &caller, safe ? "x" : ""); /* an empty one is sent as well */
        struct fake_server *tried = one_of(&caller), *other = other_than(&caller);
        testing_peer_cut(tried->peer, LINK_RESET);
        fake_settle(&world);
        cr_assert(eq(uint, other->n, safe));
        if (safe)
            testing_peer_cut(other->peer, LINK_RESET);
        fake_settle(&world);
        fake_called(&caller, LINKPOOL_ELOST, POOL_SENT_NO_ANSWER);
        end();
    }
}

Test(pool_call_retry, what_was_sent_once_stays_so_though_the_next_try_was_not)
{
    struct fake_caller caller = {.call = {.to = "db", .retries = 2, .flags = POOL_CALL_SAFE_TO_REPEAT}};

    begin(&pool_round_robin);
    fake_call_out(&world, &caller, "x");
    struct fake_server *tried = one_of(&caller), *other = other_than(&caller);
    fake_calls_ways.is_full = true;
    testing_peer_cut(tried->peer, LINK_RESET);
    fake_settle(&world);
    cr_assert(eq(uint, caller.call.attempts, 2));
    cr_assert(eq(int, pool_drain(world.pool, INFINITY, NULL, NULL), 0)); /* no third */
    testing_peer_cut(other->peer, LINK_RESET);
    fake_settle(&world);
    fake_called(&caller, LINKPOOL_ELOST, POOL_SENT_NO_ANSWER);
    end();
}

Test(pool_call_retry, one_that_was_not_taken_yet_is_tried_again)
{
    struct fake_caller caller = {.call = {.to = "db", .retries = 1}};

    begin(&pool_round_robin);
    fake_calls_ways.is_full = true;
    fake_call_out(&world, &caller, "x");
    struct fake_server *tried = one_of(&caller), *other = other_than(&caller);
    fake_calls_ways.is_full = false;
    testing_peer_cut(tried->peer, LINK_RESET);
    fake_settle(&world);
    fake_server_answer(other, 0, NULL);
    fake_settle(&world);
    fake_called(&caller, 0, POOL_NOT_SENT);
    end();
}

Test(pool_call_retry, a_time_out_is_not_tried_again)
{
    struct fake_caller caller = {.call = {.to = "db", .timeout = 1, .retries = 9, .flags = POOL_CALL_SAFE_TO_REPEAT}};

    begin(&pool_round_robin);
    fake_call_out(&world, &caller, "x");
    fake_run(&world, 20);
    fake_called(&caller, LINKPOOL_ETIMEDOUT, POOL_SENT_NO_ANSWER);
    cr_assert(eq(uint, caller.call.attempts, 1));
    end();
}

Test(pool_call_retry, where_it_cannot_be_tried_the_loss_is_what_is_told)
{
    struct fake_caller caller = {.call = {.to = a, .retries = 1, .flags = POOL_CALL_SAFE_TO_REPEAT}};

    begin(&pool_round_robin);
    fake_call_out(&world, &caller, "x");
    pool_host_drain(fake_host(&world, a), INFINITY); /* who asks it is told that it is closed */
    testing_peer_cut(first->peer, LINK_RESET);
    fake_settle(&world);
    fake_called(&caller, LINKPOOL_ELOST, POOL_SENT_NO_ANSWER);
    cr_assert(eq(int, caller.call.reason, LINK_RESET));
    end();
}

/* ---- whom it may ask ---- */

Test(pool_call_retry, where_the_next_try_is_refused_the_loss_is_what_is_told)
{
    struct fake_caller caller = {.call = {.to = a, .retries = 5}};

    begin(&pool_round_robin);
    fake_call_out(&world, &caller, "x");
    fake_calls_ways.error = LINKPOOL_EINVAL; /* of the next send() */
    fake_server_deny(first, 0);
    fake_settle(&world);
    fake_called(&caller, LINKPOOL_ELOST, POOL_NOT_SENT);
    cr_assert(eq(uint, caller.call.attempts, 2));
    cr_assert(eq(uint, first->n, 1));
    cr_assert(eq(uint, fake_stats(&world).leased, 0));
    end();
}

Test(pool_call_retry, a_removed_target_is_not_asked_again_nor_touched_once_it_is_gone)
{
    struct fake_caller caller = {.call = {.to = "db", .retries = 3}};

    begin(&pool_round_robin);
    fake_call_out(&world, &caller, "x");
    struct fake_server *tried = one_of(&caller);
    pool_target_remove(target);
    fake_settle(&world);
    fake_server_deny(tried, 0);
    fake_settle(&world);
    fake_called(&caller, LINKPOOL_ELOST, POOL_NOT_SENT);
    cr_assert(eq(uint, caller.call.attempts, 1));
    cr_assert(eq(ptr, world.pool->removed, NULL)); /* the last that kept it was this call */
    end();
}

static struct fake_caller *lost_while_telling;

static void remove_and_lose(struct pool_lease *lease)
{
    (void)lease;
    pool_target_remove(target);
    fake_calls_end(0, true);
}

/* What is lost while others are told is told a turn later: by then its target would be gone. */
Test(pool_call_retry, a_target_is_there_until_its_calls_are_told)
{
    struct fake_caller caller = {.call = {.to = "db", .retries = 3}};
    struct fake_user user = {.lease = {.timeout = 0.5}};

    begin(&pool_pick_first);
    lost_while_telling = &caller;
    fake_peer(&world, "10.0.0.9:80", TESTING_BLACK_HOLE);
    fake_ask(&world, &user, "10.0.0.9:80");
    fake_settle(&world);
    user.lease.done = remove_and_lose;
    fake_call_out(&world, &caller, "x");
    fake_run(&world, 1);
    fake_called(&caller, LINKPOOL_ELOST, POOL_NOT_SENT);
    end();
}

Test(pool_call_retry, a_name_that_means_something_else_by_now_is_not_asked)
{
    struct fake_caller caller = {.call = {.retries = 1}};
    char name[] = "db";

    begin(&pool_pick_first);
    caller.call.to = name;
    fake_call_out(&world, &caller, "x");
    memset(name, 'z', sizeof name - 1); /* read during pool_call() alone */
    struct fake_server *tried = one_of(&caller), *other = other_than(&caller);
    fake_server_deny(tried, 0);
    fake_settle(&world);
    cr_assert(eq(uint, first->n + second->n, 2));
    fake_server_answer(other->n ? other : tried, other->n ? 0 : 1, NULL);
    fake_settle(&world);
    fake_called(&caller, 0, POOL_NOT_SENT);
    end();
}

Test(pool_call_retry, its_host_is_there_until_it_is_over_and_no_longer)
{
    struct fake_caller caller = {.call = {.to = a, .timeout = INFINITY, .retries = 1}};

    begin(&pool_round_robin);
    pool_target_remove(target);
    fake_call_out(&world, &caller, "x");
    cr_assert(eq(uint, fake_host(&world, a)->pins, 1));
    fake_server_deny(first, 0);
    fake_settle(&world);
    fake_server_answer(first, 1, NULL);
    fake_settle(&world);
    fake_called(&caller, 0, POOL_NOT_SENT);
    cr_assert(eq(uint, fake_host(&world, a)->pins, 0));
    fake_run(&world, 1000);
    cr_assert(eq(ptr, fake_host(&world, a), NULL));
    end();
}

Test(pool_call_retry, no_pin_is_left_whatever_the_outcome)
{
    for (unsigned outcome = 0; outcome < 5; outcome++) {
        struct fake_caller caller = {.call = {.to = "db", .timeout = 3, .retries = 2}};
        begin(&pool_round_robin);
        fake_call_out(&world, &caller, "x");
        struct fake_server *other = other_than(&caller);
        fake_server_deny(one_of(&caller), 0);
        fake_settle(&world);
        if (outcome == 0)
            fake_server_answer(other, 0, NULL);
        else if (outcome == 1)
            testing_peer_cut(other->peer, LINK_RESET);
        else if (outcome == 2)
            pool_call_cancel(&caller.call);
        else if (outcome == 3)
            pool_after_fork(world.pool);
        fake_run(&world, 10);
        cr_assert(eq(uint, fake_host(&world, a)->pins, 0));
        cr_assert(eq(uint, fake_host(&world, b)->pins, 0));
        cr_assert(eq(uint, target->n_calls, 0));
        end();
    }
}

/* ---- the budget ---- */

static struct fake_caller many[1000];

/* n calls at once, each lost, and each to be tried as often as may be. Returns how many requests the server saw. */
static unsigned outage(unsigned n)
{
    unsigned seen = first->n;

    for (unsigned i = 0; i < n; i++) {
        many[i] = (struct fake_caller){.call = {.to = a, .retries = 10, .flags = POOL_CALL_SAFE_TO_REPEAT}};
        cr_assert(eq(int, fake_call(&world, &many[i], "x"), POOL_PENDING));
    }
    for (unsigned i = 0; i < 40; i++) {
        fake_turn(&world);
        for (unsigned k = seen; k < first->n; k++)
            fake_server_deny(first, k);
        seen = first->n;
        if (!fake_stats(&world).leased && !fake_stats(&world).waiting)
            break;
    }
    for (unsigned i = 0; i < n; i++)
        cr_assert(eq(uint, many[i].done, 1));
    return seen;
}

Test(pool_call_retry, an_outage_makes_a_fifth_more_attempts_at_most)
{
    begin(&pool_round_robin);
    world.host.max_links = 1;
    unsigned seen = outage(1000);
    cr_assert(le(uint, seen, 1200));
    cr_assert(lt(uint, 1000, seen));
    end();
}

Test(pool_call_retry, three_a_second_are_always_allowed)
{
    begin(&pool_round_robin);
    unsigned calls = 5, seen = outage(calls); /* a fifth of them would be one */
    cr_assert(eq(uint, seen, calls + 3));
    fake_run(&world, 1);
    seen = first->n;
    cr_assert(eq(uint, outage(1), seen + 1 + 3));
    end();
}

/* Where calls come fast enough to pay for them the three are within the fifth, not on top of it. */
Test(pool_call_retry, the_bound_is_the_more_of_both_not_their_sum)
{
    unsigned calls = 0;

    begin(&pool_round_robin);
    for (unsigned n = 0; n < 20; n++) {
        fake_run(&world, floor(testing_now(world.t)) + 1.1 - testing_now(world.t));
        for (unsigned tenth = 0; tenth < 5; tenth++, calls += 20) {
            outage(20);
            fake_run(&world, 0.1);
        }
    }
    cr_assert(le(uint, first->n - calls, calls / 5 + 3));
    cr_assert(ge(uint, first->n - calls, calls / 5 - 23));
    end();
}

Test(pool_call_retry, what_a_quiet_time_saves_is_bounded)
{
    begin(&pool_round_robin);
    first->holds = false;
    for (unsigned i = 0; i < 3000; i++) {
        struct fake_caller caller = {.call = {.to = a}};
        fake_call_out(&world, &caller, "x");
        cr_assert(eq(int, caller.status, 0));
    }
    first->holds = true;
    unsigned before = first->n;
    cr_assert(le(uint, outage(200) - before, 200 + 100 + 40));
    end();
}
