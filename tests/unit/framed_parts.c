/* framed_parts.c - answers that come in pieces: to whom, in what order, at what cost, and what ends them. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

#include "link/framed_reader.h"
#include "tests/fakes/framed_stage.h"

enum {
    MIB = 1 << 20
};

static unsigned char filled[MIB]; /* framed_fill()'s */

/** Someone who asks, and takes the answer as it comes. */
struct taker {
    struct framed_caller caller; /* first */
    struct framed_stage *stage;
    size_t n;              /* bytes of the answer so far */
    unsigned parts, lasts; /* told */
    bool is_wrong;         /* a byte was not the one that was due */
    size_t peak;           /* the most that the library had allocated while it was told */
    size_t gives_up_at;    /* bytes from which on it gives the channel back; 0: never */
    enum pool_disposition how;
    bool frees;             /* it frees the pool instead */
    const char *asks_again; /* within the first piece, and within the last */
    int asked[2];           /* what that said */
};

static void give_up(struct taker *taker)
{
    if (!taker->frees) {
        pool_release(&taker->caller.user.lease, taker->how);
        return;
    }
    pool_free(taker->stage->world.pool);
    taker->stage->world.pool = NULL;
}

static void on_part(struct channel *channel, const void *bytes, size_t n, bool last)
{
    struct taker *taker = channel_data(channel);
    size_t in_use = testing_bytes(taker->stage->world.t);

    taker->is_wrong |= taker->n + n > MIB || (n && memcmp(bytes, filled + taker->n, n));
    taker->n += n;
    taker->lasts += last;
    if (in_use > taker->peak)
        taker->peak = in_use;
    if (taker->asks_again && (!taker->parts || last))
        taker->asked[last] = channel_send(channel, taker->asks_again, strlen(taker->asks_again));
    taker->parts++;
    if (taker->gives_up_at && taker->n >= taker->gives_up_at)
        give_up(taker); /* last line */
}

static void on_error(struct channel *channel, uint32_t code, const void *words, size_t n)
{
    struct taker *taker = channel_data(channel);

    cr_assert(lt(sz, n, sizeof taker->caller.answer));
    memcpy(taker->caller.answer, words, n);
    taker->caller.code = code;
    taker->caller.errors++;
}

static const struct channel_events events = {.error = on_error, .part = on_part};

/* A server that holds what it is asked. */
static void begin(struct framed_stage *stage)
{
    framed_fill(filled, MIB);
    framed_stage_begin(stage);
    stage->server.holds = true;
    framed_stage_open(stage);
}

static void ask(struct framed_stage *stage, struct taker *taker)
{
    taker->stage = stage;
    framed_hold(stage, &taker->caller);
    channel_set_data(taker->caller.user.lease.channel, taker);
    cr_assert(eq(int, channel_watch(taker->caller.user.lease.channel, &events, 0), 0));
    cr_assert(eq(int, framed_send(&taker->caller, "x", 1), 0));
    fake_settle(&stage->world);
}

static void answer(struct framed_stage *stage, uint32_t id, size_t n)
{
    framed_session_answer(stage->server.session, id, filled, n);
}

static void expect_taken(const struct taker *taker, size_t n)
{
    cr_assert(eq(sz, taker->n, n));
    cr_assert(not(taker->is_wrong));
    cr_assert(eq(uint, taker->lasts, 1));
    cr_assert(eq(uint, taker->caller.answers, 0));
}

/* The link goes on: a new request has its own answer, whole. */
static void expect_goes_on(struct framed_stage *stage)
{
    struct framed_caller after = {0};

    stage->server.holds = false;
    cr_assert(eq(int, framed_call(stage, &after, "still there"), 0));
    fake_run(&stage->world, 1);
    cr_assert(eq(str, after.answer, "still there"));
    fake_give_back(&after.user);
    cr_assert(eq(uint, testing_peer_accepted(stage->server.peer), 1));
}

/* ---- what comes ---- */

Test(framed_parts, an_answer_comes_in_pieces_in_order_and_the_last_says_so)
{
    struct framed_stage stage;
    struct taker taker = {0};

    begin(&stage);
    ask(&stage, &taker);
    answer(&stage, 1, 100000);
    fake_run(&stage.world, 1);
    expect_taken(&taker, 100000);
    cr_assert(lt(uint, 5, taker.parts));
    cr_assert(eq(u64, taker.caller.user.lease.bytes_received, 100000));
    expect_goes_on(&stage);
    framed_stage_end(&stage);
}

