/* framed_queue.c - framed links that the peer reads slowly, or not: bounds, order, what is taken back. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link/framed_link.h"
#include "link/internal.h"
#include "tests/fakes/framed_stage.h"

static char bytes[1 << 17]; /* payload of no interest */

/* A stage whose peer reads nothing beyond the handshake; sockets take `buffer` bytes. */
static void begin(struct framed_stage *stage, size_t buffer)
{
    framed_stage_begin(stage);
    stage->server.holds = true;
    testing_send_buffer(stage->world.t, buffer);
}

static void stop_reading(struct framed_stage *stage)
{
    testing_peer_window(stage->server.peer, 0);
}

static void read_on(struct framed_stage *stage)
{
    testing_peer_window(stage->server.peer, SIZE_MAX);
}

static struct framed_link *state_of(struct framed_stage *stage)
{
    return framed_link_of(stage)->protocol.state;
}

/* Holds channels until the socket takes nothing more; some of a request waits then. */
static void fill(struct framed_stage *stage, struct framed_caller *caller)
{
    framed_hold(stage, caller);
    stop_reading(stage);
    for (int i = 0; !state_of(stage)->writer.first && i < 10; i++) {
        if (i)
            framed_hold(stage, &caller[i]);
        cr_assert(eq(int, framed_send(&caller[i], bytes, 900), 0));
        fake_settle(&stage->world);
    }
    cr_assert(ne(ptr, state_of(stage)->writer.first, NULL));
}

Test(framed_queue, what_the_socket_does_not_take_is_kept_within_the_links_bound)
{
    static struct framed_caller fillers[10], callers[40];
    struct framed_stage stage;
    unsigned n = 0;

    begin(&stage, 2000);
    stage.options.max_queue = 8192;
    framed_stage_open(&stage);
    fill(&stage, fillers);
    for (;; n++) {
        framed_hold(&stage, &callers[n]);
        int error = framed_send(&callers[n], bytes, 988);
        cr_assert(le(sz, state_of(&stage)->writer.waiting, 8192));
        if (error) {
            cr_assert(eq(int, error, LINKPOOL_EAGAIN));
            break;
        }
    }
    cr_assert(lt(sz, 8192 - 1000, state_of(&stage)->writer.waiting));
    cr_assert(ge(uint, n, 7));
    read_on(&stage);
    callers[n].again = "now";
    fake_run(&stage.world, 0.1);
    cr_assert(eq(uint, callers[n].writables, 1));
    cr_assert(eq(int, callers[n].sent, 0));
    cr_assert(eq(uint, stage.server.asked[stage.server.n_asked - 1].n, 3));
    framed_stage_end(&stage);
}

Test(framed_queue, a_request_larger_than_a_channels_bound_waits_until_nothing_else_does)
{
    static struct framed_caller fillers[10], large;
    struct framed_stage stage;

    begin(&stage, 2000);
    stage.options.max_channel_queue = 1024;
    framed_stage_open(&stage);
    fill(&stage, fillers);
    framed_hold(&stage, &large);
    cr_assert(eq(int, framed_send(&large, bytes, 1024 - FRAMED_HEAD + 1), LINKPOOL_EAGAIN));
    fake_run(&stage.world, 1);
    cr_assert(eq(uint, large.writables, 0));
    read_on(&stage);
    fake_run(&stage.world, 0.1);
    cr_assert(eq(uint, large.writables, 1));
    cr_assert(eq(int, framed_send(&large, bytes, sizeof bytes), 0)); /* nothing waits: of any size */
    fake_run(&stage.world, 0.1);
    cr_assert(eq(sz, stage.server.asked[stage.server.n_asked - 1].n, sizeof bytes));
    framed_stage_end(&stage);
}

Test(framed_queue, one_within_a_channels_bound_is_kept)
{
    static struct framed_caller fillers[10], caller;
    struct framed_stage stage;

    begin(&stage, 2000);
    stage.options.max_channel_queue = 1024;
    framed_stage_open(&stage);
    fill(&stage, fillers);
    framed_hold(&stage, &caller);
    cr_assert(eq(int, framed_send(&caller, bytes, 1024 - FRAMED_HEAD), 0));
    framed_stage_end(&stage);
}

Test(framed_queue, those_who_were_refused_are_told_in_their_order_and_nobody_passes_them)
{
    static struct framed_caller fillers[10], callers[8];
    struct framed_stage stage;
    unsigned clock = 0;

    begin(&stage, 2000);
    stage.options.max_queue = 4096;
    framed_stage_open(&stage);
    for (int i = 0; i < 8; i++)
        framed_hold(&stage, &callers[i]);
    fill(&stage, fillers);
    for (int i = 0; i < 8; i++) {
        callers[i].clock = &clock;
        cr_assert(eq(int, framed_send(&callers[i], bytes, i ? 1 : 4090), LINKPOOL_EAGAIN)); /* a small one would fit */
        callers[i].again = "again";
    }
    read_on(&stage);
    fake_run(&stage.world, 0.1);
    for (unsigned i = 0; i < 8; i++) {
        cr_assert(eq(uint, callers[i].writables, 1));
        cr_assert(eq(uint, callers[i].at, i + 1));
        cr_assert(eq(int, callers[i].sent, 0));
    }
    framed_stage_end(&stage);
}

