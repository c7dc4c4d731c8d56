/* pool_call.c - one request and its answer: its outcome, its order, its time, its end. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <string.h>

#include "pool/internal.h"
#include "tests/fakes/calls.h"
#include "tests/fakes/shared.h"

static const char a[] = "10.0.0.1:80", b[] = "10.0.0.2:80";

static struct fake_server *begin(struct fake_world *world)
{
    fake_calls_begin(world);
    fake_world_open(world);
    return fake_server(world, a);
}

/* The world ends with nothing left of any call. */
static void end(struct fake_world *world)
{
    if (world->pool)
        cr_assert(eq(sz, world->pool->call_bytes, 0));
    fake_world_end(world);
}

/* A link is up, and nobody uses it. */
static void warm(struct fake_world *world)
{
    struct fake_caller first = {.call = {.to = a}};

    fake_call_out(world, &first, "warm");
    cr_assert(eq(int, first.status, 0));
}

/* ---- answers ---- */

Test(pool_call, the_answer_is_told_once_and_the_channel_is_given_back)
{
    struct fake_caller caller = {.call = {.to = a}};
    struct fake_world world;

    begin(&world);
    cr_assert(eq(int, fake_call(&world, &caller, "hello"), POOL_PENDING));
    cr_assert(eq(sz, world.pool->call_bytes, 5));
    fake_run(&world, 10);
    fake_called(&caller, 0, POOL_NOT_SENT);
    cr_assert(eq(str, caller.answer, "hello"));
    cr_assert(eq(sz, caller.call.answer_size, 5));
    cr_assert(eq(uint, caller.call.attempts, 1));
    cr_assert(eq(ptr, caller.call.last_host, fake_host(&world, a)));
    cr_assert(eq(uint, fake_stats(&world).leased, 0));
    cr_assert(eq(int, pool_call_cancel(&caller.call), LINKPOOL_ESTATE));
    end(&world);
}

Test(pool_call, a_call_can_be_to_a_host_or_a_target_too)
{
    struct fake_caller by_host = {0}, by_target = {0}, by_name = {.call = {.to = "db"}};
    struct fake_world world;

    begin(&world);
    by_host.call.host = pool_host(world.pool, a);
    by_target.call.target = fake_target(&world, "db", &pool_round_robin, (const char *const[]){a}, 1);
    fake_call_out(&world, &by_host, "h");
    fake_call_out(&world, &by_target, "t");
    fake_call_out(&world, &by_name, "n");
    cr_assert(eq(str, by_host.answer, "h"));
    cr_assert(eq(str, by_target.answer, "t"));
    cr_assert(eq(str, by_name.answer, "n"));
    for (unsigned i = 0; i < 2; i++) /* as it is, again */
        fake_call_out(&world, &by_host, "again");
    cr_assert(eq(uint, by_host.done, 3));
    end(&world);
}

Test(pool_call, answers_find_their_calls_in_any_order)
{
    struct fake_caller callers[5] = {0};
    struct fake_world world;
    static const char *const texts[5] = {"0", "1", "2", "3", "4"};
    struct fake_server *server = begin(&world);

    server->holds = true;
    for (unsigned i = 0; i < 5; i++) {
        callers[i].call.to = a;
        fake_call(&world, &callers[i], texts[i]);
    }
    fake_settle(&world);
    cr_assert(eq(str, (char *)fake_server_heard(server), "0 1 2 3 4"));
    for (unsigned i = 5; i--;)
        fake_server_answer(server, i, NULL);
    fake_settle(&world);
    for (unsigned i = 0; i < 5; i++) {
        fake_called(&callers[i], 0, POOL_NOT_SENT);
        cr_assert(eq(str, callers[i].answer, (char *)texts[i]));
        cr_assert(eq(uint, callers[i].place, 5 - i));
    }
    end(&world);
}

Test(pool_call, an_error_of_the_peers_is_told_with_its_code_and_words)
{
    struct fake_caller caller = {.call = {.to = a}}, next = {.call = {.to = a}};
    struct fake_world world;
    struct fake_server *server = begin(&world);

    server->holds = true;
    fake_call_out(&world, &caller, "x");
    fake_server_err(server, 0, "no such key");
    fake_settle(&world);
    fake_called(&caller, LINKPOOL_EPEER, POOL_SENT_NO_ANSWER);
    cr_assert(eq(uint, caller.call.code, 7));
    cr_assert(eq(str, caller.answer, "no such key"));
    cr_assert(eq(int, caller.call.reason, LINK_NO_REASON));
    fake_call_out(&world, &next, "y"); /* the link goes on */
    fake_server_answer(server, 1, NULL);
    fake_settle(&world);
    fake_called(&next, 0, POOL_NOT_SENT);
    cr_assert(eq(uint, testing_peer_accepted(server->peer), 1));
    end(&world);
}

Test(pool_call, what_is_no_plain_character_of_a_peers_words_becomes_a_dot)
{
    struct fake_caller caller = {.call = {.to = a}};
    struct fake_world world;
    struct fake_server *server = begin(&world);

    server->holds = true;
    fake_call_out(&world, &caller, "x");
    fake_server_err(server, 0, "~no \x7f\x1b\n\xff!");
    fake_settle(&world);
    cr_assert(eq(str, caller.call.words, "~no ....!"));
    end(&world);
}

/* A driver of several sockets has told it of another answer meanwhile. */
static void deliver_first(struct fake_caller *caller)
{
    (void)caller;
    fake_calls_deliver(0, "within");
}

Test(pool_call, an_answer_may_come_while_another_is_told)
{
    struct fake_caller callers[2] = {{.call = {.to = a}, .then = deliver_first}, {.call = {.to = a}}};
    struct fake_world world;
    struct fake_server *server = begin(&world);

    server->holds = true;
    for (unsigned i = 0; i < 2; i++)
        fake_call_out(&world, &callers[i], "x");
    fake_server_answer(server, 0, NULL);
    fake_settle(&world);
    fake_called(&callers[0], 0, POOL_NOT_SENT);
    fake_called(&callers[1], 0, POOL_NOT_SENT);
    cr_assert(eq(str, callers[1].answer, "within"));
    cr_assert(eq(uint, fake_stats(&world).idle, 1));
    end(&world);
}

Test(pool_call, a_peer_that_answers_with_errors_has_answered)
{
    struct fake_caller silent = {.call = {.to = a, .timeout = 1}}, heard = {.call = {.to = a}};
    struct fake_world world;
    struct fake_server *server;

    fake_calls_begin(&world);
    world.host.max_unanswered = 2;
    fake_world_open(&world);
    server = fake_server(&world, a);
    server->holds = true;
    for (unsigned i = 0; i < 6; i += 2) { /* never two in a row */
        silent.done = heard.done = 0;
        fake_call_out(&world, &silent, "silent");
        testing_run_for(world.t, 1);
        fake_called(&silent, LINKPOOL_ETIMEDOUT, POOL_SENT_NO_ANSWER);
        fake_call_out(&world, &heard, "heard");
        fake_server_err(server, i + 1, "");
        fake_settle(&world);
        fake_called(&heard, LINKPOOL_EPEER, POOL_SENT_NO_ANSWER);
    }
    cr_assert(eq(uint, testing_peer_open(server->peer), 1));
    end(&world);
}

Test(pool_call, an_empty_request_and_an_empty_answer_are_as_any)
{
    struct fake_caller caller = {.call = {.to = a}};
    struct fake_world world;

    begin(&world);
    fake_call_out(&world, &caller, NULL);
    fake_called(&caller, 0, POOL_NOT_SENT);
    cr_assert(eq(sz, caller.call.answer_size, 0));
    end(&world);
}

static void look_at_the_answer(struct fake_caller *caller)
{
    memcpy(caller->answer, caller->call.answer, caller->call.answer_size);
}

