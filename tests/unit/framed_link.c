/* framed_link.c - framed links: handshake, room, calls, errors, cancelling, signs of life. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fakes/framed_stage.h"

/* ---- calls ---- */

Test(framed_link, a_request_is_answered)
{
    struct framed_caller caller = {0};
    struct framed_stage stage;

    framed_stage_begin(&stage);
    framed_stage_open(&stage);
    cr_assert(eq(int, framed_call(&stage, &caller, "question"), 0));
    fake_settle(&stage.world);
    cr_assert(eq(uint, caller.answers, 1));
    cr_assert(eq(str, caller.answer, "question"));
    cr_assert(eq(u64, caller.user.lease.bytes_sent, 8));
    cr_assert(eq(u64, caller.user.lease.bytes_received, 8));
    fake_give_back(&caller.user);
    framed_stage_end(&stage);
}

Test(framed_link, answers_find_their_askers_in_any_order)
{
    enum {
        N = 100
    };
    static struct framed_caller callers[N];
    char text[16];
    struct framed_stage stage;

    framed_stage_begin(&stage);
    stage.server.holds = true;
    framed_stage_open(&stage);
    for (unsigned i = 0; i < N; i++) {
        snprintf(text, sizeof text, "q%u", i);
        cr_assert(eq(int, framed_call(&stage, &callers[i], text), 0));
    }
    fake_settle(&stage.world);
    cr_assert(eq(uint, stage.server.n_asked, N));
    for (unsigned i = 0; i < N; i++) { /* 37 and 100 have no common factor */
        unsigned j = i * 37 % N;
        cr_assert(eq(uint, stage.server.asked[j].id, j + 1));
        framed_session_answer(
            stage.server.session, stage.server.asked[j].id, stage.server.asked[j].text, stage.server.asked[j].n);
    }
    fake_settle(&stage.world);
    for (unsigned i = 0; i < N; i++) {
        snprintf(text, sizeof text, "q%u", i);
        cr_assert(eq(uint, callers[i].answers, 1));
        cr_assert(eq(str, callers[i].answer, text));
        fake_give_back(&callers[i].user);
    }
    framed_stage_end(&stage);
}

Test(framed_link, a_channel_asks_one_thing_at_a_time)
{
    struct framed_caller caller = {0};
    struct framed_stage stage;

    framed_stage_begin(&stage);
    framed_stage_open(&stage);
    cr_assert(eq(int, framed_call(&stage, &caller, "one"), 0));
    cr_assert(eq(int, framed_send(&caller, "two", 3), LINKPOOL_ESTATE));
    fake_settle(&stage.world);
    cr_assert(eq(int, framed_send(&caller, "three", 5), 0));
    fake_settle(&stage.world);
    cr_assert(eq(str, caller.answer, "three"));
    cr_assert(eq(uint, stage.server.n_asked, 2));
    cr_assert(eq(uint, stage.server.asked[1].id, 2));
    caller.again = "four"; /* from within the callback that has the answer */
    cr_assert(eq(int, framed_send(&caller, "x", 1), 0));
    fake_settle(&stage.world);
    cr_assert(eq(int, caller.sent, 0));
    cr_assert(eq(str, caller.answer, "four"));
    framed_stage_end(&stage);
}

Test(framed_link, a_request_and_an_answer_may_be_empty)
{
    struct framed_caller caller = {0};
    struct framed_stage stage;

    framed_stage_begin(&stage);
    framed_stage_open(&stage);
    framed_hold(&stage, &caller);
    cr_assert(eq(int, framed_send(&caller, NULL, 0), 0));
    fake_settle(&stage.world);
    cr_assert(eq(uint, caller.answers, 1));
    cr_assert(eq(sz, caller.n, 0));
    framed_stage_end(&stage);
}

Test(framed_link, a_large_request_and_a_large_answer_come_whole)
{
    enum {
        N = 1 << 20
    };
    unsigned char *question = malloc(N);
    struct framed_caller caller = {0};
    struct framed_stage stage;

    framed_fill(question, N);
    framed_stage_begin(&stage);
    framed_stage_open(&stage);
    framed_hold(&stage, &caller);
    cr_assert(eq(int, framed_send(&caller, question, N), 0)); /* larger than any queue: nothing else waits */
    fake_run(&stage.world, 1);
    cr_assert(eq(uint, caller.answers, 1));
    cr_assert(eq(sz, caller.n, N));
    cr_assert(eq(int, memcmp(caller.answer, question, 63), 0));
    cr_assert(eq(sz, stage.server.asked[0].n, N));
    free(question);
    framed_stage_end(&stage);
}