Test(framed_queue, one_that_was_refused_may_ask_again_and_keeps_its_place)
{
    static struct framed_caller fillers[10], first, second;
    struct framed_stage stage;
    unsigned clock = 0;

    begin(&stage, 2000);
    stage.options.max_queue = 4096;
    framed_stage_open(&stage);
    framed_hold(&stage, &first);
    framed_hold(&stage, &second);
    fill(&stage, fillers);
    first.clock = second.clock = &clock;
    cr_assert(eq(int, framed_send(&first, bytes, 4090), LINKPOOL_EAGAIN));
    cr_assert(eq(int, framed_send(&second, bytes, 4090), LINKPOOL_EAGAIN));
    cr_assert(eq(int, framed_send(&first, bytes, 4091), LINKPOOL_EAGAIN));
    read_on(&stage);
    fake_run(&stage.world, 0.1);
    cr_assert(eq(uint, first.at, 1));
    cr_assert(eq(uint, second.at, 2));
    cr_assert(eq(uint, first.writables, 1));
    framed_stage_end(&stage);
}

Test(framed_queue, one_that_was_refused_and_gives_up_is_not_told)
{
    static struct framed_caller fillers[10], first, second;
    struct framed_stage stage;

    begin(&stage, 2000);
    stage.options.max_queue = 4096;
    framed_stage_open(&stage);
    framed_hold(&stage, &first);
    framed_hold(&stage, &second);
    fill(&stage, fillers);
    cr_assert(eq(int, framed_send(&first, bytes, 4090), LINKPOOL_EAGAIN));
    cr_assert(eq(int, framed_send(&second, bytes, 4090), LINKPOOL_EAGAIN));
    cr_assert(eq(int, pool_release(&first.user.lease, POOL_DISCARD), 0));
    read_on(&stage);
    fake_run(&stage.world, 0.1);
    cr_assert(eq(uint, first.writables, 0));
    cr_assert(eq(uint, second.writables, 1));
    cr_assert(eq(uint, stage.server.n_cancelled, 0)); /* it never asked */
    framed_stage_end(&stage);
}

Test(framed_queue, a_request_given_up_before_it_went_never_goes)
{
    static struct framed_caller fillers[10], callers[3];
    struct framed_stage stage;

    begin(&stage, 2000);
    framed_stage_open(&stage);
    fill(&stage, fillers);
    for (int i = 0; i < 3; i++) {
        char text[2] = {(char)('a' + i), '\0'};
        cr_assert(eq(int, framed_call(&stage, &callers[i], text), 0));
    }
    cr_assert(eq(int, pool_release(&callers[1].user.lease, POOL_DISCARD), 0));
    unsigned before = stage.server.n_asked;
    read_on(&stage);
    fake_run(&stage.world, 0.1);
    unsigned n = stage.server.n_asked;
    cr_assert(ge(uint, n, before + 2));
    cr_assert(eq(str, stage.server.asked[n - 2].text, "a"));
    cr_assert(eq(str, stage.server.asked[n - 1].text, "c"));
    cr_assert(eq(u32, stage.server.asked[n - 1].id, n)); /* numbers without a gap */
    cr_assert(eq(uint, stage.server.n_cancelled, 0));
    framed_session_answer(stage.server.session, n, "C", 1);
    framed_session_answer(stage.server.session, n - 1, "A", 1);
    fake_settle(&stage.world);
    cr_assert(eq(str, callers[0].answer, "A"));
    cr_assert(eq(str, callers[2].answer, "C"));
    framed_stage_end(&stage);
}

/* The socket took whole frames, and is full. */
Test(framed_queue, once_the_only_one_in_line_was_given_up_the_next_goes_when_there_is_room)
{
    struct framed_caller fillers[2] = {0}, given_up = {0}, next = {0};
    struct framed_stage stage;

    begin(&stage, 2000);
    framed_stage_open(&stage);
    framed_hold(&stage, &fillers[0]);
    stop_reading(&stage);
    framed_hold(&stage, &fillers[1]);
    for (int i = 0; i < 2; i++)
        cr_assert(eq(int, framed_send(&fillers[i], bytes, 1000 - FRAMED_HEAD), 0));
    fake_settle(&stage.world);
    cr_assert(eq(ptr, state_of(&stage)->writer.first, NULL));
    cr_assert(eq(int, framed_call(&stage, &given_up, "no"), 0));
    fake_settle(&stage.world);
    cr_assert(ne(ptr, state_of(&stage)->writer.first, NULL));
    cr_assert(eq(int, pool_release(&given_up.user.lease, POOL_DISCARD), 0));
    read_on(&stage);
    fake_settle(&stage.world);
    cr_assert(eq(int, framed_call(&stage, &next, "yes"), 0));
    fake_settle(&stage.world);
    cr_assert(eq(uint, stage.server.n_asked, 3));
    cr_assert(eq(str, stage.server.asked[2].text, "yes"));
    framed_stage_end(&stage);
}