/* Its bytes are the protocol's, and giving the channel back is what ends the link. */
static void expect_answer_outlives_link(void (*spoil)(struct fake_world *world), unsigned max_uses)
{
    struct fake_caller caller = {.call = {.to = a, .retries = 1}, .then = look_at_the_answer};
    struct fake_world world;
    struct fake_server *server;

    fake_calls_begin(&world);
    world.host.max_uses = max_uses;
    fake_world_open(&world);
    server = fake_server(&world, a);
    server->holds = true;
    fake_call_out(&world, &caller, "q");
    if (spoil)
        spoil(&world);
    fake_server_answer(server, 0, "answer");
    fake_settle(&world);
    fake_called(&caller, 0, POOL_NOT_SENT);
    cr_assert(eq(str, caller.answer, "answer"));
    cr_assert(eq(uint, testing_peer_open(server->peer), 0));
    end(&world);
}

static void leave(struct fake_world *world)
{
    (void)world;
    fake_calls_going(NULL);
}

static void drain_host(struct fake_world *world)
{
    cr_assert(eq(int, pool_host_drain(fake_host(world, a), INFINITY), 0));
}

static void drain_pool(struct fake_world *world)
{
    cr_assert(eq(int, pool_drain(world->pool, INFINITY, NULL, NULL), 0));
}

static void recycle(struct fake_world *world)
{
    cr_assert(eq(int, pool_host_recycle(fake_host(world, a), 0), 0));
}

Test(pool_call, the_answer_is_there_until_done_returns_though_its_link_ends_with_it)
{
    expect_answer_outlives_link(NULL, 1);
    expect_answer_outlives_link(leave, 0);
    expect_answer_outlives_link(drain_host, 0);
    expect_answer_outlives_link(drain_pool, 0);
    expect_answer_outlives_link(recycle, 0);
}

static void drain_and_look(struct fake_caller *caller)
{
    pool_host_drain(caller->call.last_host, INFINITY);
    look_at_the_answer(caller);
}

Test(pool_call, the_answer_is_there_though_done_drains_its_host)
{
    struct fake_caller caller = {.call = {.to = a}, .then = drain_and_look};
    struct fake_world world;
    struct fake_server *server = begin(&world);

    fake_call_out(&world, &caller, "answer");
    cr_assert(eq(str, caller.answer, "answer"));
    cr_assert(eq(uint, testing_peer_open(server->peer), 0));
    end(&world);
}

static const void *heard_at;
static size_t heard_n;
static char heard[8];

static void release_and_look(struct channel *channel, const void *bytes, size_t n)
{
    pool_release(channel_lease(channel), POOL_REUSE);
    heard_at = bytes;
    heard_n = n;
    memcpy(heard, bytes, n);
}

Test(pool_call, the_bytes_of_a_message_outlive_the_release_of_its_channel)
{
    static const struct channel_events events = {.message = release_and_look};
    struct fake_user user = {0};
    struct fake_world world;
    struct fake_server *server;

    fake_calls_begin(&world);
    world.host.max_uses = 1;
    fake_world_open(&world);
    server = fake_server(&world, a);
    fake_hold(&world, &user, a);
    channel_watch(user.lease.channel, &events, LINKPOOL_READ);
    cr_assert(eq(int, channel_send(user.lease.channel, "text", 4), 0));
    fake_settle(&world);
    cr_assert(eq(str, heard, "text"));
    cr_assert(eq(uint, testing_peer_open(server->peer), 0));
    end(&world);
}

Test(pool_call, a_call_on_a_warm_link_allocates_nothing)
{
    struct fake_caller callers[8] = {0};
    struct fake_world world;

    begin(&world);
    for (unsigned round = 0; round < 2; round++) {
        uint64_t before = testing_allocations(world.t);
        for (unsigned i = 0; i < 8; i++) {
            callers[i].call.to = a;
            fake_call(&world, &callers[i], "x");
        }
        uint64_t asked = testing_allocations(world.t);
        fake_settle(&world);
        cr_assert(round == 0 || asked == before);
    }
    end(&world);
}

/* ---- what is refused ---- */

static void expect_refused(struct fake_world *world, struct fake_caller caller, const char *text)
{
    struct fake_caller kept = caller;

    kept.call.answer = "old";
    kept.call.attempts = 7;
    kept.call.system_errno = 7;
    kept.call.fate = POOL_UNKNOWN;
    cr_assert(eq(int, fake_call(world, &kept, text), LINKPOOL_EINVAL));
    cr_assert(eq(int, kept.call.status, LINKPOOL_EINVAL));
    cr_assert(eq(ptr, (void *)kept.call.answer, NULL));
    cr_assert(eq(uint, kept.call.attempts, 0));
    cr_assert(eq(int, kept.call.system_errno, 0));
    cr_assert(eq(int, kept.call.fate, POOL_NOT_SENT));
    fake_settle(world);
    cr_assert(eq(uint, kept.done, 0));
}

Test(pool_call, what_cannot_be_meant_is_refused)
{
    static const double times[] = {-1, -INFINITY, NAN, 4e8};
    struct fake_world world, other;
    struct pool_call call = {.to = a};

    begin(&world);
    begin(&other);
    struct pool_host *host = pool_host(world.pool, a), *elsewhere = pool_host(other.pool, a);
    struct pool_target *target = fake_target(&world, "db", &pool_round_robin, (const char *const[]){a}, 1);
    struct pool_target *far = fake_target(&other, "db", &pool_round_robin, (const char *const[]){a}, 1);
    for (unsigned i = 0; i < 4; i++)
        expect_refused(&world, (struct fake_caller){.call = {.to = a, .timeout = times[i]}}, "x");
    expect_refused(&world, (struct fake_caller){0}, "x");
    expect_refused(&world, (struct fake_caller){.call = {.to = a, .host = host}}, "x");
    expect_refused(&world, (struct fake_caller){.call = {.to = a, .target = target}}, "x");
    expect_refused(&world, (struct fake_caller){.call = {.host = host, .target = target}}, "x");
    expect_refused(&world, (struct fake_caller){.call = {.host = elsewhere}}, "x");
    expect_refused(&world, (struct fake_caller){.call = {.target = far}}, "x");
    for (unsigned bit = 0; bit < 32; bit++)
        if (1u << bit != POOL_CALL_WAIT_FOR_READY && 1u << bit != POOL_CALL_SAFE_TO_REPEAT)
            expect_refused(&world, (struct fake_caller){.call = {.to = a, .flags = 1u << bit}}, "x");
    cr_assert(eq(int, pool_call(world.pool, &call), LINKPOOL_EINVAL)); /* no `done` */
    struct fake_caller empty = {.call = {.to = a}, .world = &world};
    fake_call_out(&world, &empty, NULL);
    empty.call.request = NULL;
    empty.call.request_size = 1;
    cr_assert(eq(int, pool_call(world.pool, &empty.call), LINKPOOL_EINVAL));
    cr_assert(eq(sz, world.pool->call_bytes, 0));
    end(&other);
    end(&world);
}

