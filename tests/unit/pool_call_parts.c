/* pool_call_parts.c - calls whose answers come in pieces: told in order, within one deadline, tried again by nobody. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#include "link/framed_wire.h"
#include "pool/internal.h"
#include "tests/fakes/calls.h"
#include "tests/fakes/framed_stage.h"

enum {
    MOST = 200000
};

static unsigned char filled[MOST]; /* framed_fill()'s */

/** Someone who calls, and takes the answer as it comes. */
struct taker {
    struct pool_call call;
    struct framed_stage *stage;
    size_t n;
    unsigned parts, done;
    bool is_wrong;
    int status;
    double told_at;
    char whole[32];                      /* what came whole */
    void (*then)(struct taker *taker);   /* within the first piece; the call may be over after it */
    void (*at_end)(struct taker *taker); /* within `done` */
};

static void on_part(struct pool_call *call, const void *bytes, size_t n)
{
    struct taker *taker = call->data;

    cr_assert(lt(sz, 0, n));
    taker->is_wrong |= taker->n + n > MOST || memcmp(bytes, filled + taker->n, n);
    taker->n += n;
    cr_assert(eq(sz, call->answer_size, taker->n));
    cr_assert(eq(int, call->status, POOL_PENDING));
    if (!taker->parts++ && taker->then)
        taker->then(taker); /* last line */
}

static void on_done(struct pool_call *call)
{
    struct taker *taker = call->data;

    taker->done++;
    taker->status = call->status;
    taker->told_at = testing_now(taker->stage->world.t);
    if (call->answer)
        memcpy(taker->whole, call->answer, call->answer_size < 31 ? call->answer_size : 31);
    if (taker->at_end)
        taker->at_end(taker);
}

/* A server that holds what it is asked. */
static void begin(struct framed_stage *stage)
{
    framed_fill(filled, MOST);
    framed_stage_begin(stage);
    stage->server.holds = true;
    framed_stage_open(stage);
}

static void end(struct framed_stage *stage)
{
    if (stage->world.pool)
        cr_assert(eq(sz, stage->world.pool->call_bytes, 0));
    framed_stage_end(stage);
}

static void ask(struct framed_stage *stage, struct taker *taker)
{
    taker->stage = stage;
    taker->call.to = framed_address;
    taker->call.request = "x";
    taker->call.request_size = 1;
    taker->call.data = taker;
    taker->call.done = on_done;
    taker->call.part = on_part;
    cr_assert(eq(int, pool_call(stage->world.pool, &taker->call), POOL_PENDING));
    fake_settle(&stage->world);
}

static void answer(struct framed_stage *stage, uint32_t id, size_t n)
{
    framed_session_answer(stage->server.session, id, filled, n);
}

/* Of an answer of n bytes, so many. */
static void begin_answer(struct framed_stage *stage, uint32_t id, size_t n, size_t some)
{
    framed_session_frame(stage->server.session, (uint32_t)n, FRAMED_ANSWER, 0, 0, id, filled, some);
    fake_run(&stage->world, 0.01);
}

static void expect_told(const struct taker *taker, int status, enum pool_fate fate, size_t n)
{
    cr_assert(eq(uint, taker->done, 1));
    cr_assert(eq(int, taker->status, status));
    cr_assert(eq(int, taker->call.fate, fate));
    cr_assert(eq(sz, taker->n, n));
    cr_assert(eq(sz, taker->call.answer_size, n));
    cr_assert(not(taker->is_wrong));
    cr_assert(eq(ptr, (void *)taker->call.answer, NULL));
}

/* ---- what is told ---- */

Test(pool_call_parts, each_piece_is_told_and_then_the_end_with_their_sum)
{
    static const size_t sizes[] = {0, 1, 200, 20000, MOST};

    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct framed_stage stage;
        struct taker taker = {0};
        begin(&stage);
        ask(&stage, &taker);
        answer(&stage, 1, sizes[i]);
        fake_run(&stage.world, 1);
        expect_told(&taker, 0, POOL_NOT_SENT, sizes[i]);
        cr_assert(eq(int, taker.parts > 1, sizes[i] > 16384));
        cr_assert(eq(int, taker.parts > 0, sizes[i] > 0));
        cr_assert(eq(uint, fake_stats(&stage.world).leased, 0));
        end(&stage);
    }
}