Test(framed_queue, one_of_which_some_has_gone_goes_on_and_is_then_cancelled)
{
    static struct framed_caller fillers[10], caller;
    struct framed_stage stage;

    begin(&stage, 2000);
    framed_stage_open(&stage);
    framed_hold(&stage, &caller);
    stop_reading(&stage);
    cr_assert(eq(int, framed_send(&caller, bytes, 5000), 0));
    cr_assert(eq(int, pool_release(&caller.user.lease, POOL_DISCARD), 0));
    cr_assert(eq(int, framed_call(&stage, &fillers[0], "next"), 0));
    read_on(&stage);
    fake_run(&stage.world, 0.1);
    cr_assert(eq(str, stage.server.order, "qcq"));
    cr_assert(eq(sz, stage.server.asked[0].n, 5000));
    cr_assert(eq(str, stage.server.asked[1].text, "next"));
    framed_stage_end(&stage);
}

Test(framed_queue, a_line_that_becomes_empty_by_itself_does_not_spin)
{
    static struct framed_caller caller;
    struct framed_stage stage;

    begin(&stage, 2000);
    framed_stage_open(&stage);
    framed_hold(&stage, &caller);
    stop_reading(&stage);
    /* Fills the socket to the byte: the next waits whole. */
    static struct framed_caller last;
    cr_assert(eq(int, framed_send(&caller, bytes, 2000 - FRAMED_HEAD), 0));
    fake_turn(&stage.world);
    framed_hold(&stage, &last);
    cr_assert(eq(int, framed_send(&last, bytes, 100), 0));
    fake_turn(&stage.world);
    cr_assert(eq(int, state_of(&stage)->writer.first->begun, false));
    cr_assert(eq(int, pool_release(&last.user.lease, POOL_DISCARD), 0));
    cr_assert(eq(ptr, state_of(&stage)->writer.first, NULL));
    read_on(&stage);
    fake_run(&stage.world, 1);
    cr_assert(not(testing_stuck(stage.world.t)));
    cr_assert(eq(int, framed_link_of(&stage)->interest, LINKPOOL_READ));
    framed_stage_end(&stage);
}

Test(framed_queue, answers_come_while_our_own_bytes_wait)
{
    static struct framed_caller fillers[10];
    struct framed_stage stage;

    begin(&stage, 2000);
    framed_stage_open(&stage);
    fill(&stage, fillers);
    cr_assert(eq(uint, stage.server.n_asked, 0));
    framed_session_answer(stage.server.session, 1, "early", 5); /* the request has gone, though nobody has read it */
    fake_settle(&stage.world);
    cr_assert(eq(str, fillers[0].answer, "early"));
    framed_stage_end(&stage);
}

Test(framed_queue, an_answer_may_come_before_all_of_its_request_has_gone)
{
    static struct framed_caller caller;
    struct framed_stage stage;

    begin(&stage, 2000);
    framed_stage_open(&stage);
    framed_hold(&stage, &caller);
    stop_reading(&stage);
    cr_assert(eq(int, framed_send(&caller, bytes, 5000), 0));
    framed_session_error(stage.server.session, 1, FRAMED_INTERNAL, "enough");
    fake_settle(&stage.world);
    cr_assert(eq(uint, caller.errors, 1));
    cr_assert(eq(int, framed_send(&caller, "more", 4), 0));
    fake_give_back(&caller.user); /* takes back what has not begun, and not what has */
    read_on(&stage);
    fake_run(&stage.world, 0.1);
    cr_assert(eq(str, stage.server.order, "q"));
    cr_assert(eq(sz, stage.server.asked[0].n, 5000));
    framed_stage_end(&stage);
}

Test(framed_queue, what_holders_send_from_their_callbacks_leaves_in_one_write)
{
    enum {
        N = 20
    };
    static struct framed_caller callers[N];
    struct framed_stage stage;

    framed_stage_begin(&stage);
    framed_stage_open(&stage);
    stage.server.holds = true;
    for (int i = 0; i < N; i++)
        cr_assert(eq(int, framed_call(&stage, &callers[i], "x"), 0));
    fake_settle(&stage.world);
    for (unsigned i = 0; i < N; i++) {
        callers[i].again = "y";
        framed_session_answer(stage.server.session, i + 1, "a", 1);
    }
    uint64_t before = testing_calls(stage.world.t, TESTING_SENDMSG);
    fake_settle(&stage.world);
    cr_assert(eq(u64, testing_calls(stage.world.t, TESTING_SENDMSG) - before, 1));
    cr_assert(eq(uint, stage.server.n_asked, 2 * N));
    framed_stage_end(&stage);
}

/* ---- a hundred on a link whose peer reads a little at a time ---- */

enum {
    HUNDRED = 100
};

/* All ask; @return how many are refused, the first of them being *first. */
static unsigned all_ask(struct framed_stage *stage, struct framed_caller *callers, unsigned *clock, unsigned *first)
{
    unsigned refused = 0;

    *first = HUNDRED;
    for (unsigned i = 0; i < HUNDRED; i++) {
        framed_hold(stage, &callers[i]);
        callers[i].clock = clock;
        callers[i].again = bytes;
        callers[i].sent = framed_send(&callers[i], bytes, 300);
        if (callers[i].sent == LINKPOOL_EAGAIN && !refused++)
            *first = i;
        fake_settle(&stage->world);
    }
    return refused;
}