Test(pool_call, what_an_acquire_refuses_is_what_the_call_is_told)
{
    struct fake_caller caller = {.call = {.to = "no address"}}, full[2] = {{.call = {.to = a}}, {.call = {.to = b}}};
    struct fake_caller line[2] = {{.call = {.to = a}}, {.call = {.to = a}}};
    struct fake_world world;

    fake_calls_begin(&world);
    world.options.max_hosts = 1;
    world.options.max_line = 1;
    fake_world_open(&world);
    fake_peer(&world, a, TESTING_BLACK_HOLE);
    cr_assert(eq(int, fake_call(&world, &caller, "x"), LINKPOOL_EADDRESS));
    cr_assert(eq(int, fake_call(&world, &full[0], "x"), POOL_PENDING));
    cr_assert(eq(int, fake_call(&world, &full[1], "x"), LINKPOOL_EFULL));
    cr_assert(eq(int, full[1].call.bound, POOL_BOUND_HOSTS));
    cr_assert(eq(int, fake_call(&world, &line[0], "x"), LINKPOOL_EFULL));
    cr_assert(eq(int, line[0].call.bound, POOL_BOUND_LINE));
    fake_run(&world, 3.02);
    cr_assert(eq(int, fake_call(&world, &line[1], "x"), LINKPOOL_EUNAVAILABLE));
    cr_assert(eq(int, line[1].call.reason, LINK_TIMED_OUT));
    cr_assert(eq(int, pool_drain(world.pool, 0, NULL, NULL), 0));
    cr_assert(eq(int, fake_call(&world, &line[1], "x"), LINKPOOL_ECLOSED));
    end(&world);
}

Test(pool_call, one_that_is_under_way_is_left_alone)
{
    struct fake_caller caller = {.call = {.to = a}};
    struct fake_world world;

    begin(&world);
    cr_assert(eq(int, fake_call(&world, &caller, "x"), POOL_PENDING));
    cr_assert(eq(int, pool_call(world.pool, &caller.call), LINKPOOL_ESTATE));
    cr_assert(eq(int, caller.call.status, POOL_PENDING));
    fake_settle(&world);
    fake_called(&caller, 0, POOL_NOT_SENT);
    end(&world);
}

Test(pool_call, a_protocol_without_messages_carries_no_calls)
{
    struct fake_caller cold = {.call = {.to = a}}, at_once = {.call = {.to = a}};
    struct fake_world world;

    fake_world_begin(&world);
    fake_world_open(&world);
    fake_echo(&world, a);
    fake_call_out(&world, &cold, "x");
    fake_called(&cold, LINKPOOL_EOPTION, POOL_NOT_SENT);
    cr_assert(eq(int, fake_call(&world, &at_once, "x"), LINKPOOL_EOPTION));
    cr_assert(eq(uint, fake_stats(&world).leased, 0));
    end(&world);
}

Test(pool_call, what_the_protocol_refuses_is_the_calls_outcome)
{
    struct fake_caller cold = {.call = {.to = a}}, at_once = {.call = {.to = a}};
    struct fake_world world;

    begin(&world);
    fake_calls_ways.error = LINKPOOL_EINVAL;
    fake_call_out(&world, &cold, "x");
    fake_called(&cold, LINKPOOL_EINVAL, POOL_NOT_SENT);
    fake_calls_ways.error = LINKPOOL_EINVAL;
    cr_assert(eq(int, fake_call(&world, &at_once, "x"), LINKPOOL_EINVAL));
    fake_settle(&world);
    cr_assert(eq(uint, at_once.done, 0));
    end(&world);
}

/* ---- the bound of bytes ---- */

Test(pool_call, the_bytes_of_those_that_wait_are_bounded)
{
    struct fake_caller callers[4] = {
        {.call = {.to = a}}, {.call = {.to = a}}, {.call = {.to = a}}, {.call = {.to = a}}};
    struct fake_world world;

    fake_calls_begin(&world);
    world.options.max_call_bytes = 10;
    fake_world_open(&world);
    fake_server(&world, a);
    cr_assert(eq(int, fake_call(&world, &callers[0], "123456"), POOL_PENDING));
    cr_assert(eq(int, fake_call(&world, &callers[1], "12345"), LINKPOOL_EFULL));
    cr_assert(eq(int, callers[1].call.bound, POOL_BOUND_CALL_BYTES));
    cr_assert(eq(int, fake_call(&world, &callers[2], "1234"), POOL_PENDING)); /* just so */
    cr_assert(eq(sz, world.pool->call_bytes, 10));
    callers[3].call.request = "";
    callers[3].call.request_size = SIZE_MAX;
    callers[3].call.done = callers[0].call.done;
    cr_assert(eq(int, pool_call(world.pool, &callers[3].call), LINKPOOL_EFULL));
    fake_settle(&world);
    cr_assert(eq(sz, world.pool->call_bytes, 0));
    fake_call_out(&world, &callers[1], "1234567890");
    cr_assert(eq(int, callers[1].status, 0));
    world.options.max_call_bytes = 0;
    char text[100];
    cr_assert(eq(int, pool_options_check(&world.options, text, sizeof text), LINKPOOL_EINVAL));
    cr_assert(ne(ptr, strstr(text, "max_call_bytes"), NULL));
    end(&world);
}

Test(pool_call, one_that_need_not_wait_may_be_of_any_size)
{
    struct fake_caller large = {.call = {.to = a}}, small = {.call = {.to = a}};
    struct fake_world world;

    fake_calls_begin(&world);
    world.options.max_call_bytes = 1;
    fake_world_open(&world);
    fake_server(&world, a);
    cr_assert(eq(int, fake_call(&world, &large, "large"), LINKPOOL_EFULL)); /* alone as it is */
    cr_assert(eq(int, large.call.bound, POOL_BOUND_CALL_BYTES));
    cr_assert(eq(sz, world.pool->call_bytes, 0));
    fake_call_out(&world, &small, "s");
    fake_called(&small, 0, POOL_NOT_SENT);
    for (unsigned i = 0; i < 3; i++) /* there is a link, and none of them waits */
        fake_call_out(&world, &large, "large");
    cr_assert(eq(uint, large.done, 3));
    end(&world);
}

Test(pool_call, what_the_protocol_has_not_taken_is_bounded_where_that_is_known_at_once)
{
    struct fake_caller callers[3] = {{.call = {.to = a}}, {.call = {.to = a}}, {.call = {.to = a}}};
    struct fake_world world;

    begin(&world);
    warm(&world);
    world.options.max_call_bytes = 3;
    cr_assert(eq(int, pool_set_options(world.pool, &world.options), 0));
    fake_calls_ways.is_full = true;
    cr_assert(eq(int, fake_call(&world, &callers[0], "12"), POOL_PENDING));
    cr_assert(eq(int, fake_call(&world, &callers[1], "34"), LINKPOOL_EFULL));
    cr_assert(eq(int, callers[1].call.bound, POOL_BOUND_CALL_BYTES));
    cr_assert(eq(int, fake_call(&world, &callers[2], "5"), POOL_PENDING)); /* just so */
    cr_assert(eq(uint, world.pool->n_leased, 2));
    fake_calls_let();
    fake_settle(&world);
    fake_called(&callers[0], 0, POOL_NOT_SENT);
    fake_called(&callers[2], 0, POOL_NOT_SENT);
    cr_assert(eq(uint, callers[1].done, 0));
    end(&world);
}

Test(pool_call, a_bound_of_bytes_that_is_lowered_below_what_waits_takes_no_more)
{
    struct fake_caller first = {.call = {.to = a}}, second = {.call = {.to = a}};
    struct fake_world world;

    begin(&world);
    fake_call(&world, &first, "123456");
    world.options.max_call_bytes = 5;
    cr_assert(eq(int, pool_set_options(world.pool, &world.options), 0));
    cr_assert(eq(int, fake_call(&world, &second, ""), LINKPOOL_EFULL)); /* an empty one is too much */
    cr_assert(eq(int, second.call.bound, POOL_BOUND_CALL_BYTES));
    fake_settle(&world);
    fake_called(&first, 0, POOL_NOT_SENT);
    fake_call_out(&world, &second, "12345");
    fake_called(&second, 0, POOL_NOT_SENT);
    end(&world);
}

Test(pool_call, what_the_protocol_has_not_taken_counts_too)
{
    struct fake_caller callers[2] = {{.call = {.to = a}}, {.call = {.to = a}}};
    struct fake_world world;

    begin(&world);
    warm(&world);
    fake_calls_ways.is_full = true;
    fake_call(&world, &callers[0], "123");
    fake_call(&world, &callers[1], "4567");
    fake_settle(&world);
    cr_assert(eq(sz, world.pool->call_bytes, 7));
    fake_calls_let();
    cr_assert(eq(sz, world.pool->call_bytes, 0));
    fake_settle(&world);
    fake_called(&callers[1], 0, POOL_NOT_SENT);
    end(&world);
}