Test(framed_parts, pieces_come_as_the_network_has_them)
{
    struct framed_stage stage;
    struct taker taker = {0};

    begin(&stage);
    testing_peer_drip(stage.server.peer, 1, 0.001);
    ask(&stage, &taker);
    fake_run(&stage.world, 1);
    answer(&stage, 1, 30);
    fake_run(&stage.world, 0.0215); /* the header has come, and some of the rest */
    cr_assert(eq(uint, taker.parts, taker.n));
    cr_assert(lt(sz, 5, taker.n));
    cr_assert(eq(uint, taker.lasts, 0));
    fake_run(&stage.world, 1);
    expect_taken(&taker, 30);
    cr_assert(eq(uint, taker.parts, 30));
    framed_stage_end(&stage);
}

Test(framed_parts, a_small_answer_is_one_piece_be_it_empty)
{
    for (size_t n = 0; n < 3; n++) {
        struct framed_stage stage;
        struct taker taker = {0};
        begin(&stage);
        ask(&stage, &taker);
        answer(&stage, 1, n);
        fake_settle(&stage.world);
        expect_taken(&taker, n);
        cr_assert(eq(uint, taker.parts, 1));
        framed_stage_end(&stage);
    }
}

Test(framed_parts, a_mebibyte_in_pieces_costs_no_memory_and_whole_it_does)
{
    struct framed_caller whole = {0};
    struct framed_stage stage;
    struct taker taker = {0};
    uint64_t allocations;
    size_t before;

    begin(&stage);
    ask(&stage, &taker);
    before = testing_bytes(stage.world.t);
    allocations = testing_allocations(stage.world.t);
    answer(&stage, 1, MIB);
    fake_run(&stage.world, 1);
    expect_taken(&taker, MIB);
    cr_assert(eq(sz, taker.peak, before));
    cr_assert(eq(u64, testing_allocations(stage.world.t), allocations));
    cr_assert(eq(int, framed_call(&stage, &whole, "x"), 0));
    fake_settle(&stage.world);
    answer(&stage, 2, MIB);
    fake_run(&stage.world, 1);
    cr_assert(eq(sz, whole.n, MIB));
    cr_assert(lt(u64, allocations, testing_allocations(stage.world.t)));
    framed_stage_end(&stage);
}

Test(framed_parts, each_channel_has_its_answer_in_its_own_way)
{
    struct framed_caller whole = {0};
    struct taker takers[2] = {0};
    struct framed_stage stage;

    begin(&stage);
    ask(&stage, &takers[0]);
    cr_assert(eq(int, framed_call(&stage, &whole, "x"), 0));
    ask(&stage, &takers[1]);
    answer(&stage, 3, 50000);
    answer(&stage, 2, 60000);
    answer(&stage, 1, 70000);
    fake_run(&stage.world, 1);
    expect_taken(&takers[0], 70000);
    expect_taken(&takers[1], 50000);
    cr_assert(eq(uint, whole.answers, 1));
    cr_assert(eq(sz, whole.n, 60000));
    framed_stage_end(&stage);
}

Test(framed_parts, an_error_comes_whole)
{
    struct framed_stage stage;
    struct taker taker = {0};

    begin(&stage);
    testing_peer_drip(stage.server.peer, 1, 0.001);
    ask(&stage, &taker);
    fake_run(&stage.world, 1);
    framed_session_error(stage.server.session, 1, 300, "no such thing");
    fake_run(&stage.world, 1);
    cr_assert(eq(uint, taker.caller.errors, 1));
    cr_assert(eq(u32, taker.caller.code, 300));
    cr_assert(eq(str, taker.caller.answer, "no such thing"));
    cr_assert(eq(uint, taker.parts, 0));
    framed_stage_end(&stage);
}

Test(framed_parts, the_next_request_may_be_made_within_the_last_piece_and_not_before)
{
    struct framed_stage stage;
    struct taker taker = {.asks_again = "y"};

    begin(&stage);
    ask(&stage, &taker);
    answer(&stage, 1, 40000);
    fake_run(&stage.world, 1);
    cr_assert(eq(int, taker.asked[0], LINKPOOL_ESTATE));
    cr_assert(eq(int, taker.asked[1], 0));
    cr_assert(eq(uint, stage.server.n_asked, 2));
    taker.asks_again = NULL;
    taker.n = 0;
    answer(&stage, 2, 20);
    fake_settle(&stage.world);
    cr_assert(eq(uint, taker.lasts, 2));
    cr_assert(not(taker.is_wrong));
    framed_stage_end(&stage);
}

/* ---- limits ---- */

