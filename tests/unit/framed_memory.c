/* framed_memory.c - framed links when memory runs out, at each allocation in turn; and whose callbacks free the pool.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "link/framed_link.h"
#include "link/internal.h"
#include "tests/fakes/framed_stage.h"

enum {
    CALLERS = 24
};

static char bytes[20000];

/* Many callers before a slow socket, large and small; pings, a cancelled one, and one that ends while it is in line. */
static void use(struct framed_stage *stage, struct framed_caller *callers)
{
    for (int i = 0; i < CALLERS; i++) {
        callers[i].user.lease.flags = POOL_WAIT_FOR_READY;
        callers[i].user.lease.timeout = INFINITY;
        fake_ask(&stage->world, &callers[i].user, framed_address);
    }
    fake_run(&stage->world, 0.5);
}

static const struct channel_events deaf;

static void play(struct framed_stage *stage, struct framed_caller *callers)
{
    testing_peer_window(stage->server.peer, 3000);
    for (int i = 0; i < CALLERS; i++) {
        struct pool_lease *lease = &callers[i].user.lease;
        if (!lease->channel)
            continue;
        channel_watch(lease->channel, &deaf, 0);
        channel_send(lease->channel, bytes, i % 5 == 3 ? 20000 : 300);
        if (i % 7 == 4 && lease->channel)
            pool_release(lease, POOL_DISCARD);
        if (i == 10 && stage->server.session)
            framed_session_ping(stage->server.session, "12345678");
    }
    fake_run(&stage->world, 0.1);
    testing_peer_window(stage->server.peer, SIZE_MAX);
    fake_run(&stage->world, 1);
}

static void release_all(struct framed_stage *stage, struct framed_caller *callers)
{
    for (int i = 0; i < CALLERS; i++)
        if (callers[i].user.lease.channel)
            pool_release(&callers[i].user.lease, POOL_REUSE);
        else if (callers[i].user.status == POOL_PENDING)
            pool_cancel(&callers[i].user.lease);
    fake_run(&stage->world, 5);
}

/* @return whether an allocation was left to fail. */
static bool fail_at(unsigned nth, bool all_from_then)
{
    static struct framed_caller callers[CALLERS], after;
    struct framed_stage stage;
    uint64_t before;

    memset(callers, 0, sizeof callers);
    memset(&after, 0, sizeof after);
    framed_stage_begin(&stage);
    testing_send_buffer(stage.world.t, 2000);
    framed_stage_open(&stage);
    before = testing_allocations(stage.world.t);
    testing_fail_allocation(stage.world.t, nth, all_from_then);
    use(&stage, callers);
    play(&stage, callers);
    bool met = testing_allocations(stage.world.t) - before >= nth;
    testing_fail_allocation(stage.world.t, 0, false);
    release_all(&stage, callers);
    after.user.lease.flags = POOL_WAIT_FOR_READY;
    cr_assert(eq(int, framed_call(&stage, &after, "still there"), 0), "allocation %u", nth);
    fake_run(&stage.world, 1);
    cr_assert(eq(str, after.answer, "still there"), "allocation %u", nth);
    framed_stage_end(&stage);
    return met;
}

Test(framed_memory, each_allocation_may_fail_once, .timeout = 60)
{
    unsigned nth = 1;

    while (fail_at(nth, false))
        nth++;
    cr_assert(lt(uint, 20, nth));
}

Test(framed_memory, all_may_fail_from_any_one_on, .timeout = 60)
{
    unsigned nth = 1;

    while (fail_at(nth, true))
        nth++;
    cr_assert(lt(uint, 10, nth));
}

Test(framed_memory, each_system_call_may_fail, .timeout = 60)
{
    static const enum testing_call calls[] = {TESTING_RECVMSG, TESTING_SENDMSG};

    for (unsigned i = 0; i < 2; i++)
        for (unsigned nth = 1; nth < 30; nth++) {
            static struct framed_caller callers[CALLERS], after;
            struct framed_stage stage;
            memset(callers, 0, sizeof callers);
            memset(&after, 0, sizeof after);
            framed_stage_begin(&stage);
            testing_send_buffer(stage.world.t, 2000);
            framed_stage_open(&stage);
            testing_fail_call(stage.world.t, calls[i], nth, nth % 2 ? ECONNRESET : EAGAIN, false);
            use(&stage, callers);
            play(&stage, callers);
            testing_fail_call(stage.world.t, calls[i], 0, 0, false);
            release_all(&stage, callers);
            after.user.lease.flags = POOL_WAIT_FOR_READY;
            cr_assert(eq(int, framed_call(&stage, &after, "still there"), 0));
            fake_run(&stage.world, 1);
            cr_assert(eq(str, after.answer, "still there"));
            framed_stage_end(&stage);
        }
}