/* Bounds hold, the one refused first is let in first, nobody is left out, and answers are heard all the while. */
Test(framed_queue, of_a_hundred_before_a_slow_reader_nobody_starves_and_all_go_on_hearing)
{
    static struct framed_caller callers[HUNDRED];
    struct framed_caller before = {0};
    unsigned clock = 0, first, refused;
    struct framed_stage stage;

    begin(&stage, 2000);
    stage.options.max_queue = 4096;
    framed_stage_open(&stage);
    memset(bytes, 'q', 300);
    framed_hold(&stage, &before); /* the handshake is over before the peer stops reading */
    fake_give_back(&before.user);
    stop_reading(&stage);
    refused = all_ask(&stage, callers, &clock, &first);
    cr_assert(lt(uint, 50, refused));
    cr_assert(eq(uint, first + refused, HUNDRED)); /* nobody passes one who waits */
    for (unsigned answered = 0; stage.server.n_asked < HUNDRED;) {
        testing_peer_window(stage.server.peer, 400);
        fake_settle(&stage.world);
        cr_assert(le(sz, state_of(&stage)->writer.waiting, 4096));
        for (; answered < stage.server.n_asked; answered++) {
            framed_session_answer(stage.server.session, answered + 1, "a", 1);
            fake_settle(&stage.world);
            cr_assert(eq(uint, callers[answered].answers, 1)); /* though our own bytes wait */
        }
    }
    for (unsigned i = first; i < HUNDRED; i++) {
        cr_assert(eq(uint, callers[i].writables, 1));
        cr_assert(eq(uint, callers[i].at, i - first + 1));
        cr_assert(eq(int, callers[i].sent, 0));
    }
    read_on(&stage);
    framed_stage_end(&stage);
}

/* ---- one write a turn ---- */

enum {
    MANY = 64
};

static struct framed_caller many[MANY];

static void ask_all(void *data)
{
    (void)data;
    for (int i = 0; i < MANY; i++)
        cr_assert(eq(int, framed_send(&many[i], "x", 1), 0));
}

Test(framed_queue, what_one_turn_asks_leaves_in_one_write_whoever_asks)
{
    struct framed_stage stage;

    framed_stage_begin(&stage);
    framed_stage_open(&stage);
    for (int i = 0; i < MANY; i++)
        framed_hold(&stage, &many[i]);
    uint64_t before = testing_calls(stage.world.t, TESTING_SENDMSG);
    ask_all(NULL); /* outside a turn */
    fake_settle(&stage.world);
    cr_assert(eq(u64, testing_calls(stage.world.t, TESTING_SENDMSG) - before, 1));
    testing_at(stage.world.t, testing_now(stage.world.t) + 1, ask_all, NULL); /* a timer of the user's own */
    fake_run(&stage.world, 1);
    cr_assert(eq(u64, testing_calls(stage.world.t, TESTING_SENDMSG) - before, 2)); /* before the turn was over */
    fake_settle(&stage.world);
    cr_assert(eq(uint, stage.server.n_asked, 2 * MANY));
    framed_stage_end(&stage);
}

Test(framed_queue, a_request_given_back_in_the_same_turn_goes_and_one_given_up_does_not)
{
    struct framed_caller back = {0}, up = {0};
    struct framed_stage stage;

    framed_stage_begin(&stage);
    stage.server.holds = true;
    framed_stage_open(&stage);
    cr_assert(eq(int, framed_call(&stage, &up, "up"), 0));
    cr_assert(eq(int, pool_release(&up.user.lease, POOL_DISCARD), 0));
    cr_assert(eq(int, framed_call(&stage, &back, "back"), 0));
    cr_assert(eq(int, pool_release(&back.user.lease, POOL_REUSE), 0));
    fake_settle(&stage.world);
    cr_assert(eq(str, stage.server.order, "q"));
    cr_assert(eq(str, stage.server.asked[0].text, "back"));
    framed_session_answer(stage.server.session, 1, "a", 1); /* nobody's, and swallowed */
    fake_settle(&stage.world);
    cr_assert(eq(int, link_state(framed_link_of(&stage)), LINK_READY));
    framed_stage_end(&stage);
}

Test(framed_queue, what_has_not_left_when_its_link_ends_was_not_sent)
{
    struct framed_caller caller = {0};
    struct framed_stage stage;

    framed_stage_begin(&stage);
    framed_stage_open(&stage);
    framed_hold(&stage, &caller);
    testing_fail_call(stage.world.t, TESTING_SENDMSG, 1, ECONNRESET, false);
    cr_assert(eq(int, framed_send(&caller, "x", 1), 0));
    fake_settle(&stage.world);
    cr_assert(eq(uint, caller.user.closed, 1));
    cr_assert(eq(int, caller.user.lease.fate, POOL_NOT_SENT));
    framed_stage_end(&stage);
}

/* N callers whose requests are answered all at once, so that they ask again from within one read. */
static void ask_again(struct framed_stage *stage, struct framed_caller *callers, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        cr_assert(eq(int, framed_call(stage, &callers[i], "x"), 0));
    fake_settle(&stage->world);
    cr_assert(eq(uint, stage->server.n_asked, n));
}

static const char *text_of(size_t n)
{
    static char text[1 << 17];

    memset(text, 'a', sizeof text);
    text[n] = '\0';
    return text;
}

static void answer_all(struct framed_stage *stage, unsigned n)
{
    for (unsigned i = 1; i <= n; i++)
        framed_session_answer(stage->server.session, i, "a", 1);
    fake_settle(&stage->world);
}