/* ---- order on the wire ---- */

static const char *const letters[] = {"a", "b", "c", "d", "e", "f", "g", "h"};

static struct fake_caller line_up[8];
static struct fake_world *the_world;

static void call_next(void *data)
{
    struct fake_caller *caller = data;

    caller->call.to = a;
    cr_assert(eq(int, fake_call(the_world, caller, letters[caller - line_up]), POOL_PENDING));
}

Test(pool_call, order_holds_from_not_ready_to_ready)
{
    struct fake_world world;
    struct fake_server *server = begin(&world);

    the_world = &world;
    testing_peer_delay(server->peer, 0.01, 0);
    for (unsigned i = 0; i < 8; i++) /* some before, some in the very turn, some after */
        testing_at(world.t, testing_now(world.t) + 0.0025 * i, call_next, &line_up[i]);
    fake_run(&world, 0.1);
    cr_assert(eq(str, (char *)fake_server_heard(server), "a b c d e f g h"));
    end(&world);
}

static void call_from_done(struct fake_caller *caller)
{
    (void)caller;
    call_next(&line_up[5]);
}

/* In the turn in which the link is ready five have won; two come before they are told, one while they are. */
Test(pool_call, who_comes_while_winners_are_told_goes_behind_them)
{
    struct fake_world world;
    struct fake_caller first = {.call = {.to = a}};
    struct fake_server *server;

    fake_calls_begin(&world);
    fake_calls_ways.room = 1;
    fake_world_open(&world);
    server = fake_server(&world, a);
    server->holds = true;
    world.host.max_links = 1;
    the_world = &world;
    fake_call_out(&world, &first, "0");
    cr_assert(eq(int, pool_host_set_options(fake_host(&world, a), &world.host), 0));
    first.then = call_from_done;
    for (unsigned i = 0; i < 3; i++)
        call_next(&line_up[i]);
    fake_calls_set_room(8); /* outside a turn: they have won, and are told in the next */
    call_next(&line_up[3]);
    call_next(&line_up[4]);
    fake_server_answer(server, 0, NULL);
    for (unsigned i = 0; i < 8; i++)
        fake_turn(&world);
    cr_assert(eq(str, (char *)fake_server_heard(server), "0 a b c d e f"));
    end(&world);
}

/* The one that is looked at is the one that is taken: of two links with room, one has a winner that was not told yet,
 * and it is the turn of one or the other. */
static void pass_no_winner(unsigned n_leases)
{
    struct fake_user users[2] = {0};
    struct fake_caller first[2] = {{.call = {.to = a}}, {.call = {.to = a}}};
    struct link_attempt attempts[2];
    struct fake_world world;
    struct fake_server *server;

    fake_calls_begin(&world);
    fake_calls_ways.room = 1;
    world.host.max_links = 2;
    world.host.spread_links = true;
    fake_world_open(&world);
    server = fake_server(&world, a);
    server->holds = true;
    the_world = &world;
    for (unsigned i = 0; i < 2; i++) {
        fake_call_out(&world, &first[i], "0");
        attempts[i] = fake_calls_ways.attempt;
    }
    call_next(&line_up[0]);
    for (unsigned i = 0; i < 2; i++) {
        fake_calls_ways.attempt = attempts[i];
        fake_calls_set_room(8); /* outside a turn: who was in line has won, and is told in the next */
    }
    for (unsigned i = 0; i < n_leases; i++)
        cr_assert(eq(int, fake_ask(&world, &users[i], a), POOL_READY));
    for (unsigned i = 1; i < 4; i++)
        call_next(&line_up[i]);
    fake_settle(&world);
    cr_assert(eq(uint, server->n, 6));
    for (unsigned i = 2; i < 6; i++)
        for (unsigned j = i + 1; j < 6; j++)
            cr_assert(server->requests[i].conn != server->requests[j].conn ||
                      strcmp(server->requests[i].text, server->requests[j].text) < 0);
    end(&world);
}

Test(pool_call, where_links_are_spread_nobody_passes_a_winner_either)
{
    pass_no_winner(0);
    memset(line_up, 0, sizeof line_up);
    pass_no_winner(1);
}

/* It waits in a line that starves for another link, in a pool that has no room for one. */
Test(pool_call, who_goes_behind_a_winner_is_served_though_its_line_starves)
{
    struct fake_caller first = {.call = {.to = a}};
    struct fake_user fresh = {.lease = {.flags = POOL_FRESH}};
    struct fake_world world;
    struct fake_server *server;

    fake_calls_begin(&world);
    fake_calls_ways.room = 1;
    world.options.max_links = 1;
    fake_world_open(&world);
    server = fake_server(&world, a);
    server->holds = true;
    the_world = &world;
    fake_call_out(&world, &first, "0");
    cr_assert(eq(int, fake_ask(&world, &fresh, a), POOL_PENDING));
    call_next(&line_up[0]);
    fake_settle(&world);
    fake_calls_set_room(8);
    call_next(&line_up[1]);
    fake_settle(&world);
    cr_assert(eq(str, (char *)fake_server_heard(server), "0 a b"));
    cr_assert(eq(int, fresh.status, POOL_PENDING));
    pool_cancel(&fresh.lease);
    end(&world);
}

/* The same through a target. */
Test(pool_call, who_comes_to_a_target_goes_behind_its_winners)
{
    struct fake_caller callers[4] = {0}, first = {0};
    struct fake_world world;
    struct fake_server *server;

    fake_calls_begin(&world);
    fake_calls_ways.room = 1;
    world.host.max_links = 1;
    fake_world_open(&world);
    server = fake_server(&world, a);
    server->holds = true;
    struct pool_target *target = fake_target(&world, "db", &pool_round_robin, (const char *const[]){a}, 1);
    first.call.target = target;
    fake_call_out(&world, &first, "0");
    for (unsigned i = 0; i < 4; i++) {
        callers[i].call.target = target;
        if (i == 2)
            fake_calls_set_room(8);
        fake_call(&world, &callers[i], letters[i]);
    }
    fake_settle(&world);
    cr_assert(eq(str, (char *)fake_server_heard(server), "0 a b c d"));
    end(&world);
}

Test(pool_call, order_holds_while_the_protocol_has_no_room)
{
    struct fake_world world;
    struct fake_server *server = begin(&world);

    the_world = &world;
    warm(&world);
    fake_calls_ways.is_full = true;
    call_next(&line_up[0]);
    call_next(&line_up[1]);
    fake_calls_ways.is_full = false; /* room, and the first was not told of it yet */
    call_next(&line_up[2]);
    fake_settle(&world);
    cr_assert(eq(str, (char *)fake_server_heard(server), "warm"));
    fake_calls_ways.takes = 2; /* room for two, then none */
    fake_calls_let();
    call_next(&line_up[3]);
    fake_settle(&world);
    cr_assert(eq(str, (char *)fake_server_heard(server), "warm a b"));
    fake_calls_let();
    fake_settle(&world);
    cr_assert(eq(str, (char *)fake_server_heard(server), "warm a b c d"));
    end(&world);
}