/* ---- what is freed meanwhile ---- */

static struct framed_stage *freed;
static unsigned seen;

static void free_in_message(struct channel *channel, const void *message, size_t n)
{
    (void)channel;
    pool_free(freed->world.pool);
    freed->world.pool = NULL;
    for (size_t i = 0; i < n; i++) /* the bytes are lent for the whole call */
        seen += ((const unsigned char *)message)[i];
}

static void free_in_error(struct channel *channel, uint32_t code, const void *words, size_t n)
{
    (void)code;
    free_in_message(channel, words, n);
}

static void free_in_writable(struct channel *channel)
{
    (void)channel;
    pool_free(freed->world.pool);
    freed->world.pool = NULL;
    seen++;
}

static const struct channel_events frees = {
    .message = free_in_message, .error = free_in_error, .writable = free_in_writable};

static void free_meanwhile(size_t size, bool error)
{
    static struct framed_caller callers[3];
    static unsigned char answer[100000];
    struct framed_stage stage;

    memset(callers, 0, sizeof callers);
    framed_stage_begin(&stage);
    stage.server.holds = true;
    freed = &stage;
    seen = 0;
    framed_stage_open(&stage);
    for (int i = 0; i < 3; i++) {
        cr_assert(eq(int, framed_call(&stage, &callers[i], "x"), 0));
        channel_watch(callers[i].user.lease.channel, &frees, 0);
    }
    fake_settle(&stage.world);
    memset(answer, 1, size);
    answer[size] = 0;
    for (uint32_t i = 1; i <= 3; i++)
        if (error)
            framed_session_error(stage.server.session, i, 300, (char *)answer);
        else
            framed_session_answer(stage.server.session, i, answer, size);
    fake_run(&stage.world, 0.1);
    cr_assert(eq(uint, seen, size));
    for (int i = 0; i < 3; i++)
        cr_assert(eq(uint, callers[i].user.closed, 1)); /* even the one that asked for it */
    framed_stage_end(&stage);
}

Test(framed_memory, the_pool_may_be_freed_while_a_message_is_told)
{
    free_meanwhile(100, false);
    free_meanwhile(60000, false); /* one that was put together */
    free_meanwhile(100, true);
}

Test(framed_memory, the_pool_may_be_freed_while_room_is_told)
{
    static struct framed_caller callers[3];
    struct framed_stage stage;

    framed_stage_begin(&stage);
    stage.options.max_queue = 4096;
    freed = &stage;
    testing_send_buffer(stage.world.t, 2000);
    framed_stage_open(&stage);
    for (int i = 0; i < 3; i++) {
        framed_hold(&stage, &callers[i]);
        channel_watch(callers[i].user.lease.channel, &frees, 0);
    }
    testing_peer_window(stage.server.peer, 0);
    cr_assert(eq(int, framed_send(&callers[0], bytes, 5000), 0));
    cr_assert(eq(int, framed_send(&callers[1], bytes, 5000), LINKPOOL_EAGAIN));
    cr_assert(eq(int, framed_send(&callers[2], bytes, 5000), LINKPOOL_EAGAIN));
    seen = 0;
    testing_peer_window(stage.server.peer, SIZE_MAX);
    fake_run(&stage.world, 0.1);
    cr_assert(eq(uint, seen, 1));
    framed_stage_end(&stage);
}

Test(framed_memory, leasing_and_asking_on_a_warm_link_allocates_nothing)
{
    struct framed_caller caller = {0};
    struct framed_stage stage;
    uint64_t before = 0;

    framed_stage_begin(&stage);
    framed_stage_open(&stage);
    for (int i = 0; i < 20; i++) {
        if (i == 10)
            before = testing_allocations(stage.world.t);
        cr_assert(eq(int, framed_call(&stage, &caller, "x"), 0));
        fake_settle(&stage.world);
        fake_give_back(&caller.user);
    }
    cr_assert(eq(uint, caller.answers, 20));
    cr_assert(eq(u64, testing_allocations(stage.world.t), before));
    framed_stage_end(&stage);
}

/* ---- calls ---- */

enum {
    CALLS = 64
};

static struct {
    struct pool *pool;
    struct pool_call calls[CALLS];
    unsigned to_ask, told;
} asking;

static void ask_on(struct pool_call *call)
{
    cr_assert(eq(int, call->status, 0));
    asking.told++;
    if (!asking.to_ask)
        return;
    asking.to_ask--;
    cr_assert(eq(int, pool_call(asking.pool, call), POOL_PENDING));
}