Test(pool_call_parts, a_large_answer_allocates_nothing)
{
    struct framed_stage stage;
    struct taker taker = {0};
    uint64_t allocations;

    begin(&stage);
    ask(&stage, &taker);
    allocations = testing_allocations(stage.world.t);
    answer(&stage, 1, MOST);
    fake_run(&stage.world, 1);
    expect_told(&taker, 0, POOL_NOT_SENT, MOST);
    cr_assert(eq(u64, testing_allocations(stage.world.t), allocations));
    end(&stage);
}

Test(pool_call_parts, what_a_protocol_gives_whole_comes_with_the_end)
{
    struct framed_stage stage = {0};
    struct taker taker = {.stage = &stage, .call = {.to = "10.0.0.1:80", .request = "hi", .request_size = 2}};

    fake_calls_begin(&stage.world);
    fake_world_open(&stage.world);
    fake_server(&stage.world, "10.0.0.1:80");
    taker.call.data = &taker;
    taker.call.done = on_done;
    taker.call.part = on_part;
    cr_assert(eq(int, pool_call(stage.world.pool, &taker.call), POOL_PENDING));
    fake_settle(&stage.world);
    cr_assert(eq(uint, taker.done, 1));
    cr_assert(eq(int, taker.status, 0));
    cr_assert(eq(uint, taker.parts, 0));
    cr_assert(eq(str, taker.whole, "hi"));
    fake_world_end(&stage.world);
}

/* ---- what goes wrong on the way ---- */

Test(pool_call_parts, a_link_lost_between_pieces_has_answered_in_part_and_nobody_asks_again)
{
    struct framed_stage stage;
    struct taker taker = {.call = {.retries = 3, .flags = POOL_CALL_SAFE_TO_REPEAT | POOL_CALL_WAIT_FOR_READY}};

    begin(&stage);
    ask(&stage, &taker);
    begin_answer(&stage, 1, 1000, 300);
    testing_peer_cut(stage.server.peer, LINK_RESET);
    fake_run(&stage.world, 1);
    expect_told(&taker, LINKPOOL_ELOST, POOL_PARTIAL, 300);
    cr_assert(eq(uint, taker.call.attempts, 1));
    cr_assert(eq(int, taker.call.reason, LINK_RESET));
    cr_assert(eq(uint, stage.server.n_asked, 1));
    end(&stage);
}

Test(pool_call_parts, before_the_first_piece_one_that_is_safe_to_repeat_is_tried_again)
{
    struct framed_stage stage;
    struct taker taker = {.call = {.retries = 3, .flags = POOL_CALL_SAFE_TO_REPEAT | POOL_CALL_WAIT_FOR_READY}};

    begin(&stage);
    ask(&stage, &taker);
    begin_answer(&stage, 1, 1000, 0); /* its header alone */
    testing_peer_cut(stage.server.peer, LINK_RESET);
    fake_run(&stage.world, 1);
    cr_assert(eq(uint, stage.server.n_asked, 2));
    answer(&stage, 1, 1000);
    fake_run(&stage.world, 1);
    cr_assert(eq(int, taker.status, 0));
    cr_assert(eq(uint, taker.call.attempts, 2));
    cr_assert(eq(sz, taker.n, 1000));
    cr_assert(not(taker.is_wrong));
    end(&stage);
}