/* Only the first was refused: when it goes, the next has to try by itself. */
static void expect_the_next_is_sent(void (*take_out)(struct fake_world *world, struct fake_caller *first), int status)
{
    struct fake_caller first = {.call = {.to = a, .timeout = 1}}, second = {.call = {.to = a}}, third = second;
    struct fake_world world;
    struct fake_server *server = begin(&world);

    warm(&world);
    fake_calls_ways.is_full = true;
    fake_call(&world, &first, "first");
    fake_call(&world, &second, "second");
    fake_call(&world, &third, "third");
    fake_calls_ways.is_full = false;
    take_out(&world, &first);
    fake_settle(&world);
    cr_assert(eq(int, first.call.status, status));
    cr_assert(eq(int, first.call.fate, POOL_NOT_SENT));
    cr_assert(eq(str, (char *)fake_server_heard(server), "warm second third"));
    fake_called(&second, 0, POOL_NOT_SENT);
    fake_called(&third, 0, POOL_NOT_SENT);
    end(&world);
}

static void cancel_first(struct fake_world *world, struct fake_caller *first)
{
    (void)world;
    cr_assert(eq(int, pool_call_cancel(&first->call), 0));
}

static void run_out(struct fake_world *world, struct fake_caller *first)
{
    (void)first;
    fake_run(world, 1);
}

static void end_first(struct fake_world *world, struct fake_caller *first)
{
    (void)world, (void)first;
    fake_calls_end(0, false);
}

static void refuse_first(struct fake_world *world, struct fake_caller *first)
{
    (void)world, (void)first;
    fake_calls_ways.error = LINKPOOL_EINVAL;
    fake_calls_let();
}

Test(pool_call, whoever_leaves_the_queue_lets_the_next_be_sent)
{
    expect_the_next_is_sent(cancel_first, LINKPOOL_ECANCELLED);
    expect_the_next_is_sent(run_out, LINKPOOL_ETIMEDOUT);
    expect_the_next_is_sent(end_first, LINKPOOL_ELOST);
    expect_the_next_is_sent(refuse_first, LINKPOOL_EINVAL);
}

Test(pool_call, one_lost_in_the_queue_holds_up_nobody)
{
    struct fake_caller callers[3] = {{.call = {.to = a}}, {.call = {.to = a}}, {.call = {.to = a}}};
    struct fake_world world;
    struct fake_server *server = begin(&world);

    warm(&world);
    fake_calls_ways.is_full = true;
    for (unsigned i = 0; i < 3; i++)
        fake_call(&world, &callers[i], letters[i]);
    fake_calls_ways.is_full = false;
    fake_calls_end(0, true);
    cr_assert(eq(int, pool_call_cancel(&callers[1].call), 0)); /* not the first: nothing is tried */
    cr_assert(eq(int, pool_call_cancel(&callers[0].call), 0)); /* over already, and untold */
    fake_settle(&world);
    cr_assert(eq(uint, callers[0].done, 0));
    cr_assert(eq(str, (char *)fake_server_heard(server), "warm c"));
    fake_called(&callers[2], 0, POOL_NOT_SENT);
    end(&world);
}

Test(pool_call, one_lost_in_the_queue_and_not_told_yet_is_not_sent)
{
    struct fake_caller callers[3] = {{.call = {.to = a}}, {.call = {.to = a}}, {.call = {.to = a}}};
    struct fake_world world;
    struct fake_server *server = begin(&world);

    warm(&world);
    fake_calls_ways.is_full = true;
    for (unsigned i = 0; i < 3; i++)
        fake_call(&world, &callers[i], letters[i]);
    fake_calls_end(1, true);
    fake_calls_let();
    fake_settle(&world);
    cr_assert(eq(str, (char *)fake_server_heard(server), "warm a c"));
    fake_called(&callers[0], 0, POOL_NOT_SENT);
    fake_called(&callers[1], LINKPOOL_ELOST, POOL_NOT_SENT);
    fake_called(&callers[2], 0, POOL_NOT_SENT);
    end(&world);
}

Test(pool_call, a_link_that_dies_of_the_next_request_is_told_as_any)
{
    struct fake_caller callers[3] = {{.call = {.to = a}}, {.call = {.to = a}}, {.call = {.to = a}}};
    struct fake_world world;

    begin(&world);
    warm(&world);
    fake_calls_ways.is_full = true;
    for (unsigned i = 0; i < 3; i++)
        fake_call(&world, &callers[i], letters[i]);
    fake_calls_ways.is_full = false;
    fake_calls_ways.dies = true;
    cr_assert(eq(int, pool_call_cancel(&callers[0].call), 0)); /* at top level: nothing of the link is left */
    fake_settle(&world);
    fake_called(&callers[1], LINKPOOL_ELOST, POOL_NOT_SENT);
    fake_called(&callers[2], LINKPOOL_ELOST, POOL_NOT_SENT);
    end(&world);
}

/* ---- its time ---- */

static void expect_time_out(struct fake_world *world, struct fake_caller *caller, double since, enum pool_fate fate)
{
    fake_run(world, 10);
    fake_called(caller, LINKPOOL_ETIMEDOUT, fate);
    cr_assert(epsilon_eq(dbl, caller->told_at - since, 2, 1e-6));
    cr_assert(eq(sz, world->pool->call_bytes, 0));
    cr_assert(eq(uint, fake_stats(world).leased, 0));
}

Test(pool_call, the_deadline_is_one_whatever_eats_it)
{
    for (unsigned i = 0; i < 4; i++) {
        struct fake_caller caller = {.call = {.to = a, .timeout = 2, .flags = POOL_CALL_WAIT_FOR_READY}};
        struct fake_world world;
        struct fake_server *server = begin(&world);
        if (i == 1 || i == 2)
            warm(&world);
        server->holds = true;
        fake_calls_ways.is_full = i == 1;
        if (i == 3)
            testing_peer_delay(server->peer, 0.5, 0);
        testing_peer_behave(server->peer, i == 0 ? TESTING_BLACK_HOLE : TESTING_ACCEPT);
        double since = testing_now(world.t);
        fake_call(&world, &caller, "x");
        expect_time_out(&world, &caller, since, i < 2 ? POOL_NOT_SENT : POOL_SENT_NO_ANSWER);
        cr_assert(eq(int, caller.call.stage, i == 0 ? POOL_STAGE_CONNECT : POOL_STAGE_NONE));
        end(&world);
    }
}

Test(pool_call, a_retry_gets_no_time_of_its_own)
{
    unsigned flags = POOL_CALL_SAFE_TO_REPEAT | POOL_CALL_WAIT_FOR_READY;
    struct fake_caller caller = {.call = {.to = a, .timeout = 2, .retries = 1, .flags = flags}};
    struct fake_world world;
    struct fake_server *server = begin(&world);

    server->holds = true;
    double since = testing_now(world.t);
    fake_call(&world, &caller, "x");
    fake_run(&world, 1.5);
    testing_peer_cut(server->peer, LINK_RESET);
    expect_time_out(&world, &caller, since, POOL_SENT_NO_ANSWER); /* the first time it was */
    cr_assert(eq(uint, caller.call.attempts, 2));
    end(&world);
}

static void cut(void *data)
{
    testing_peer_cut(data, LINK_RESET);
}

/* Lost in the turn of its deadline: told as lost, with what became of it, and not tried again. */
Test(pool_call, one_lost_at_its_deadline_says_what_became_of_it)
{
    struct fake_caller caller = {.call = {.to = a, .timeout = 1, .retries = 5, .flags = POOL_CALL_SAFE_TO_REPEAT}};
    struct fake_world world;
    struct fake_server *server = begin(&world);

    warm(&world);
    server->holds = true;
    double asked = testing_now(world.t);
    fake_call(&world, &caller, "x");
    testing_at(world.t, asked + 1 - 1e-12, cut, server->peer);
    fake_run(&world, 20);
    cr_assert(eq(uint, caller.done, 1));
    cr_assert(eq(int, caller.call.fate, POOL_SENT_NO_ANSWER));
    cr_assert(le(dbl, caller.told_at - asked, 1.001));
    end(&world);
}