Test(framed_link, a_request_is_no_larger_than_the_peer_takes)
{
    static const char bytes[2001];
    struct framed_caller caller = {0};
    struct framed_stage stage;

    framed_stage_begin(&stage);
    stage.server.calls.max_payload = 2000;
    framed_stage_open(&stage);
    framed_hold(&stage, &caller);
    cr_assert(eq(int, framed_send(&caller, bytes, 2001), LINKPOOL_EINVAL));
    cr_assert(eq(int, framed_send(&caller, bytes, 2000), 0));
    fake_settle(&stage.world);
    cr_assert(eq(sz, caller.n, 2000));
    framed_stage_end(&stage);
}

/* Frames are counted in 32 bits, their headers too, whatever a peer says that it takes. */
Test(framed_link, a_request_is_no_larger_than_a_frame_can_be)
{
    struct framed_caller caller = {0};
    struct framed_stage stage;

    framed_stage_begin(&stage);
    stage.server.calls.max_payload = UINT32_MAX;
    framed_stage_open(&stage);
    framed_hold(&stage, &caller);
    cr_assert(eq(int, framed_send(&caller, "", UINT32_MAX), LINKPOOL_EINVAL));
    cr_assert(eq(int, framed_send(&caller, "", 0), 0));
    fake_settle(&stage.world);
    cr_assert(eq(uint, caller.answers, 1));
    framed_stage_end(&stage);
}

Test(framed_link, an_answer_is_no_larger_than_we_take)
{
    struct framed_caller caller = {0};
    struct framed_stage stage;

    framed_stage_begin(&stage);
    stage.options.max_payload = 1024;
    stage.server.holds = true;
    framed_stage_open(&stage);
    cr_assert(eq(int, framed_call(&stage, &caller, "x"), 0));
    fake_settle(&stage.world);
    cr_assert(eq(u32, framed_session_takes(stage.server.session), 1024)); /* the peer was told */
    framed_session_frame(stage.server.session, 1025, 5, 0, 0, 1, "", 0);
    fake_settle(&stage.world);
    cr_assert(eq(uint, caller.user.closed, 1));
    cr_assert(eq(int, caller.user.lease.reason, LINK_PROTOCOL_ERROR));
    cr_assert(eq(int, caller.user.lease.fate, POOL_SENT_NO_ANSWER));
    framed_stage_end(&stage);
}

/* ---- the handshake ---- */

Test(framed_link, the_token_is_said_in_the_handshake)
{
    struct framed_caller caller = {0};
    struct framed_stage stage;

    framed_stage_begin(&stage);
    stage.options.token = "open sesame";
    stage.options.token_size = 11;
    framed_stage_open(&stage);
    framed_hold(&stage, &caller);
    cr_assert(eq(str, stage.server.token, "open sesame"));
    cr_assert(eq(uint, stage.server.n_hellos, 1));
    framed_stage_end(&stage);
}

/* Asks, and waits: what the pool says of the host meanwhile. */
static void expect_words(struct framed_stage *stage, const char *words)
{
    struct fake_user user = {.lease = {.flags = POOL_WAIT_FOR_READY, .timeout = INFINITY}};
    char text[512];

    cr_assert(eq(int, fake_ask(&stage->world, &user, framed_address), POOL_PENDING));
    fake_run(&stage->world, 0.01);
    pool_explain(&user.lease, text, sizeof text);
    cr_assert(ne(ptr, strstr(text, words), NULL), "%s", text);
    pool_cancel(&user.lease);
}

Test(framed_link, a_peer_may_send_us_away)
{
    struct framed_stage stage;

    framed_stage_begin(&stage);
    stage.server.turns_away = true;
    framed_stage_open(&stage);
    expect_words(&stage, "handshake failed: the peer would not have us: 6: not welcome");
    stage.server.fault[0] = '\0';
    framed_stage_end(&stage);
}

Test(framed_link, a_peer_that_says_nothing_is_given_up_in_time)
{
    struct fake_user user = {0};
    struct framed_stage stage;

    framed_stage_begin(&stage);
    stage.server.calls.silent = true;
    framed_stage_open(&stage);
    fake_ask(&stage.world, &user, framed_address);
    fake_run(&stage.world, 2.99);
    cr_assert(eq(int, user.status, POOL_PENDING));
    fake_run(&stage.world, 0.02);
    cr_assert(eq(int, user.status, LINKPOOL_EUNAVAILABLE));
    cr_assert(eq(int, user.lease.reason, LINK_TIMED_OUT));
    framed_stage_end(&stage);
}