Test(framed_queue, what_is_gathered_is_written_when_it_reaches_a_bound)
{
    enum {
        N = 30
    };
    static struct framed_caller callers[N];
    struct framed_stage stage;

    framed_stage_begin(&stage);
    stage.server.holds = true;
    stage.options.max_queue = 4096;
    testing_send_buffer(stage.world.t, 1 << 20);
    framed_stage_open(&stage);
    ask_again(&stage, callers, N);
    for (unsigned i = 0; i < N; i++)
        callers[i].again = text_of(900);
    answer_all(&stage, N);
    for (unsigned i = 0; i < N; i++)
        cr_assert(eq(int, callers[i].sent, 0)); /* none was refused: the socket takes it */
    cr_assert(eq(uint, stage.server.n_asked, 2 * N));
    framed_stage_end(&stage);
}

Test(framed_queue, no_more_is_gathered_than_makes_a_good_write)
{
    enum {
        N = 30
    };
    static struct framed_caller callers[N];
    struct framed_stage stage;

    framed_stage_begin(&stage);
    stage.server.holds = true;
    testing_send_buffer(stage.world.t, 1 << 20);
    framed_stage_open(&stage);
    ask_again(&stage, callers, N);
    for (unsigned i = 0; i < N; i++)
        callers[i].again = text_of(4000);
    uint64_t before = testing_calls(stage.world.t, TESTING_SENDMSG);
    answer_all(&stage, N);
    cr_assert(eq(u64, testing_calls(stage.world.t, TESTING_SENDMSG) - before, 4)); /* of 32 KiB, and the rest */
    framed_stage_end(&stage);
}

Test(framed_queue, what_is_large_is_not_copied_though_something_was_gathered)
{
    static struct framed_caller callers[2];
    struct framed_stage stage;

    framed_stage_begin(&stage);
    stage.server.holds = true;
    testing_send_buffer(stage.world.t, 1 << 20);
    framed_stage_open(&stage);
    ask_again(&stage, callers, 2);
    callers[0].again = "short";
    callers[1].again = text_of(50000);
    uint64_t before = testing_allocations(stage.world.t);
    answer_all(&stage, 2);
    cr_assert(eq(u64, testing_allocations(stage.world.t) - before, 0)); /* the small one lies in a block that is kept */
    cr_assert(eq(ptr, state_of(&stage)->writer.first, NULL));
    fake_settle(&stage.world);
    cr_assert(eq(sz, stage.server.asked[2].n, 5));
    cr_assert(eq(sz, stage.server.asked[3].n, 50000));
    framed_stage_end(&stage);
}

Test(framed_queue, a_request_in_line_is_one_under_way)
{
    static struct framed_caller fillers[10], caller;
    struct framed_stage stage;

    begin(&stage, 2000);
    framed_stage_open(&stage);
    fill(&stage, fillers);
    cr_assert(eq(int, framed_call(&stage, &caller, "one"), 0));
    cr_assert(eq(int, caller.user.lease.bytes_sent, 3));
    cr_assert(eq(int, framed_send(&caller, "two", 3), LINKPOOL_ESTATE));
    framed_stage_end(&stage);
}

Test(framed_queue, the_first_who_waits_may_take_room_that_was_given_back)
{
    static struct framed_caller fillers[10], queued, first, second;
    struct framed_stage stage;

    begin(&stage, 2000);
    stage.options.max_queue = 4096;
    framed_stage_open(&stage);
    framed_hold(&stage, &queued);
    framed_hold(&stage, &first);
    framed_hold(&stage, &second);
    fill(&stage, fillers);
    cr_assert(eq(int, framed_send(&queued, bytes, 2500), 0));
    cr_assert(eq(int, framed_send(&first, bytes, 2500), LINKPOOL_EAGAIN));
    cr_assert(eq(int, framed_send(&second, bytes, 100), LINKPOOL_EAGAIN));
    cr_assert(eq(int, pool_release(&queued.user.lease, POOL_DISCARD), 0));
    cr_assert(eq(int, framed_send(&second, bytes, 100), LINKPOOL_EAGAIN));
    cr_assert(eq(int, framed_send(&first, bytes, 2500), 0));
    cr_assert(eq(int, framed_send(&second, bytes, 100), 0)); /* nobody is before it any more */
    framed_stage_end(&stage);
}

/* ---- who is told of room, and gives up at once ---- */

static struct {
    struct framed_stage *stage;
    struct framed_caller *caller;
    int sent;
} quitter;

static void quit_and_come_again(struct channel *channel)
{
    pool_release(channel_lease(channel), POOL_DISCARD);
    cr_assert(eq(int, fake_ask(&quitter.stage->world, &quitter.caller->user, framed_address), POOL_READY));
    quitter.sent = channel_send(quitter.caller->user.lease.channel, "x", 1);
}

