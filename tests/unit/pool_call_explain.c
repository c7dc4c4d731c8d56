/* pool_call_explain.c - calls in words, at each stage and after each end: to the letter. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "linkpool/call.h"
#include "tests/fakes/framed_stage.h"

static struct framed_stage stage;
static struct pool_call call, other;
static unsigned char bytes[8000];
static char within[300]; /* what was said inside `done` */

#define AT "10.0.0.1:80"

static void on_done(struct pool_call *told)
{
    if (told == &call)
        pool_call_explain(told, within, sizeof within);
}

static void on_part(struct pool_call *told, const void *piece, size_t n)
{
    (void)told, (void)piece, (void)n;
}

static void begin(void)
{
    cr_assert(eq(str, (char *)framed_address, AT));
    framed_stage_begin(&stage);
    stage.server.holds = true;
    stage.options.max_queue = 4096;
    stage.world.backoff.base = stage.world.backoff.cap = 10;
    stage.world.backoff.jitter = BACKOFF_NONE;
    testing_send_buffer(stage.world.t, 2000);
}

static int start(struct pool_call *which, size_t n)
{
    which->to = framed_address;
    which->request = bytes;
    which->request_size = n;
    which->done = on_done;
    return pool_call(stage.world.pool, which);
}

static void ask(struct pool_call *which, size_t n)
{
    cr_assert(eq(int, start(which, n), POOL_PENDING));
    fake_settle(&stage.world);
}

static void expect(const char *words)
{
    char text[400], cut[8];

    int n = pool_call_explain(&call, text, sizeof text);
    cr_assert(eq(str, text, (char *)words));
    cr_assert(eq(int, n, (int)strlen(words)));
    cr_assert(eq(int, pool_call_explain(&call, cut, sizeof cut), (int)strlen(words))); /* as snprintf() */
    cr_assert(eq(int, memcmp(cut, words, 7), 0));
    cr_assert(eq(int, pool_call_explain(&call, NULL, 0), (int)strlen(words)));
}

/* The same within `done`, and after it. */
static void expect_end(const char *words)
{
    cr_assert(eq(str, within, (char *)words));
    expect(words);
}

/* ---- under way ---- */

Test(pool_call_explain, one_that_was_never_made_is_not_in_use)
{
    expect("not in use");
}

Test(pool_call_explain, one_in_line_says_how_its_hosts_are)
{
    begin();
    stage.world.host.max_channels = 1;
    framed_stage_open(&stage);
    ask(&other, 1);
    call.timeout = 4;
    ask(&call, 1);
    fake_run(&stage.world, 1);
    expect("waiting, in line, 3 s left: " AT " is ready (1 of 1 links, 1 leased, 0 opening, 1 waiting)");
    framed_stage_end(&stage);
}

Test(pool_call_explain, one_in_line_says_that_the_peer_takes_nobody_just_now)
{
    begin();
    stage.server.calls.channels = 0;
    framed_stage_open(&stage);
    call.timeout = 4;
    ask(&call, 1);
    expect("waiting, in line, 4 s left: " AT " is ready (1 of 1 links, 0 leased, 0 opening, 1 waiting, 1 whose peer "
           "takes nobody just now (room 0))");
    framed_stage_end(&stage);
}

Test(pool_call_explain, one_in_line_says_that_the_link_is_being_asked)
{
    begin();
    framed_stage_open(&stage);
    ask(&other, 1);
    framed_session_answer(stage.server.session, 1, bytes, 1);
    fake_settle(&stage.world);
    testing_peer_window(stage.server.peer, 0);
    pool_network_changed(stage.world.pool);
    call.timeout = 4;
    cr_assert(eq(int, start(&call, 1), POOL_PENDING));
    expect("waiting, in line, 4 s left: " AT " is ready (1 of 1 links, 0 leased, 0 opening, 1 waiting, 1 being asked "
           "whether it is alive)");
    framed_stage_end(&stage);
}

Test(pool_call_explain, one_in_line_says_that_the_pool_is_full)
{
    begin();
    stage.world.options.max_links = 1;
    framed_stage_open(&stage);
    ask(&other, 1);
    call.timeout = 4;
    call.to = "10.0.0.2:80";
    call.request = bytes;
    call.done = on_done;
    cr_assert(eq(int, pool_call(stage.world.pool, &call), POOL_PENDING));
    fake_settle(&stage.world);
    expect("waiting, in line, 4 s left: 10.0.0.2:80 is idle (0 of 1 links, 0 leased, 0 opening, 1 waiting); the pool "
           "is full: 1 of 1 links");
    framed_stage_end(&stage);
}