Test(framed_parts, an_answer_that_is_too_large_is_refused_before_any_piece)
{
    struct framed_stage stage;
    struct taker taker = {0};

    begin(&stage);
    ask(&stage, &taker);
    framed_session_frame(stage.server.session, MIB + 1, FRAMED_ANSWER, 0, 0, 1, filled, 1000);
    fake_run(&stage.world, 1);
    cr_assert(eq(uint, taker.parts, 0));
    cr_assert(eq(uint, taker.caller.user.closed, 1));
    cr_assert(eq(int, taker.caller.user.lease.reason, LINK_PROTOCOL_ERROR));
    framed_stage_end(&stage);
}

Test(framed_parts, an_answer_to_nobody_ends_the_link_at_its_header)
{
    struct framed_stage stage;
    struct taker taker = {0};

    begin(&stage);
    ask(&stage, &taker);
    framed_session_frame(stage.server.session, 1000, FRAMED_ANSWER, 0, 0, 2, filled, 1);
    fake_run(&stage.world, 1);
    cr_assert(eq(uint, taker.parts, 0));
    cr_assert(eq(int, taker.caller.user.lease.reason, LINK_PROTOCOL_ERROR));
    framed_stage_end(&stage);
}

Test(framed_parts, a_request_answered_in_pieces_is_answered_once)
{
    struct framed_stage stage;
    struct taker taker = {0};

    begin(&stage);
    ask(&stage, &taker);
    answer(&stage, 1, 40000);
    answer(&stage, 1, 40000);
    fake_run(&stage.world, 1);
    expect_taken(&taker, 40000);
    cr_assert(eq(int, taker.caller.user.lease.reason, LINK_PROTOCOL_ERROR));
    framed_stage_end(&stage);
}

/* ---- given up ---- */

/* In the middle, and in the last piece: the rest is swallowed, and costs nothing. */
static void give_up_at(size_t at, enum pool_disposition how)
{
    struct framed_stage stage;
    struct taker taker = {.gives_up_at = at, .how = how};
    uint64_t allocations;

    begin(&stage);
    ask(&stage, &taker);
    allocations = testing_allocations(stage.world.t);
    answer(&stage, 1, 100000);
    fake_run(&stage.world, 1);
    cr_assert(not(taker.is_wrong));
    cr_assert(le(sz, taker.n, at + 16384));
    cr_assert(eq(uint, taker.lasts, at == 100000));
    cr_assert(eq(u64, testing_allocations(stage.world.t), allocations));
    cr_assert(eq(uint, stage.server.n_cancelled, 0)); /* it is on its way: there is nothing left to cancel */
    expect_goes_on(&stage);
    framed_stage_end(&stage);
}

Test(framed_parts, one_given_up_within_a_piece_hears_no_more_and_the_link_goes_on)
{
    give_up_at(1, POOL_DISCARD);
    give_up_at(1, POOL_REUSE);
    give_up_at(100000, POOL_DISCARD);
    give_up_at(100000, POOL_REUSE);
}

Test(framed_parts, one_given_up_between_pieces_hears_no_more_and_the_next_gets_its_own)
{
    struct taker taker = {0}, next = {0};
    struct framed_stage stage;

    begin(&stage);
    testing_peer_drip(stage.server.peer, 100, 0.01);
    ask(&stage, &taker);
    fake_run(&stage.world, 1);
    answer(&stage, 1, 1000);
    fake_run(&stage.world, 0.045);
    cr_assert(lt(sz, 100, taker.n));
    cr_assert(eq(uint, taker.lasts, 0));
    size_t n = taker.n;
    pool_release(&taker.caller.user.lease, POOL_REUSE);
    ask(&stage, &next); /* it has the very same channel */
    fake_run(&stage.world, 1);
    cr_assert(eq(sz, taker.n, n));
    cr_assert(eq(uint, next.parts, 0));
    answer(&stage, 2, 500);
    fake_run(&stage.world, 1);
    expect_taken(&next, 500);
    framed_stage_end(&stage);
}

Test(framed_parts, the_late_answer_of_one_given_up_is_not_gathered)
{
    struct framed_caller caller = {0};
    struct framed_stage stage;
    uint64_t allocations;

    begin(&stage);
    cr_assert(eq(int, framed_call(&stage, &caller, "x"), 0));
    fake_settle(&stage.world);
    pool_release(&caller.user.lease, POOL_DISCARD);
    fake_settle(&stage.world);
    allocations = testing_allocations(stage.world.t);
    answer(&stage, 1, MIB);
    fake_run(&stage.world, 1);
    cr_assert(eq(u64, testing_allocations(stage.world.t), allocations));
    expect_goes_on(&stage);
    framed_stage_end(&stage);
}

static void on_message(struct channel *channel, const void *bytes, size_t n)
{
    (void)bytes, (void)n;
    ((struct taker *)channel_data(channel))->is_wrong = true; /* the rest of a message is none */
}

static const struct channel_events wants_it_whole = {.message = on_message};