/* The first that runs out of time is one too many, and takes the link with it. */
Test(pool_call, one_lost_in_the_turn_of_its_deadline_is_told_the_loss_and_not_tried_again)
{
    struct fake_caller callers[2] = {{.call = {.to = a, .timeout = 1}},
        {.call = {.to = a, .timeout = 1, .retries = 5, .flags = POOL_CALL_SAFE_TO_REPEAT}}};
    struct fake_world world;
    struct fake_server *server;

    fake_calls_begin(&world);
    world.host.max_unanswered = 1;
    fake_world_open(&world);
    server = fake_server(&world, a);
    warm(&world);
    server->holds = true;
    for (unsigned i = 0; i < 2; i++)
        fake_call(&world, &callers[i], "x");
    fake_run(&world, 20);
    fake_called(&callers[0], LINKPOOL_ETIMEDOUT, POOL_SENT_NO_ANSWER);
    fake_called(&callers[1], LINKPOOL_ELOST, POOL_SENT_NO_ANSWER);
    cr_assert(eq(int, callers[1].call.reason, LINK_TIMED_OUT));
    cr_assert(eq(uint, callers[1].call.attempts, 1));
    end(&world);
}

/* The end of the drain is due with it, and rings first. */
Test(pool_call, one_that_fails_in_the_turn_of_its_deadline_is_told_why)
{
    struct fake_user early = {.lease.timeout = 0.5};
    struct fake_caller caller = {.call = {.to = a, .timeout = 1}};
    struct fake_world world;

    fake_calls_begin(&world);
    fake_world_open(&world);
    fake_peer(&world, a, TESTING_BLACK_HOLE);
    fake_ask(&world, &early, a);
    fake_call(&world, &caller, "x");
    cr_assert(eq(int, pool_drain(world.pool, 1, NULL, NULL), 0));
    fake_run(&world, 20);
    fake_called(&caller, LINKPOOL_ECLOSED, POOL_NOT_SENT);
    end(&world);
}

/* Each is due before the last one made, and so needs a timer of its own. */
Test(pool_call, without_memory_for_its_deadline_a_call_is_refused)
{
    static struct fake_caller callers[64];
    struct fake_world world;
    struct fake_server *server = begin(&world);
    unsigned refused = 0;

    warm(&world);
    server->holds = true;
    testing_fail_allocation(world.t, 1, true);
    for (unsigned i = 0; i < 64; i++) {
        callers[i].call.to = a;
        callers[i].call.timeout = 100 - i;
        if (fake_call(&world, &callers[i], "x") == POOL_PENDING)
            continue;
        cr_assert(eq(int, callers[i].status, LINKPOOL_ENOMEM));
        cr_assert(eq(int, pool_call_cancel(&callers[i].call), LINKPOOL_ESTATE));
        refused++;
    }
    cr_assert(ne(uint, refused, 0));
    cr_assert(ne(uint, refused, 64));
    testing_fail_allocation(world.t, 0, false);
    fake_run(&world, 200);
    for (unsigned i = 0; i < 64; i++)
        if (callers[i].status != LINKPOOL_ENOMEM)
            fake_called(&callers[i], LINKPOOL_ETIMEDOUT, POOL_SENT_NO_ANSWER);
    end(&world);
}

Test(pool_call, without_a_time_it_waits_for_ever_and_by_default_as_the_pool_says)
{
    struct fake_caller patient = {.call = {.to = a, .timeout = INFINITY}}, usual = {.call = {.to = a}};
    struct fake_world world;
    struct fake_server *server;

    fake_calls_begin(&world);
    world.options.wait_timeout = 3;
    fake_world_open(&world);
    server = fake_server(&world, a);
    server->holds = true;
    double asked = testing_now(world.t);
    fake_call(&world, &patient, "p");
    fake_call(&world, &usual, "u");
    fake_run(&world, 1e6);
    fake_called(&usual, LINKPOOL_ETIMEDOUT, POOL_SENT_NO_ANSWER);
    cr_assert(epsilon_eq(dbl, usual.told_at - asked, 3, 1e-6));
    cr_assert(eq(uint, patient.done, 0));
    fake_server_answer(server, 0, NULL);
    fake_settle(&world);
    fake_called(&patient, 0, POOL_NOT_SENT);
    end(&world);
}

/* What is left until a moment may be next to nothing. */
Test(pool_call, any_time_above_none_is_one)
{
    static const double times[] = {1e-6, 5e-7, 1e-9, 1e-300, 10 * 365.25 * 86400};
    struct fake_caller callers[5] = {0};
    struct fake_world world;
    struct fake_server *server = begin(&world);

    for (int is_up = 0; is_up < 2; is_up++) {
        if (is_up)
            warm(&world);
        server->holds = true;
        for (unsigned i = 0; i < 5; i++) {
            callers[i] = (struct fake_caller){.call = {.to = a, .timeout = times[i]}};
            cr_assert(eq(int, fake_call(&world, &callers[i], "x"), POOL_PENDING), "%g", times[i]);
        }
        fake_run(&world, 1);
        for (unsigned i = 0; i < 4; i++)
            cr_assert(eq(int, callers[i].status, LINKPOOL_ETIMEDOUT), "%g", times[i]);
        cr_assert(eq(int, pool_call_cancel(&callers[4].call), 0));
        server->holds = false;
    }
    end(&world);
}

/* ---- given up ---- */

Test(pool_call, a_late_answer_is_swallowed_and_handed_to_nobody)
{
    struct fake_caller first = {.call = {.to = a}}, late = {.call = {.to = a, .timeout = 1}},
                       next = {.call = {.to = a}};
    struct fake_world world;
    struct fake_server *server = begin(&world);

    warm(&world);
    server->holds = true;
    fake_call_out(&world, &first, "1");
    fake_call_out(&world, &late, "2");
    cr_assert(eq(int, pool_call_cancel(&first.call), 0));
    cr_assert(eq(int, first.call.status, LINKPOOL_ECANCELLED));
    cr_assert(eq(int, first.call.fate, POOL_SENT_NO_ANSWER));
    fake_run(&world, 2);
    fake_called(&late, LINKPOOL_ETIMEDOUT, POOL_SENT_NO_ANSWER);
    fake_call_out(&world, &next, "3");
    fake_server_answer(server, 1, "late"); /* warm was 0 */
    fake_server_answer(server, 2, "late");
    fake_settle(&world);
    cr_assert(eq(uint, fake_calls_ways.swallowed, 2));
    cr_assert(eq(uint, fake_calls_ways.strays, 0));
    cr_assert(eq(uint, next.done, 0));
    fake_server_answer(server, 3, NULL);
    fake_settle(&world);
    cr_assert(eq(str, next.answer, "3"));
    cr_assert(eq(uint, first.done, 0));
    cr_assert(eq(uint, testing_peer_accepted(server->peer), 1));
    end(&world);
}

Test(pool_call, one_given_up_at_any_stage_is_told_nothing)
{
    for (unsigned stage = 0; stage < 5; stage++) {
        struct fake_caller caller = {.call = {.to = a}};
        struct fake_world world;
        struct fake_server *server = begin(&world);
        if (stage)
            warm(&world);
        server->holds = true;
        fake_calls_ways.is_full = stage == 1;
        fake_call(&world, &caller, "x");
        if (stage == 3)
            testing_peer_cut(server->peer, LINK_RESET);
        if (stage >= 3)
            fake_settle(&world);
        if (stage == 4)
            fake_calls_end(0, false); /* over, and untold */
        bool was_over = stage == 3;
        cr_assert(eq(int, pool_call_cancel(&caller.call), was_over ? LINKPOOL_ESTATE : 0));
        cr_assert(eq(sz, world.pool->call_bytes, 0));
        fake_run(&world, 10);
        cr_assert(eq(uint, caller.done, was_over));
        cr_assert(eq(int, caller.call.status, was_over ? LINKPOOL_ELOST : LINKPOOL_ECANCELLED));
        cr_assert(eq(int, caller.call.fate, stage < 2 ? POOL_NOT_SENT : POOL_SENT_NO_ANSWER));
        end(&world);
    }
}

