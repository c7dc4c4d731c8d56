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
    cr_assert(gt(uint, nth, 20));
}

Test(framed_memory, all_may_fail_from_any_one_on, .timeout = 60)
{
    unsigned nth = 1;

    while (fail_at(nth, true))
        nth++;
    cr_assert(gt(uint, nth, 10));
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

Test(framed_memory, a_channel_costs_at_most_128_bytes)
{
    cr_assert(le(sz, ((sizeof(struct link_stream) + 15) & ~(size_t)15) + sizeof(struct framed_channel), 128));
}