Test(framed_link, an_answer_to_a_hello_that_was_not_read_is_no_answer)
{
    static char token[4096];
    struct fake_user user = {0};
    struct framed_stage stage;

    framed_stage_begin(&stage);
    stage.options.token = token;
    stage.options.token_size = sizeof token;
    testing_send_buffer(stage.world.t, 1000);
    testing_peer_window(stage.server.peer, 100);
    framed_stage_open(&stage);
    fake_ask(&stage.world, &user, framed_address);
    fake_run(&stage.world, 0.01);
    framed_session_welcome(stage.server.session);
    fake_run(&stage.world, 0.01);
    cr_assert(eq(int, user.lease.reason, LINK_PROTOCOL_ERROR));
    framed_stage_end(&stage);
}

Test(framed_link, a_hello_may_go_in_pieces)
{
    static char token[4096];
    struct framed_caller caller = {0};
    struct framed_stage stage;

    framed_stage_begin(&stage);
    stage.options.token = token;
    stage.options.token_size = sizeof token;
    testing_send_buffer(stage.world.t, 100);
    framed_stage_open(&stage);
    framed_hold(&stage, &caller);
    cr_assert(eq(uint, stage.server.n_hellos, 1));
    framed_stage_end(&stage);
}

Test(framed_link, options_that_cannot_be_are_refused)
{
    static const struct {
        struct framed_options options;
        const char *text;
    } table[] = {
        {{.max_payload = 1 << 20, .max_queue = 1 << 18, .max_channel_queue = 1 << 16}, NULL},
        {{.max_payload = 1024, .max_queue = 4096, .max_channel_queue = 1024}, NULL},
        {{.max_payload = 64 << 20, .max_queue = 1 << 30, .max_channel_queue = 1 << 30}, NULL},
        {{.max_payload = 1023, .max_queue = 1 << 18, .max_channel_queue = 1 << 16},
            "max_payload is 1023; it is from 1024 to 67108864 bytes"},
        {{.max_payload = (64 << 20) + 1, .max_queue = 1 << 18, .max_channel_queue = 1 << 16},
            "max_payload is 67108865; it is from 1024 to 67108864 bytes"},
        {{.max_payload = 1 << 20, .max_queue = 4095, .max_channel_queue = 1 << 16},
            "max_queue is 4095; it is from 4096 to 1073741824 bytes"},
        {{.max_payload = 1 << 20, .max_queue = 1 << 18, .max_channel_queue = 1023},
            "max_channel_queue is 1023; it is from 1024 to 1073741824 bytes"},
        {{.token = "", .token_size = 4097, .max_payload = 1 << 20, .max_queue = 1 << 18, .max_channel_queue = 1 << 16},
            "token_size is 4097; it is from 0 to 4096 bytes"},
        {{.token_size = 1, .max_payload = 1 << 20, .max_queue = 1 << 18, .max_channel_queue = 1 << 16},
            "token is NULL and token_size 1"},
    };
    char text[160];

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct framed_options options = table[i].options;
        options.size = sizeof options;
        cr_assert(eq(int, framed_options_check(&options, text, sizeof text), table[i].text ? LINKPOOL_EINVAL : 0));
        if (table[i].text)
            cr_assert(eq(str, text, (char *)table[i].text));
    }
    cr_assert(eq(int, framed_options_check(NULL, text, sizeof text), 0));
}

Test(framed_link, options_of_an_older_caller_are_filled_up)
{
    struct framed_options options = {.max_queue = 77};
    size_t older = offsetof(struct framed_options, max_queue);

    framed_options_init_sized(&options, older);
    cr_assert(eq(sz, options.size, older));
    cr_assert(eq(u32, options.max_payload, 1 << 20));
    cr_assert(eq(sz, options.max_queue, 77)); /* not the library's to write */
    cr_assert(eq(int, framed_options_check(&options, NULL, 0), 0));
    framed_options_init(&options);
    cr_assert(eq(sz, options.max_queue, 256 << 10));
    cr_assert(eq(sz, options.max_channel_queue, 64 << 10));
}

Test(framed_link, refused_options_fail_every_attempt_in_words)
{
    struct framed_stage stage;

    framed_stage_begin(&stage);
    stage.options.max_payload = 1;
    framed_stage_open(&stage);
    expect_words(&stage, "handshake failed: max_payload is 1; it is from");
    framed_stage_end(&stage);
}

/* ---- room ---- */

static void expect_room(uint32_t theirs, unsigned ours, unsigned room)
{
    struct framed_caller caller = {0};
    struct framed_stage stage;

    framed_stage_begin(&stage);
    stage.world.host.max_channels = ours;
    stage.server.calls.channels = theirs;
    framed_stage_open(&stage);
    framed_hold(&stage, &caller);
    cr_assert(eq(uint, framed_stats(&stage).room, room));
    framed_stage_end(&stage);
}