Test(pool_call, a_message_before_the_request_was_taken_is_not_its_answer)
{
    struct fake_caller caller = {.call = {.to = a}};
    struct fake_world world;

    begin(&world);
    warm(&world);
    fake_calls_ways.is_full = true;
    fake_call(&world, &caller, "x");
    fake_calls_deliver(0, "nonsense");
    cr_assert(eq(uint, caller.done, 0));
    cr_assert(eq(ptr, (void *)caller.call.answer, NULL));
    fake_calls_let();
    fake_settle(&world);
    cr_assert(eq(str, caller.answer, "x"));
    end(&world);
}

static void no_piece(struct pool_call *call, const void *bytes, size_t n)
{
    (void)call, (void)bytes, (void)n;
    cr_fatal("it got a piece");
}

Test(pool_call, nor_is_a_piece)
{
    struct fake_caller caller = {.call = {.to = a, .part = no_piece}};
    struct fake_world world;

    begin(&world);
    warm(&world);
    fake_calls_ways.is_full = true;
    fake_call(&world, &caller, "x");
    fake_calls_deliver_part(0, "nonsense");
    cr_assert(eq(uint, caller.done, 0));
    fake_calls_let();
    fake_settle(&world);
    fake_called(&caller, 0, POOL_NOT_SENT);
    cr_assert(eq(str, caller.answer, "x"));
    end(&world);
}

/* ---- a lost link ---- */

/* Those of an earlier end are another's. */
Test(pool_call, a_call_lost_to_a_drain_has_no_words_of_an_earlier_end)
{
    struct fake_caller first = {.call = {.to = a}}, second = {.call = {.to = a}};
    struct fake_world world;
    struct fake_server *server = begin(&world);

    warm(&world);
    server->holds = true;
    fake_calls_ways.dies = true;
    fake_call_out(&world, &first, "x");
    cr_assert(eq(str, first.call.words, "told to"));
    fake_run(&world, 5);
    fake_call_out(&world, &second, "y");
    fake_run(&world, 1);
    cr_assert(eq(int, pool_host_drain(fake_host(&world, a), 0), 0));
    fake_run(&world, 1);
    fake_called(&second, LINKPOOL_ECLOSED, POOL_SENT_NO_ANSWER);
    cr_assert(eq(str, second.call.words, ""));
    end(&world);
}

Test(pool_call, a_lost_link_tells_all_its_calls_in_that_turn_each_with_its_fate)
{
    static struct fake_caller callers[40];
    struct fake_world world;
    struct fake_server *server = begin(&world);

    warm(&world);
    server->holds = true;
    for (unsigned i = 0; i < 40; i++) {
        callers[i].call.to = a;
        fake_calls_ways.is_full = i >= 30;
        fake_call(&world, &callers[i], i == 7 ? "" : "x");
    }
    fake_settle(&world);
    unsigned before = world.told;
    testing_peer_cut(server->peer, LINK_RESET);
    fake_turn(&world);
    cr_assert(eq(uint, world.told, before + 40));
    for (unsigned i = 0; i < 40; i++) { /* the empty one as well */
        fake_called(&callers[i], LINKPOOL_ELOST, i < 30 ? POOL_SENT_NO_ANSWER : POOL_NOT_SENT);
        cr_assert(eq(int, callers[i].call.reason, LINK_RESET));
        cr_assert(eq(uint, callers[i].place, before + 1 + i));
    }
    cr_assert(eq(sz, world.pool->call_bytes, 0));
    end(&world);
}

Test(pool_call, what_the_peer_did_nothing_with_is_not_sent)
{
    struct fake_caller caller = {.call = {.to = a}};
    struct fake_world world;
    struct fake_server *server = begin(&world);

    server->holds = true;
    fake_call_out(&world, &caller, "x");
    fake_server_deny(server, 0);
    fake_settle(&world);
    fake_called(&caller, LINKPOOL_ELOST, POOL_NOT_SENT);
    cr_assert(eq(uint, testing_peer_open(server->peer), 1));
    end(&world);
}

/* ---- a link that answers no more ---- */

static void silence(struct fake_world *world, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct fake_caller caller = {.call = {.to = a, .timeout = 0.1}};
        fake_call(world, &caller, "?");
        fake_run(world, 0.2);
        cr_assert(eq(int, caller.status, LINKPOOL_ETIMEDOUT));
    }
}

Test(pool_call, a_link_that_leaves_calls_unanswered_in_a_row_is_ended)
{
    struct fake_caller other = {.call = {.to = a, .timeout = 50}}, ok = {.call = {.to = a}}, denied = ok;
    struct fake_world world;
    struct fake_server *server = begin(&world);

    warm(&world);
    server->holds = true;
    fake_call_out(&world, &other, "other");
    silence(&world, 2);
    fake_call_out(&world, &ok, "ok");
    fake_server_answer(server, server->n - 1, NULL);
    fake_settle(&world);
    silence(&world, 2);
    fake_call_out(&world, &denied, "no"); /* that is a word as well */
    fake_server_deny(server, server->n - 1);
    fake_settle(&world);
    silence(&world, 2);
    cr_assert(eq(uint, testing_peer_open(server->peer), 1));
    cr_assert(eq(uint, other.done, 0));
    silence(&world, 1);
    cr_assert(eq(uint, testing_peer_open(server->peer), 0));
    fake_called(&other, LINKPOOL_ELOST, POOL_SENT_NO_ANSWER);
    cr_assert(eq(int, other.call.reason, LINK_TIMED_OUT));
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_TIMED_OUT], 1));
    fake_run(&world, 1);
    server->holds = false;
    warm(&world);
    server->holds = true;
    silence(&world, 2); /* another link begins anew */
    cr_assert(eq(uint, testing_peer_open(server->peer), 1));
    end(&world);
}

/* Calls of one fan-out share a deadline, or nearly: what they met is one silence. */
Test(pool_call, calls_sent_before_the_last_time_out_do_not_count_again)
{
    struct fake_caller burst[20] = {0}, ok = {.call = {.to = a}};
    struct fake_world world;
    struct fake_server *server = begin(&world);

    warm(&world);
    server->holds = true;
    for (int wave = 0; wave < 3; wave++) {
        for (int i = 0; i < 20; i++) {
            burst[i] = (struct fake_caller){.call = {.to = a, .timeout = 0.1 + 0.001 * i}};
            fake_call(&world, &burst[i], "?");
        }
        cr_assert(eq(uint, testing_peer_open(server->peer), 1), "wave %d", wave);
        fake_run(&world, 0.2);
        for (int i = 0; i < 20; i++)
            cr_assert(lt(int, burst[i].status, 0));
        if (wave == 1) { /* an answer in between, and it takes three again */
            fake_call_out(&world, &ok, "ok");
            fake_server_answer(server, server->n - 1, NULL);
            fake_settle(&world);
            silence(&world, 2);
            cr_assert(eq(uint, testing_peer_open(server->peer), 1));
        }
    }
    cr_assert(eq(uint, testing_peer_open(server->peer), 0)); /* the third wave's first was the third in a row */
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_TIMED_OUT], 1));
    end(&world);
}

Test(pool_call, time_outs_end_no_link_where_that_is_off)
{
    struct fake_world world;
    struct fake_server *server;

    fake_calls_begin(&world);
    world.host.max_unanswered = 0;
    fake_world_open(&world);
    server = fake_server(&world, a);
    server->holds = true;
    silence(&world, 20);
    cr_assert(eq(uint, testing_peer_open(server->peer), 1));
    end(&world);
}

/* ---- what done may do ---- */