Test(pool_call_explain, of_many_hosts_the_first_are_told_of)
{
    enum {
        HOSTS = 1000
    };
    static char names[HOSTS][24], text[4000];
    static struct pool_endpoint endpoints[HOSTS];
    struct pool_target_options options;

    begin();
    framed_stage_open(&stage);
    pool_target_options_init(&options);
    for (unsigned i = 0; i < HOSTS; i++) {
        snprintf(names[i], sizeof names[i], "10.1.%u.%u:80", i / 250, i % 250 + 1);
        endpoints[i] = (struct pool_endpoint){.size = sizeof *endpoints, .address = names[i]};
    }
    options.endpoints = endpoints;
    options.n_endpoints = HOSTS;
    const struct pool_target *target = pool_target_add(stage.world.pool, "many", &options);
    int n = pool_target_explain(target, text, sizeof text);
    cr_assert(lt(int, n, (int)sizeof text));
    cr_assert(ne(ptr, strstr(text, "10.1.0.16:80 is idle"), NULL));
    cr_assert(eq(ptr, strstr(text, "10.1.0.17:80"), NULL));
    cr_assert(eq(str, text + n - 14, "; and 984 more"));
    framed_stage_end(&stage);
}

Test(pool_call_explain, one_whose_host_fails_says_why_and_when_it_is_tried_next)
{
    begin();
    testing_peer_behave(stage.server.peer, TESTING_REFUSE);
    framed_stage_open(&stage);
    call.flags = POOL_CALL_WAIT_FOR_READY;
    call.timeout = INFINITY;
    ask(&call, 1);
    fake_run(&stage.world, 1);
    expect("waiting, waiting for the next try, no deadline: " AT
           " is backoff (0 of 1 links, 0 leased, 0 opening, 1 waiting), last: connection refused (errno 111), next try "
           "in 9 s");
    framed_stage_end(&stage);
}

Test(pool_call_explain, one_that_was_sent_says_to_whom_and_how_long_ago)
{
    begin();
    framed_stage_open(&stage);
    call.timeout = 4;
    ask(&call, 1);
    fake_run(&stage.world, 1.5);
    expect("sent to " AT " 1.5 s ago, 2.5 s left, 1 attempt");
    framed_stage_end(&stage);
}

Test(pool_call_explain, one_of_which_nothing_has_gone_says_so)
{
    begin();
    framed_stage_open(&stage);
    ask(&other, 1);
    testing_peer_window(stage.server.peer, 0);
    struct pool_call large = {0};
    ask(&large, 5000);
    call.timeout = 4;
    ask(&call, 1);
    fake_run(&stage.world, 0.5);
    expect("accepted for " AT " 0.5 s ago, nothing of it has gone, 3.5 s left, 1 attempt");
    cr_assert(eq(int, pool_call_cancel(&call), 0));
    ask(&call, 4000);
    expect("waiting for a link to " AT " to take it, 4 s left, 1 attempt");
    cr_assert(eq(int, pool_call_cancel(&large), 0));
    framed_stage_end(&stage);
}

Test(pool_call_explain, one_that_is_answered_in_part_says_how_much)
{
    begin();
    framed_stage_open(&stage);
    call.timeout = 4;
    call.part = on_part;
    ask(&call, 1);
    fake_run(&stage.world, 1);
    framed_session_frame(stage.server.session, 1000, 5, 0, 0, 1, bytes, 400);
    fake_run(&stage.world, 1);
    expect("sent to " AT " 2 s ago, answered in part (400 bytes), 2 s left, 1 attempt");
    testing_peer_cut(stage.server.peer, LINK_RESET);
    fake_settle(&stage.world);
    expect_end("the link has ended, last: connection reset (errno 104), answered in part (400 bytes), 1 attempt");
    framed_stage_end(&stage);
}

/* ---- over ---- */

Test(pool_call_explain, one_that_was_answered_says_so)
{
    begin();
    framed_stage_open(&stage);
    ask(&call, 1);
    framed_session_answer(stage.server.session, 1, bytes, 30);
    fake_settle(&stage.world);
    expect_end("answered, 30 bytes, 1 attempt");
    framed_stage_end(&stage);
}

Test(pool_call_explain, an_error_of_the_peer_is_told_with_code_and_words)
{
    begin();
    framed_stage_open(&stage);
    ask(&call, 1);
    framed_session_error(stage.server.session, 1, 300, "no such\nthing");
    fake_settle(&stage.world);
    expect_end("the peer answered with an error 300: no such.thing, 1 attempt");
    ask(&call, 1);
    framed_session_error(stage.server.session, 2, 301,
        "one two three four five six seven eight nine ten eleven 12345678901234"); /* cut to fit */
    fake_settle(&stage.world);
    expect_end("the peer answered with an error 301: one two three four five six seven eight nine ten eleven 1234567, "
               "1 attempt");
    framed_stage_end(&stage);
}