Test(framed_link, room_is_the_lesser_of_the_peers_limit_and_our_cap)
{
    expect_room(5, 0, 5);
    expect_room(5, 3, 3);
    expect_room(5, 5, 5);
    expect_room(5, 9, 5);
    expect_room(UINT32_MAX, 0, UINT32_MAX);
}

Test(framed_link, the_limit_may_change_at_any_time)
{
    struct framed_caller callers[3] = {0};
    struct fake_user waiter = {.lease = {.timeout = INFINITY}};
    struct framed_stage stage;

    framed_stage_begin(&stage);
    stage.server.calls.channels = 3;
    framed_stage_open(&stage);
    for (int i = 0; i < 3; i++)
        framed_hold(&stage, &callers[i]);
    framed_session_limit(stage.server.session, 1); /* below what is in use: those finish */
    fake_settle(&stage.world);
    cr_assert(eq(uint, framed_stats(&stage).room, 1));
    cr_assert(eq(uint, framed_stats(&stage).channels, 3));
    cr_assert(eq(int, framed_send(&callers[2], "x", 1), 0));
    fake_settle(&stage.world);
    cr_assert(eq(uint, callers[2].answers, 1));
    cr_assert(eq(int, fake_ask(&stage.world, &waiter, framed_address), POOL_PENDING));
    fake_give_back(&callers[2].user);
    fake_give_back(&callers[1].user);
    fake_settle(&stage.world);
    cr_assert(eq(uint, waiter.done, 0));
    framed_session_limit(stage.server.session, 0);
    fake_settle(&stage.world);
    cr_assert(eq(uint, framed_stats(&stage).room, 0));
    framed_session_limit(stage.server.session, 2);
    fake_settle(&stage.world);
    cr_assert(eq(uint, waiter.done, 1)); /* beside the one that holds yet */
    cr_assert(eq(uint, framed_stats(&stage).channels, 2));
    fake_give_back(&callers[0].user);
    fake_give_back(&waiter);
    framed_stage_end(&stage);
}

Test(framed_link, until_the_peer_has_named_its_limit_a_link_is_taken_to_carry_one)
{
    cr_assert(eq(uint, protocol_framed.max_channels, 1));
    cr_assert(eq(uint, framed_protocol(NULL).max_channels, 1));
}

/* ---- errors ---- */

Test(framed_link, an_error_is_told_with_code_and_words)
{
    struct framed_caller caller = {0};
    struct framed_stage stage;

    framed_stage_begin(&stage);
    stage.server.holds = true;
    framed_stage_open(&stage);
    cr_assert(eq(int, framed_call(&stage, &caller, "x"), 0));
    fake_settle(&stage.world);
    framed_session_error(stage.server.session, 1, 300, "no such thing");
    fake_settle(&stage.world);
    cr_assert(eq(uint, caller.errors, 1));
    cr_assert(eq(uint, caller.answers, 0));
    cr_assert(eq(u32, caller.code, 300));
    cr_assert(eq(str, caller.answer, "no such thing"));
    cr_assert(eq(int, framed_send(&caller, "y", 1), 0)); /* the channel goes on */
    fake_settle(&stage.world);
    framed_session_answer(stage.server.session, 2, "z", 1);
    fake_settle(&stage.world);
    cr_assert(eq(uint, caller.answers, 1));
    framed_stage_end(&stage);
}

Test(framed_link, what_was_not_processed_ends_the_lease_as_safe_to_repeat)
{
    struct framed_caller callers[2] = {0};
    struct framed_stage stage;

    framed_stage_begin(&stage);
    stage.server.holds = true;
    framed_stage_open(&stage);
    cr_assert(eq(int, framed_call(&stage, &callers[0], "x"), 0));
    cr_assert(eq(int, framed_call(&stage, &callers[1], "y"), 0));
    fake_settle(&stage.world);
    framed_session_error(stage.server.session, 1, FRAMED_NOT_PROCESSED, "busy");
    fake_settle(&stage.world);
    cr_assert(eq(uint, callers[0].user.closed, 1));
    cr_assert(eq(int, callers[0].user.lease.fate, POOL_NOT_SENT));
    cr_assert(eq(uint, callers[0].answers + callers[0].errors, 0));
    framed_session_answer(stage.server.session, 2, "z", 1); /* the link goes on */
    fake_settle(&stage.world);
    cr_assert(eq(uint, callers[1].answers, 1));
    cr_assert(eq(uint, stage.server.n_cancelled, 0));
    framed_stage_end(&stage);
}