static void again(struct fake_caller *caller)
{
    if (caller->done == 3)
        return;
    caller->call.flags = POOL_CALL_WAIT_FOR_READY;
    cr_assert(eq(int, fake_call(caller->world, caller, "again"), POOL_PENDING));
}

static void free_pool(struct fake_caller *caller)
{
    struct pool *pool = caller->world->pool;

    caller->world->pool = NULL;
    pool_free(pool);
}

static struct fake_caller others[3];

static void cancel_others(struct fake_caller *caller)
{
    (void)caller;
    for (unsigned i = 0; i < 3; i++)
        pool_call_cancel(&others[i].call);
}

enum outcome {
    ANSWERED,
    LOST,
    DENIED,
    TIMED_OUT,
    TIMED_OUT_WAITING,
    FAILED,
    OUTCOMES
};

/* Each kind of outcome, with that done from inside it. */
static void play(enum outcome outcome, void (*then)(struct fake_caller *caller), unsigned expected)
{
    struct fake_caller caller = {.call = {.to = a, .timeout = 1}, .then = then};
    struct fake_world world;
    struct fake_server *server = begin(&world);
    bool is_warm = outcome != TIMED_OUT_WAITING && outcome != FAILED;

    if (is_warm)
        warm(&world);
    server->holds = outcome != ANSWERED;
    server->resets = outcome == LOST;
    testing_peer_behave(server->peer, outcome == FAILED              ? TESTING_REFUSE
                                      : outcome == TIMED_OUT_WAITING ? TESTING_BLACK_HOLE
                                                                     : TESTING_ACCEPT);
    memset(others, 0, sizeof others);
    if (then == again && outcome != FAILED) /* its host may be down then */
        caller.call.flags = POOL_CALL_WAIT_FOR_READY;
    fake_call(&world, &caller, "x");
    for (unsigned i = 0; i < 3; i++) {
        others[i].call.to = a;
        fake_call(&world, &others[i], "other");
    }
    fake_settle(&world);
    if (outcome == DENIED && world.pool)
        fake_server_deny(server, 1);
    fake_run(&world, 20);
    cr_assert(eq(uint, caller.done, expected), "outcome %d", outcome);
    for (unsigned i = 0; i < 3; i++)
        cr_assert(eq(uint, others[i].done + (others[i].call.status == LINKPOOL_ECANCELLED), 1), "outcome %d", outcome);
    end(&world);
}

Test(pool_call, done_may_make_the_same_call_again)
{
    for (enum outcome outcome = 0; outcome < OUTCOMES; outcome++)
        play(outcome, again, 3);
}

Test(pool_call, done_may_cancel_others)
{
    for (enum outcome outcome = 0; outcome < OUTCOMES; outcome++)
        play(outcome, cancel_others, 1);
}

Test(pool_call, done_may_free_the_pool)
{
    for (enum outcome outcome = 0; outcome < OUTCOMES; outcome++)
        play(outcome, free_pool, 1);
}

static void call_into_the_void(struct fake_caller *caller)
{
    cr_assert(eq(int, pool_call(caller->world->pool, &caller->call), LINKPOOL_ECLOSED));
}

Test(pool_call, pool_free_tells_each_call)
{
    static struct fake_caller callers[12];
    struct fake_world world;
    struct fake_server *server = begin(&world);

    fake_peer(&world, b, TESTING_BLACK_HOLE);
    warm(&world);
    server->holds = true;
    for (unsigned i = 0; i < 12; i++) { /* sent, to be sent, and waiting */
        callers[i].call.to = i < 8 ? a : b;
        callers[i].call.retries = 3;
        callers[i].call.flags = POOL_CALL_SAFE_TO_REPEAT;
        callers[i].then = call_into_the_void;
        fake_calls_ways.is_full = i >= 4;
        fake_call(&world, &callers[i], "x");
    }
    fake_settle(&world);
    pool_free(world.pool);
    world.pool = NULL;
    for (unsigned i = 0; i < 12; i++)
        fake_called(&callers[i], LINKPOOL_ECLOSED, POOL_NOT_SENT); /* of the call into the void */
    end(&world);
}

Test(pool_call, a_drain_lets_calls_finish_and_tries_none_again)
{
    struct fake_caller caller = {.call = {.to = a}}, lost = {.call = {.to = a, .retries = 9}},
                       waits = {.call = {.to = a}};
    struct fake_world world;
    struct fake_server *server;

    fake_calls_begin(&world);
    fake_calls_ways.room = 2;
    world.host.max_links = 1;
    fake_world_open(&world);
    server = fake_server(&world, a);
    server->holds = true;
    fake_call_out(&world, &caller, "x");
    fake_call_out(&world, &lost, "y");
    fake_call_out(&world, &waits, "z");
    cr_assert(eq(int, pool_drain(world.pool, INFINITY, NULL, NULL), 0));
    fake_server_deny(server, 1);
    fake_server_answer(server, 0, NULL);
    fake_settle(&world);
    fake_called(&caller, 0, POOL_NOT_SENT);
    fake_called(&lost, LINKPOOL_ELOST, POOL_NOT_SENT);
    fake_server_answer(server, 2, NULL);
    fake_settle(&world);
    fake_called(&waits, 0, POOL_NOT_SENT);
    cr_assert(eq(uint, testing_peer_open(server->peer), 0));
    end(&world);
}

Test(pool_call, a_child_forgets_its_calls_without_a_word)
{
    struct fake_caller callers[6] = {0};
    struct fake_world world;
    struct fake_server *server = begin(&world);

    fake_peer(&world, b, TESTING_BLACK_HOLE);
    warm(&world);
    server->holds = true;
    for (unsigned i = 0; i < 6; i++) {
        callers[i].call.to = i < 4 ? a : b;
        callers[i].call.retries = 2;
        fake_calls_ways.is_full = i >= 2;
        fake_call(&world, &callers[i], "x");
    }
    fake_settle(&world);
    fake_calls_end(0, true); /* lost, and untold */
    pool_after_fork(world.pool);
    for (unsigned i = 0; i < 6; i++) {
        cr_assert(eq(int, callers[i].call.status, LINKPOOL_ECLOSED));
        cr_assert(eq(int, callers[i].call.fate, i == 1 ? POOL_SENT_NO_ANSWER : POOL_NOT_SENT));
    }
    cr_assert(eq(sz, world.pool->call_bytes, 0));
    fake_run(&world, 30);
    fake_calls_ways.is_full = server->holds = false;
    fake_call_out(&world, &callers[0], "x"); /* and can call again */
    cr_assert(eq(int, callers[0].status, 0));
    for (unsigned i = 1; i < 6; i++)
        cr_assert(eq(uint, callers[i].done, 0));
    end(&world);
}

/* ---- memory ---- */

/* The first allocation fails, then the second, until none is met: each call is refused or told, and nothing is left. */
Test(pool_call, without_memory_a_call_fails_and_leaves_nothing)
{
    static struct fake_caller callers[40];

    for (unsigned nth = 1, met = 1; met; nth++) {
        unsigned refused = 0;
        struct fake_world world;
        memset(callers, 0, sizeof callers);
        begin(&world);
        testing_fail_allocation(world.t, nth, false);
        uint64_t before = testing_allocations(world.t);
        for (unsigned i = 0; i < 40; i++) {
            callers[i].call.to = i % 2 ? a : b;
            callers[i].call.retries = 1;
            if (i == 20)
                fake_settle(&world);
            refused += fake_call(&world, &callers[i], "x") < 0;
        }
        fake_run(&world, 20);
        met = testing_allocations(world.t) - before >= nth;
        for (unsigned i = 0; i < 40; i++) {
            cr_assert(eq(uint, callers[i].done, callers[i].call.attempts || callers[i].done));
            cr_assert(ne(int, callers[i].status, POOL_PENDING));
        }
        (void)refused;
        end(&world);
    }
}