Test(pool_call_parts, the_deadline_holds_over_all_pieces)
{
    struct framed_stage stage;
    struct taker taker = {.call = {.timeout = 1, .retries = 3, .flags = POOL_CALL_SAFE_TO_REPEAT}};
    double asked;

    begin(&stage);
    asked = testing_now(stage.world.t);
    ask(&stage, &taker);
    begin_answer(&stage, 1, 4000, 300);
    for (unsigned i = 1; i < 14; i++) {
        framed_peer_say(&stage.server, filled + 300 * i, 300 * i < 3900 ? 300 : 100);
        fake_run(&stage.world, 0.1);
    }
    cr_assert(eq(uint, taker.done, 1));
    cr_assert(ieee_ulp_eq(dbl, taker.told_at, asked + 1, 4));
    cr_assert(eq(int, taker.status, LINKPOOL_ETIMEDOUT));
    cr_assert(eq(int, taker.call.fate, POOL_PARTIAL));
    cr_assert(lt(sz, 2000, taker.n));
    cr_assert(lt(sz, taker.n, 4000));
    cr_assert(eq(uint, testing_peer_open(stage.server.peer), 1)); /* the rest was swallowed */
    end(&stage);
}

Test(pool_call_parts, a_link_that_answers_in_part_is_not_silent)
{
    struct framed_stage stage;
    struct taker taker = {.call = {.timeout = 1}};

    framed_fill(filled, MOST);
    framed_stage_begin(&stage);
    stage.world.host.max_unanswered = 1;
    stage.server.holds = true;
    framed_stage_open(&stage);
    ask(&stage, &taker);
    begin_answer(&stage, 1, 1000, 300);
    fake_run(&stage.world, 2);
    expect_told(&taker, LINKPOOL_ETIMEDOUT, POOL_PARTIAL, 300);
    cr_assert(eq(uint, testing_peer_open(stage.server.peer), 1));
    end(&stage);
}

/* ---- what a piece's taker may do ---- */

static void give_up(struct taker *taker)
{
    cr_assert(eq(int, pool_call_cancel(&taker->call), 0));
}

Test(pool_call_parts, a_piece_may_give_up_its_call)
{
    static const size_t sizes[] = {10, 100000}; /* the only piece, and the first of several */

    for (unsigned i = 0; i < 2; i++) {
        struct framed_stage stage;
        struct taker taker = {.then = give_up};
        begin(&stage);
        ask(&stage, &taker);
        answer(&stage, 1, sizes[i]);
        fake_run(&stage.world, 1);
        cr_assert(eq(uint, taker.parts, 1));
        cr_assert(eq(uint, taker.done, 0));
        cr_assert(eq(int, taker.call.status, LINKPOOL_ECANCELLED));
        cr_assert(eq(int, taker.call.fate, POOL_PARTIAL));
        cr_assert(eq(uint, testing_peer_open(stage.server.peer), 1));
        end(&stage);
    }
}

/* The same storage, and the same channel: what is left of the first answer is not the second's. */
static void call_anew(struct taker *taker)
{
    give_up(taker);
    taker->n = 0;
    cr_assert(eq(int, pool_call(taker->stage->world.pool, &taker->call), POOL_PENDING));
}

Test(pool_call_parts, a_piece_may_give_up_its_call_and_make_it_anew)
{
    static const size_t sizes[] = {10, 100000};

    for (unsigned i = 0; i < 2; i++) {
        struct framed_stage stage;
        struct taker taker = {.then = call_anew};
        begin(&stage);
        ask(&stage, &taker);
        answer(&stage, 1, sizes[i]);
        fake_run(&stage.world, 1);
        cr_assert(eq(uint, taker.done, 0));
        cr_assert(eq(sz, taker.n, 0));
        cr_assert(eq(sz, taker.call.answer_size, 0));
        answer(&stage, 2, 500);
        fake_run(&stage.world, 1);
        expect_told(&taker, 0, POOL_NOT_SENT, 500);
        end(&stage);
    }
}

static void scrap(struct taker *taker)
{
    give_up(taker);
    memset(&taker->call, 0x55, sizeof taker->call); /* the storage is the user's again */
}

Test(pool_call_parts, the_storage_of_one_given_up_within_a_piece_is_the_users)
{
    struct framed_stage stage;
    struct taker taker = {.then = scrap};

    begin(&stage);
    ask(&stage, &taker);
    answer(&stage, 1, 100000);
    fake_run(&stage.world, 1);
    cr_assert(eq(uint, taker.parts, 1));
    for (size_t i = 0; i < sizeof taker.call; i++)
        cr_assert(eq(int, ((unsigned char *)&taker.call)[i], 0x55));
    end(&stage);
}