static void quit_once_told(bool was_served)
{
    static const struct channel_events quits = {.writable = quit_and_come_again};
    static struct framed_caller fillers[10], first, second;
    struct framed_stage stage;
    unsigned clock = 0;

    memset(fillers, 0, sizeof fillers);
    first = second = (struct framed_caller){0};
    begin(&stage, 2000);
    stage.options.max_queue = 4096;
    framed_stage_open(&stage);
    framed_hold(&stage, &first);
    framed_hold(&stage, &second);
    if (was_served) {
        cr_assert(eq(int, framed_send(&first, "x", 1), 0));
        fake_settle(&stage.world);
        framed_session_answer(stage.server.session, 1, "x", 1);
        fake_settle(&stage.world);
        cr_assert(eq(uint, first.answers, 1));
    }
    fill(&stage, fillers);
    second.clock = &clock;
    cr_assert(eq(int, framed_send(&first, bytes, 4000), LINKPOOL_EAGAIN));
    cr_assert(eq(int, framed_send(&second, bytes, 4000), LINKPOOL_EAGAIN));
    channel_watch(first.user.lease.channel, &quits, 0);
    quitter.stage = &stage;
    quitter.caller = &first;
    read_on(&stage);
    fake_run(&stage.world, 0.1);
    cr_assert(eq(int, quitter.sent, LINKPOOL_EAGAIN)); /* `second` waits */
    cr_assert(eq(uint, second.at, 1));
    framed_stage_end(&stage);
}

Test(framed_queue, the_place_of_one_who_is_told_and_gives_up_is_not_inherited)
{
    quit_once_told(false);
    quit_once_told(true); /* it was answered before */
}

/* ---- who finds the connection broken ---- */

static void break_writes(struct framed_stage *stage)
{
    testing_fail_call(stage->world.t, TESTING_SENDMSG, 1, EPIPE, true);
}

Test(framed_queue, who_gives_a_channel_back_may_find_the_connection_broken)
{
    struct framed_caller other = {0}, back = {0};
    struct framed_stage stage;

    framed_stage_begin(&stage);
    framed_stage_open(&stage);
    framed_hold(&stage, &other);
    cr_assert(eq(int, framed_call(&stage, &back, "back"), 0));
    break_writes(&stage);
    cr_assert(eq(int, pool_release(&back.user.lease, POOL_REUSE), 0));
    fake_settle(&stage.world);
    cr_assert(eq(uint, back.user.closed, 0));
    cr_assert(eq(uint, other.user.closed, 1));
    cr_assert(eq(int, other.user.lease.reason, LINK_RESET));
    cr_assert(eq(int, other.user.lease.fate, POOL_NOT_SENT));
    cr_assert(eq(uint, stage.server.n_asked, 0));
    framed_stage_end(&stage);
}

/* What was gathered goes first, and that finds it. */
static void find_it_by_what_was_gathered(size_t next)
{
    struct framed_caller small[2] = {0}, last = {0};
    struct framed_stage stage;

    framed_stage_begin(&stage);
    stage.options.max_queue = 4096;
    framed_stage_open(&stage);
    framed_hold(&stage, &last);
    for (int i = 0; i < 2; i++) {
        framed_hold(&stage, &small[i]);
        cr_assert(eq(int, framed_send(&small[i], bytes, 900), 0));
    }
    break_writes(&stage);
    cr_assert(eq(int, framed_send(&last, bytes, next), LINKPOOL_ELOST));
    fake_settle(&stage.world);
    cr_assert(eq(int, last.user.lease.fate, POOL_NOT_SENT));
    for (int i = 0; i < 2; i++) {
        cr_assert(eq(uint, small[i].user.closed, 1));
        cr_assert(eq(int, small[i].user.lease.fate, POOL_NOT_SENT));
    }
    framed_stage_end(&stage);
}

Test(framed_queue, who_sends_may_find_the_connection_broken_by_what_others_asked_before)
{
    find_it_by_what_was_gathered(3000); /* more than there is room for */
    find_it_by_what_was_gathered(5000);
}

Test(framed_queue, a_large_request_may_find_the_connection_broken_by_what_others_asked_before)
{
    struct framed_caller small = {0}, large = {0};
    struct framed_stage stage;

    framed_stage_begin(&stage);
    framed_stage_open(&stage);
    cr_assert(eq(int, framed_call(&stage, &small, "small"), 0));
    framed_hold(&stage, &large);
    cr_assert(eq(int, framed_send(&small, "again", 5), LINKPOOL_ESTATE)); /* not sent yet, and gathered */
    break_writes(&stage);
    cr_assert(eq(int, framed_send(&large, bytes, 5000), LINKPOOL_ELOST));
    fake_settle(&stage.world);
    cr_assert(eq(int, small.user.lease.fate, POOL_NOT_SENT));
    cr_assert(eq(int, large.user.lease.fate, POOL_NOT_SENT));
    framed_stage_end(&stage);
}

Test(framed_queue, an_answer_to_a_ping_may_find_the_connection_broken)
{
    struct framed_caller caller = {0};
    struct framed_stage stage;

    framed_stage_begin(&stage);
    framed_stage_open(&stage);
    framed_hold(&stage, &caller);
    for (unsigned i = 0; i <= FRAMED_MAX_PONGS; i++)
        framed_session_ping(stage.server.session, "abcdefgh");
    break_writes(&stage);
    fake_settle(&stage.world);
    cr_assert(eq(uint, caller.user.closed, 1));
    cr_assert(eq(int, caller.user.lease.reason, LINK_RESET)); /* that, and not the many pings */
    framed_stage_end(&stage);
}