Test(framed_parts, who_listens_no_more_for_pieces_is_told_none)
{
    struct framed_stage stage;
    struct taker taker = {0};

    begin(&stage);
    testing_peer_drip(stage.server.peer, 100, 0.01);
    ask(&stage, &taker);
    fake_run(&stage.world, 1);
    answer(&stage, 1, 1000);
    fake_run(&stage.world, 0.045);
    cr_assert(lt(uint, 0, taker.parts));
    unsigned parts = taker.parts;
    cr_assert(eq(int, channel_watch(taker.caller.user.lease.channel, &wants_it_whole, 0), 0));
    fake_run(&stage.world, 1);
    cr_assert(eq(uint, taker.parts, parts));
    cr_assert(not(taker.is_wrong));
    cr_assert(eq(u64, taker.caller.user.lease.bytes_received, 1000));
    expect_goes_on(&stage);
    framed_stage_end(&stage);
}

/* ---- the end of its link ---- */

Test(framed_parts, a_link_lost_between_pieces_has_answered_in_part)
{
    struct framed_stage stage;
    struct taker taker = {0};

    begin(&stage);
    ask(&stage, &taker);
    framed_session_frame(stage.server.session, 1000, FRAMED_ANSWER, 0, 0, 1, filled, 400);
    fake_run(&stage.world, 0.1);
    cr_assert(eq(sz, taker.n, 400));
    testing_peer_cut(stage.server.peer, LINK_RESET);
    fake_run(&stage.world, 0.1);
    cr_assert(eq(uint, taker.lasts, 0));
    cr_assert(eq(uint, taker.caller.user.closed, 1));
    cr_assert(eq(int, taker.caller.user.lease.fate, POOL_PARTIAL));
    framed_stage_end(&stage);
}

Test(framed_parts, the_pool_may_be_freed_within_a_piece)
{
    static const size_t at[] = {1, 100000};

    for (unsigned i = 0; i < 2; i++) {
        struct framed_stage stage;
        struct taker taker = {.gives_up_at = at[i], .frees = true};
        begin(&stage);
        ask(&stage, &taker);
        answer(&stage, 1, 100000);
        fake_run(&stage.world, 1);
        cr_assert(not(taker.is_wrong));
        cr_assert(eq(uint, taker.caller.user.closed, 1));
        framed_stage_end(&stage);
    }
}

/* ---- the reader alone ---- */

/* Cut so, the payload comes in pieces that make it up, and nothing is kept. */
static void cut(size_t a, size_t b)
{
    struct testing *t = testing_new(1);
    struct framed_reader reader = {.env = testing_env(t), .max_payload = MIB, .allowed = 0x7fe, .asks = true};
    unsigned char bytes[FRAMED_HEAD + 300 + FRAMED_HEAD + 8];
    size_t taken = 0, lasts = 0, frames = 0;
    struct framed_frame frame;
    char why[96];

    framed__put_head(bytes, FRAMED_ANSWER, 1, 300);
    memcpy(bytes + FRAMED_HEAD, filled, 300);
    framed__put_head(bytes + FRAMED_HEAD + 300, FRAMED_PING, 0, 8);
    memset(bytes + sizeof bytes - 8, 1, 8);
    for (size_t from = 0, step = a; from < sizeof bytes; from += step, step = b) {
        const unsigned char *at = bytes + from;
        size_t n = sizeof bytes - from < step ? sizeof bytes - from : step;
        int found;
        while ((found = framed__next(&reader, &at, &n, &frame, why, sizeof why)) > FRAMED_MORE) {
            frames += found == FRAMED_FRAME;
            framed__frame_done(reader.env, &frame);
            if (found == FRAMED_BEGUN)
                framed__in_pieces(&reader);
            if (found != FRAMED_PIECE)
                continue;
            cr_assert(lt(u32, 0, frame.n_piece));
            cr_assert(eq(int, memcmp(frame.payload, filled + taken, frame.n_piece), 0));
            taken += frame.n_piece;
            lasts += frame.is_last;
            cr_assert(eq(int, frame.is_last, taken == 300));
        }
        cr_assert(eq(int, found, FRAMED_MORE));
    }
    cr_assert(eq(sz, taken, frames == 1 ? 300 : 0)); /* 2: all of it was there with its header */
    cr_assert(eq(sz, lasts, frames == 1));
    cr_assert(eq(sz, testing_blocks(t), 0));
    framed__reader_free(&reader);
    testing_free(t);
}

Test(framed_parts, a_payload_may_be_cut_anywhere)
{
    framed_fill(filled, MIB);
    for (size_t a = 1; a <= 330; a += 3)
        for (size_t b = 1; b <= 330; b += 7)
            cut(a, b);
}