Test(framed_link, an_error_that_nobody_listens_for_is_no_answer)
{
    static const struct channel_events deaf = {.writable = NULL};
    struct framed_caller caller = {0};
    struct framed_stage stage;

    framed_stage_begin(&stage);
    stage.server.holds = true;
    framed_stage_open(&stage);
    cr_assert(eq(int, framed_call(&stage, &caller, "x"), 0));
    channel_watch(caller.user.lease.channel, &deaf, 0);
    fake_settle(&stage.world);
    framed_session_error(stage.server.session, 1, 300, "no such thing");
    fake_settle(&stage.world);
    cr_assert(eq(uint, caller.errors + caller.answers, 0));
    cr_assert(eq(int, framed_send(&caller, "y", 1), 0));
    framed_stage_end(&stage);
}

/* ---- cancelling ---- */

Test(framed_link, a_cancelled_request_is_cancelled_at_the_peer_and_its_answer_swallowed)
{
    struct framed_caller first = {0}, second = {0};
    struct framed_stage stage;

    framed_stage_begin(&stage);
    stage.server.holds = true;
    framed_stage_open(&stage);
    cr_assert(eq(int, framed_call(&stage, &first, "x"), 0));
    fake_settle(&stage.world);
    cr_assert(eq(int, pool_release(&first.user.lease, POOL_DISCARD), 0));
    cr_assert(eq(int, framed_call(&stage, &second, "y"), 0)); /* on the same channel */
    fake_settle(&stage.world);
    cr_assert(eq(uint, stage.server.n_cancelled, 1));
    cr_assert(eq(u32, stage.server.cancelled, 1));
    cr_assert(eq(str, stage.server.order, "qcq"));
    framed_session_answer(stage.server.session, 1, "late", 4);
    framed_session_answer(stage.server.session, 2, "mine", 4);
    fake_settle(&stage.world);
    cr_assert(eq(uint, first.answers, 0));
    cr_assert(eq(uint, second.answers, 1));
    cr_assert(eq(str, second.answer, "mine"));
    framed_stage_end(&stage);
}

Test(framed_link, a_request_given_up_without_a_word_is_not_cancelled_but_its_answer_swallowed)
{
    struct framed_caller first = {0}, second = {0};
    struct framed_stage stage;

    framed_stage_begin(&stage);
    stage.server.holds = true;
    framed_stage_open(&stage);
    cr_assert(eq(int, framed_call(&stage, &first, "x"), 0));
    cr_assert(eq(int, framed_call(&stage, &second, "y"), 0));
    fake_settle(&stage.world);
    fake_give_back(&first.user);
    fake_settle(&stage.world);
    cr_assert(eq(uint, stage.server.n_cancelled, 0));
    framed_session_error(stage.server.session, 1, 400, "late");
    framed_session_answer(stage.server.session, 2, "mine", 4);
    fake_settle(&stage.world);
    cr_assert(eq(str, second.answer, "mine"));
    framed_stage_end(&stage);
}

Test(framed_link, more_late_answers_than_were_given_up_end_the_link)
{
    struct framed_caller first = {0}, second = {0};
    struct framed_stage stage;

    framed_stage_begin(&stage);
    stage.server.holds = true;
    framed_stage_open(&stage);
    cr_assert(eq(int, framed_call(&stage, &first, "x"), 0));
    cr_assert(eq(int, framed_call(&stage, &second, "y"), 0));
    fake_settle(&stage.world);
    cr_assert(eq(int, pool_release(&first.user.lease, POOL_DISCARD), 0));
    framed_session_answer(stage.server.session, 1, "late", 4);
    fake_settle(&stage.world);
    cr_assert(eq(uint, second.user.closed, 0));
    framed_session_answer(stage.server.session, 1, "late", 4);
    fake_settle(&stage.world);
    cr_assert(eq(uint, second.user.closed, 1));
    cr_assert(eq(int, second.user.lease.reason, LINK_PROTOCOL_ERROR));
    framed_stage_end(&stage);
}

Test(framed_link, a_request_that_was_answered_is_not_cancelled)
{
    struct framed_caller caller = {0};
    struct framed_stage stage;

    framed_stage_begin(&stage);
    framed_stage_open(&stage);
    cr_assert(eq(int, framed_call(&stage, &caller, "x"), 0));
    fake_settle(&stage.world);
    cr_assert(eq(int, pool_release(&caller.user.lease, POOL_DISCARD), 0));
    fake_settle(&stage.world);
    cr_assert(eq(uint, stage.server.n_cancelled, 0));
    framed_stage_end(&stage);
}