Test(pool_call_explain, one_lost_says_what_became_of_it_and_what_its_link_said)
{
    begin();
    framed_stage_open(&stage);
    ask(&call, 1);
    framed_session_answer(stage.server.session, 7, bytes, 3); /* to nobody */
    fake_settle(&stage.world);
    expect_end(
        "the link has ended, last: protocol error: ANSWER to the request 7; the last one sent is 1, sent and not "
        "answered, 1 attempt");
    framed_stage_end(&stage);
}

Test(pool_call_explain, one_out_of_time_says_what_ate_it)
{
    begin();
    testing_peer_behave(stage.server.peer, TESTING_BLACK_HOLE);
    framed_stage_open(&stage);
    call.timeout = 1;
    ask(&call, 1);
    fake_run(&stage.world, 2);
    expect_end("the deadline has passed connecting, not sent");
    framed_stage_end(&stage);
}

Test(pool_call_explain, one_out_of_time_once_it_was_sent_says_so)
{
    begin();
    framed_stage_open(&stage);
    call.timeout = 1;
    ask(&call, 1);
    fake_run(&stage.world, 2);
    expect_end("the deadline has passed, sent and not answered, 1 attempt");
    framed_stage_end(&stage);
}

Test(pool_call_explain, one_given_up_says_so)
{
    begin();
    framed_stage_open(&stage);
    ask(&call, 1);
    cr_assert(eq(int, pool_call_cancel(&call), 0));
    expect("given up, sent and not answered, 1 attempt");
    framed_stage_end(&stage);
    expect("given up, sent and not answered, 1 attempt"); /* its pool is gone, and nothing of it is looked at */
}

Test(pool_call_explain, one_refused_at_once_names_the_bound_or_the_cause)
{
    begin();
    stage.world.options.max_call_bytes = 10;
    framed_stage_open(&stage);
    cr_assert(eq(int, start(&other, 1), POOL_PENDING));
    cr_assert(eq(int, start(&call, 10), LINKPOOL_EFULL));
    expect("a bound is reached: max_call_bytes, not sent");
    cr_assert(eq(int, pool_call_cancel(&other), 0));
    testing_peer_behave(stage.server.peer, TESTING_REFUSE);
    ask(&call, 1);
    expect_end("every host is down, last: connection refused (errno 111), not sent");
    framed_stage_end(&stage);
}

Test(pool_call_explain, one_too_large_says_how_large_it_is)
{
    begin();
    stage.server.calls.max_payload = 2000;
    framed_stage_open(&stage);
    ask(&call, 2001);
    expect_end("an argument is wrong: its protocol does not take these 2001 bytes, not sent, 1 attempt");
    cr_assert(eq(int, start(&call, 2002), LINKPOOL_EINVAL)); /* the link is there: at once */
    expect("an argument is wrong: its protocol does not take these 2002 bytes, not sent, 1 attempt");
    ask(&call, 2000);
    expect("sent to " AT " 1e-06 s ago, 5 s left, 1 attempt");
    framed_stage_end(&stage);
}

static void look_at_the_lost(struct pool_call *told)
{
    (void)told;
    expect("the link has ended, last: connection reset (errno 104), 5 s left, 1 attempt");
}

Test(pool_call_explain, one_lost_and_not_told_yet_says_why)
{
    begin();
    framed_stage_open(&stage);
    ask(&other, 1);
    other.done = look_at_the_lost; /* it is told first */
    ask(&call, 1);
    testing_peer_cut(stage.server.peer, LINK_RESET);
    fake_settle(&stage.world);
    cr_assert(eq(int, other.status, LINKPOOL_ELOST));
    cr_assert(eq(int, call.status, LINKPOOL_ELOST));
    framed_stage_end(&stage);
}

static void look_at_the_winner(struct pool_call *told)
{
    (void)told;
    pool_call_explain(&call, within, sizeof within);
}

Test(pool_call_explain, one_that_has_won_a_channel_and_was_not_told_says_so)
{
    begin();
    stage.server.calls.channels = 1;
    framed_stage_open(&stage);
    ask(&other, 1);
    other.done = look_at_the_winner;
    call.timeout = 2;
    ask(&call, 1);
    framed_session_answer(stage.server.session, 1, "a", 1);
    fake_settle(&stage.world);
    cr_assert(eq(int, other.status, 0));
    cr_assert(eq(str, within, "a channel is there, and will be told of in this turn, 2 s left"));
    framed_stage_end(&stage);
}

Test(pool_call_explain, one_that_was_tried_again_says_how_often)
{
    begin();
    framed_stage_open(&stage);
    call.retries = 2;
    ask(&call, 1);
    framed_session_error(stage.server.session, 1, FRAMED_NOT_PROCESSED, "busy");
    fake_settle(&stage.world);
    framed_session_answer(stage.server.session, 2, "a", 1);
    fake_settle(&stage.world);
    expect("answered, 1 bytes, 2 attempts");
    framed_stage_end(&stage);
}