Test(framed_queue, one_read_that_comes_short_is_enough)
{
    struct framed_caller caller = {0};
    struct framed_stage stage;

    framed_stage_begin(&stage);
    framed_stage_open(&stage);
    framed_hold(&stage, &caller);
    uint64_t before = testing_calls(stage.world.t, TESTING_RECVMSG);
    cr_assert(eq(int, framed_send(&caller, "x", 1), 0));
    fake_settle(&stage.world);
    cr_assert(eq(uint, caller.answers, 1));
    cr_assert(eq(u64, testing_calls(stage.world.t, TESTING_RECVMSG) - before, 1));
    framed_stage_end(&stage);
}

Test(framed_queue, short_writes_change_nothing)
{
    enum {
        N = 50
    };
    static struct framed_caller callers[N];
    struct framed_stage stage;

    framed_stage_begin(&stage);
    testing_short_writes(stage.world.t, true);
    testing_send_buffer(stage.world.t, 3000);
    framed_stage_open(&stage);
    for (unsigned i = 0; i < N; i++) {
        framed_hold(&stage, &callers[i]);
        memcpy(bytes, &i, sizeof i);
        cr_assert(eq(int, framed_send(&callers[i], bytes, sizeof i + 30 * i), 0));
    }
    fake_run(&stage.world, 1);
    for (unsigned i = 0; i < N; i++) {
        cr_assert(eq(uint, callers[i].answers, 1));
        cr_assert(eq(sz, callers[i].n, sizeof i + 30 * i));
        cr_assert(eq(int, memcmp(callers[i].answer, &i, sizeof i), 0));
    }
    framed_stage_end(&stage);
}

Test(framed_queue, what_is_read_in_a_turn_is_bounded)
{
    struct framed_caller caller = {0};
    struct framed_stage stage;
    uint64_t most = 0;

    framed_stage_begin(&stage);
    framed_stage_open(&stage);
    framed_hold(&stage, &caller);
    for (unsigned i = 1; i <= 40000; i++)
        framed_session_limit(stage.server.session, i);
    while (framed_stats(&stage).room < 40000) {
        uint64_t before = testing_calls(stage.world.t, TESTING_RECVMSG);
        fake_turn(&stage.world);
        uint64_t reads = testing_calls(stage.world.t, TESTING_RECVMSG) - before;
        most = reads > most ? reads : most;
    }
    cr_assert(eq(u64, most, 16));
    framed_stage_end(&stage);
}

/* One that may hold bytes back, as TLS does: nothing rings for those, so it is read until it has no more. */
static size_t holds_nothing(const struct transport_link *tl)
{
    (void)tl;
    return 0;
}

Test(framed_queue, a_transport_that_may_hold_bytes_back_is_read_to_the_end)
{
    struct framed_caller caller = {0};
    struct transport transport = transport_tcp;
    struct framed_stage stage;

    transport.pending = holds_nothing;
    framed_stage_begin(&stage);
    stage.world.host.transport = &transport;
    framed_stage_open(&stage);
    framed_hold(&stage, &caller);
    uint64_t before = testing_calls(stage.world.t, TESTING_RECVMSG);
    cr_assert(eq(int, framed_send(&caller, "x", 1), 0));
    fake_settle(&stage.world);
    cr_assert(eq(uint, caller.answers, 1));
    cr_assert(eq(u64, testing_calls(stage.world.t, TESTING_RECVMSG) - before, 2));
    framed_stage_end(&stage);
}

Test(framed_queue, what_such_a_transport_has_is_read_in_one_turn)
{
    struct framed_caller caller = {0};
    struct transport transport = transport_tcp;
    struct framed_stage stage;

    transport.pending = holds_nothing;
    framed_stage_begin(&stage);
    stage.world.host.transport = &transport;
    framed_stage_open(&stage);
    framed_hold(&stage, &caller);
    for (unsigned i = 1; i <= 40000; i++)
        framed_session_limit(stage.server.session, i);
    uint64_t before = testing_calls(stage.world.t, TESTING_RECVMSG);
    fake_turn(&stage.world);
    cr_assert(lt(u64, 16, testing_calls(stage.world.t, TESTING_RECVMSG) - before));
    cr_assert(eq(uint, framed_stats(&stage).room, 40000));
    framed_stage_end(&stage);
}

/* It has taken bytes from the socket that it could not make out before it had written, as TLS may. */
static struct {
    bool is_holding;
    size_t n;
    char bytes[256];
} held;

static ssize_t read_held(struct transport_link *tl, const struct iovec *parts, int n)
{
    struct iovec all = {held.bytes, sizeof held.bytes};
    ssize_t got = (ssize_t)held.n;

    if (held.is_holding) {
        got = transport_tcp.readv(tl, &all, 1);
        held.n = got > 0 ? (size_t)got : held.n;
        errno = EAGAIN;
        return -1;
    }
    if (!held.n)
        return transport_tcp.readv(tl, parts, n);
    memcpy(parts[0].iov_base, held.bytes, held.n);
    held.n = 0;
    return got;
}