static void ask_all(struct framed_stage *stage, unsigned n)
{
    asking.pool = stage->world.pool;
    asking.to_ask = n - CALLS;
    asking.told = 0;
    for (int i = 0; i < CALLS; i++) {
        asking.calls[i].to = framed_address;
        asking.calls[i].request = "x";
        asking.calls[i].request_size = 1;
        asking.calls[i].done = ask_on;
        cr_assert(eq(int, pool_call(asking.pool, &asking.calls[i]), POOL_PENDING));
    }
    fake_settle(&stage->world);
    cr_assert(eq(uint, asking.told, n));
}

/* From a callback, and from outside. */
Test(framed_memory, a_call_on_a_warm_link_allocates_nothing)
{
    struct framed_stage stage;
    uint64_t before;

    framed_stage_begin(&stage);
    framed_stage_open(&stage);
    ask_all(&stage, 10 * CALLS);
    before = testing_allocations(stage.world.t);
    ask_all(&stage, 10 * CALLS);
    ask_all(&stage, 10 * CALLS);
    cr_assert(eq(u64, testing_allocations(stage.world.t), before));
    framed_stage_end(&stage);
}

/* ---- how much ---- */

/* By the allocator: all that a link holds for channels in use, each with a request under way. */
Test(framed_memory, a_channel_costs_at_most_128_bytes)
{
    static struct framed_caller callers[1000];
    static const unsigned counts[] = {16, 17, 33, 64, 65, 257, 1000};
    struct framed_stage stage;
    unsigned held = 0;
    size_t idle;

    framed_stage_begin(&stage);
    stage.server.calls.channels = 1000;
    stage.server.holds = true;
    framed_stage_open(&stage);
    framed_hold(&stage, &callers[0]);
    fake_give_back(&callers[0].user);
    memset(&callers[0], 0, sizeof callers[0]);
    idle = testing_bytes(stage.world.t);
    for (unsigned i = 0; i < sizeof counts / sizeof *counts; i++) {
        for (; held < counts[i]; held++)
            cr_assert(eq(int, framed_call(&stage, &callers[held], "x"), 0));
        fake_settle(&stage.world);
        cr_assert(le(sz, testing_bytes(stage.world.t) - idle, 128 * held + LINK_BLOCK * LINK_SPARE_BLOCKS));
        size_t blocks = link__core(framed_link_of(&stage))->blocks.n_spare * (size_t)LINK_BLOCK;
        cr_assert(le(sz, testing_bytes(stage.world.t) - idle - blocks, 128 * held), "%u", held);
    }
    framed_stage_end(&stage);
}

Test(framed_memory, blocks_that_are_kept_are_bounded)
{
    struct testing *t = testing_new(1);
    const struct linkpool_env *env = testing_env(t);
    struct link_blocks blocks = {0};
    void *taken[2 * LINK_SPARE_BLOCKS];

    for (int i = 0; i < 2 * LINK_SPARE_BLOCKS; i++)
        cr_assert(ne(ptr, taken[i] = link__block_take(&blocks, env), NULL));
    for (int i = 0; i < 2 * LINK_SPARE_BLOCKS; i++)
        link__block_give(&blocks, env, taken[i]);
    cr_assert(eq(sz, testing_blocks(t), LINK_SPARE_BLOCKS));
    link__blocks_free(&blocks, env);
    cr_assert(eq(sz, testing_blocks(t), 0));
    testing_free(t);
}

/* The socket does not take the HELLO, and there is no memory to keep it in. */
Test(framed_memory, a_hello_that_has_to_wait_may_fail)
{
    bool was_met = false;

    for (unsigned nth = 1; nth < 20 && !was_met; nth++) {
        struct framed_caller after = {0};
        struct fake_user user = {0};
        struct framed_stage stage;
        char text[400];
        framed_stage_begin(&stage);
        framed_stage_open(&stage);
        testing_fail_call(stage.world.t, TESTING_SENDMSG, 1, EAGAIN, false);
        testing_fail_allocation(stage.world.t, nth, false);
        fake_ask(&stage.world, &user, framed_address);
        fake_run(&stage.world, 0.01);
        pool_explain(&user.lease, text, sizeof text);
        if (fake_host(&stage.world, framed_address))
            pool_host_explain(fake_host(&stage.world, framed_address), text, sizeof text);
        if (strstr(text, "no memory for the HELLO")) {
            was_met = true;
            cr_assert(eq(int, user.status, LINKPOOL_EUNAVAILABLE));
            cr_assert(eq(int, user.lease.reason, LINK_NO_MEMORY));
        }
        testing_fail_allocation(stage.world.t, 0, false);
        fake_run(&stage.world, 5);
        framed_hold(&stage, &after);
        fake_give_back(&after.user);
        if (user.lease.channel)
            fake_give_back(&user);
        framed_stage_end(&stage);
    }
    cr_assert(was_met);
}