static void free_pool(struct taker *taker)
{
    pool_free(taker->stage->world.pool);
    taker->stage->world.pool = NULL;
}

Test(pool_call_parts, a_piece_may_free_the_pool)
{
    static const size_t sizes[] = {10, 100000};

    for (unsigned i = 0; i < 2; i++) {
        struct framed_stage stage;
        struct taker taker = {.then = free_pool};
        begin(&stage);
        ask(&stage, &taker);
        answer(&stage, 1, sizes[i]);
        fake_run(&stage.world, 1);
        cr_assert(eq(uint, taker.parts, 1));
        cr_assert(eq(uint, taker.done, 1));
        cr_assert(eq(int, taker.status, LINKPOOL_ECLOSED));
        cr_assert(eq(int, taker.call.fate, POOL_PARTIAL));
        end(&stage);
    }
}

static void drain_host(struct taker *taker)
{
    cr_assert(eq(int, pool_host_drain(taker->call.last_host, 0), 0));
}

Test(pool_call_parts, a_piece_may_drain_its_host)
{
    struct framed_stage stage;
    struct taker taker = {.then = drain_host};

    begin(&stage);
    ask(&stage, &taker);
    answer(&stage, 1, 100000);
    fake_run(&stage.world, 1);
    cr_assert(eq(uint, taker.done, 1));
    cr_assert(ne(int, taker.status, POOL_PENDING));
    cr_assert(eq(int, taker.status == 0, taker.n == 100000));
    cr_assert(not(taker.is_wrong));
    end(&stage);
}

static struct taker *other;

static void give_up_other(struct taker *taker)
{
    (void)taker;
    give_up(other);
}

Test(pool_call_parts, a_piece_may_give_up_another_call)
{
    struct framed_stage stage;
    struct taker takers[2] = {{.then = give_up_other}};

    begin(&stage);
    other = &takers[1];
    ask(&stage, &takers[0]);
    ask(&stage, &takers[1]);
    answer(&stage, 1, 50000);
    answer(&stage, 2, 50000);
    fake_run(&stage.world, 1);
    expect_told(&takers[0], 0, POOL_NOT_SENT, 50000);
    cr_assert(eq(uint, takers[1].done + takers[1].parts, 0));
    end(&stage);
}

/* ---- groups ---- */

static struct pool_fanout group;
static unsigned groups_told;

static void give_up_group(struct taker *taker)
{
    (void)taker;
    cr_assert(eq(int, pool_fanout_cancel(&group), 0));
}

static void on_group(struct pool_fanout *told)
{
    (void)told;
    groups_told++;
}

static void run_group(void (*then)(struct taker *taker))
{
    static struct pool_call calls[2];
    struct taker takers[2] = {0};
    struct framed_stage stage;

    begin(&stage);
    groups_told = 0;
    for (unsigned i = 0; i < 2; i++) {
        takers[i] = (struct taker){.stage = &stage, .then = then};
        calls[i] = (struct pool_call){
            .to = framed_address, .request = "x", .request_size = 1, .part = on_part, .data = &takers[i]};
    }
    group = (struct pool_fanout){.calls = calls, .n = 2, .done = on_group};
    cr_assert(eq(int, pool_fanout(stage.world.pool, &group), POOL_PENDING));
    fake_settle(&stage.world);
    answer(&stage, 1, 50000);
    answer(&stage, 2, 50000);
    fake_run(&stage.world, 1);
    cr_assert(eq(uint, groups_told, then ? 0 : 1));
    cr_assert(eq(sz, takers[0].n, then ? calls[0].answer_size : 50000));
    cr_assert(eq(uint, takers[1].parts > 0, !then));
    cr_assert(eq(int, calls[0].status, then ? LINKPOOL_ECANCELLED : 0));
    end(&stage);
}

Test(pool_call_parts, the_calls_of_a_group_may_take_pieces)
{
    run_group(NULL);
    run_group(give_up_group);
}