Test(framed_queue, what_such_a_transport_gives_up_once_it_could_write_is_read_then)
{
    static struct framed_caller fillers[10];
    struct transport transport = transport_tcp;
    struct framed_stage stage;

    held.is_holding = false;
    transport.pending = holds_nothing;
    transport.readv = read_held;
    begin(&stage, 2000);
    stage.world.host.transport = &transport;
    framed_stage_open(&stage);
    fill(&stage, fillers);
    held.is_holding = true;
    framed_session_answer(stage.server.session, 1, "held", 4);
    fake_settle(&stage.world);
    cr_assert(ne(sz, held.n, 0));
    held.is_holding = false;
    fake_settle(&stage.world);
    cr_assert(eq(uint, fillers[0].answers, 0)); /* nothing rings for it */
    read_on(&stage);
    fake_settle(&stage.world);
    cr_assert(eq(uint, fillers[0].answers, 1));
    framed_stage_end(&stage);
}

/* ---- signs of life ---- */

static struct protocol_link *pl_of(struct framed_stage *stage)
{
    return &((struct link *)(uintptr_t)framed_link_of(stage))->protocol;
}

Test(framed_queue, a_ping_is_answered_and_ours_too)
{
    static struct framed_caller caller;
    struct framed_stage stage;

    framed_stage_begin(&stage);
    framed_stage_open(&stage);
    framed_hold(&stage, &caller);
    framed_session_ping(stage.server.session, "abcdefgh");
    fake_settle(&stage.world);
    cr_assert(eq(uint, stage.server.n_pongs, 1));
    for (unsigned i = 1; i <= 3; i++) {
        cr_assert(eq(int, protocol_framed.ping(pl_of(&stage)), 0));
        fake_settle(&stage.world);
        cr_assert(eq(u64, state_of(&stage)->pongs, i));
    }
    fake_give_back(&caller.user);
    framed_session_ping(stage.server.session, "abcdefgh"); /* nobody holds a channel: the same */
    fake_settle(&stage.world);
    cr_assert(eq(uint, stage.server.n_pongs, 2));
    framed_stage_end(&stage);
}

Test(framed_queue, a_pong_says_what_its_ping_said)
{
    static struct framed_caller caller;
    struct framed_stage stage;

    framed_stage_begin(&stage);
    stage.server.calls.silent = true;
    framed_stage_open(&stage);
    fake_ask(&stage.world, &caller.user, framed_address);
    fake_run(&stage.world, 0.01);
    framed_session_welcome(stage.server.session);
    fake_run(&stage.world, 0.01);
    cr_assert(eq(int, caller.user.status, POOL_READY));
    struct protocol_link *pl = pl_of(&stage);
    stop_reading(&stage); /* the server's own PONG is not said */
    cr_assert(eq(int, protocol_framed.ping(pl), 0));
    framed_session_frame(stage.server.session, 8, FRAMED_PONG, 0, 0, 0, "\0\0\0\0\0\0\0\2", 8);
    fake_settle(&stage.world);
    cr_assert(eq(int, caller.user.lease.reason, LINK_PROTOCOL_ERROR));
    framed_stage_end(&stage);
}

Test(framed_queue, on_a_clogged_link_one_ping_waits)
{
    static struct framed_caller fillers[10];
    struct framed_stage stage;

    begin(&stage, 2000);
    framed_stage_open(&stage);
    fill(&stage, fillers);
    for (int i = 0; i < 10; i++)
        cr_assert(eq(int, protocol_framed.ping(pl_of(&stage)), i ? LINKPOOL_EAGAIN : 0));
    cr_assert(eq(u64, state_of(&stage)->pings, 1));
    read_on(&stage);
    fake_run(&stage.world, 0.1);
    cr_assert(eq(u64, state_of(&stage)->pongs, 1));
    framed_stage_end(&stage);
}

static void ask_for_pongs(unsigned n, bool reads)
{
    static struct framed_caller fillers[10];
    struct framed_stage stage;

    memset(fillers, 0, sizeof fillers);
    begin(&stage, 2000);
    framed_stage_open(&stage);
    fill(&stage, fillers);
    if (reads)
        read_on(&stage);
    for (unsigned i = 0; i < n; i++) {
        framed_session_ping(stage.server.session, "abcdefgh");
        if (reads)
            fake_settle(&stage.world);
    }
    fake_settle(&stage.world);
    cr_assert(eq(uint, fillers[0].user.closed, !reads && n > FRAMED_MAX_PONGS));
    read_on(&stage);
    fake_run(&stage.world, 0.1);
    if (!fillers[0].user.closed)
        cr_assert(eq(uint, stage.server.n_pongs, n));
    framed_stage_end(&stage);
}

Test(framed_queue, many_pings_at_once_are_answered_where_they_can_be)
{
    static struct framed_caller caller;
    struct framed_stage stage;

    framed_stage_begin(&stage);
    framed_stage_open(&stage);
    framed_hold(&stage, &caller);
    for (unsigned i = 0; i < 10 * FRAMED_MAX_PONGS; i++)
        framed_session_ping(stage.server.session, "abcdefgh");
    fake_settle(&stage.world);
    cr_assert(eq(uint, stage.server.n_pongs, 10 * FRAMED_MAX_PONGS));
    framed_stage_end(&stage);
}

Test(framed_queue, a_peer_that_asks_on_and_reads_nothing_is_at_fault)
{
    ask_for_pongs(FRAMED_MAX_PONGS, false);
    ask_for_pongs(FRAMED_MAX_PONGS + 1, false);
    ask_for_pongs(10 * FRAMED_MAX_PONGS, true);
}
