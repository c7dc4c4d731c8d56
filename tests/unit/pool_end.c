/* pool_end.c - the end of a pool: drained, freed from anywhere, forgotten after a fork. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <ev.h>
#include <math.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fakes/shared.h"
#include "tests/fakes/world.h"

static const char a[] = "10.0.0.1:80", b[] = "10.0.0.2:80";
static const char *const both[] = {a, b};

/* One link a host: who comes second waits. */
static struct testing_peer *begin(struct fake_world *world)
{
    fake_world_begin(world);
    world->host.max_links = 1;
    fake_world_open(world);
    return fake_echo(world, a);
}

static void count(struct pool *pool, void *data)
{
    (void)pool;
    ++*(unsigned *)data;
}

/* ---- drain ---- */

Test(pool_end, a_draining_pool_lets_those_waiting_and_out_finish)
{
    struct fake_user holder = {0}, waiter = {0}, late = {0};
    struct fake_world world;
    unsigned drained = 0;

    struct testing_peer *peer = begin(&world);
    fake_hold(&world, &holder, a);
    fake_ask(&world, &waiter, a);
    cr_assert(eq(int, pool_drain(world.pool, INFINITY, count, &drained), 0));
    cr_assert(eq(int, fake_ask(&world, &late, a), LINKPOOL_ECLOSED));
    cr_assert(eq(int, late.lease.status, LINKPOOL_ECLOSED));
    fake_run(&world, 1);
    fake_exchange(&world, &holder);
    fake_give_back(&holder);
    fake_settle(&world);
    cr_assert(eq(int, waiter.status, POOL_READY));
    cr_assert(eq(uint, drained, 0));
    fake_give_back(&waiter);
    cr_assert(eq(uint, drained, 0)); /* from the loop */
    fake_settle(&world);
    cr_assert(eq(uint, drained, 1));
    cr_assert(eq(uint, testing_peer_open(peer), 0));
    fake_run(&world, 100);
    cr_assert(eq(uint, drained, 1));
    fake_world_end(&world);
}

Test(pool_end, a_draining_pool_closes_idle_links_and_ends_attempts_at_once)
{
    struct fake_user user = {0}, cancelled = {0};
    struct fake_world world;
    unsigned drained = 0;

    begin(&world);
    fake_peer(&world, b, TESTING_BLACK_HOLE);
    fake_hold(&world, &user, a);
    fake_give_back(&user);
    fake_ask(&world, &cancelled, b);
    fake_settle(&world);
    pool_cancel(&cancelled.lease);
    cr_assert(eq(int, pool_drain(world.pool, 30, count, &drained), 0));
    fake_settle(&world);
    cr_assert(eq(uint, drained, 1));
    cr_assert(eq(uint, testing_open_descriptors(world.t), 0));
    fake_world_end(&world);
}

Test(pool_end, what_is_left_when_the_drain_is_over_is_ended)
{
    struct fake_user holder = {0}, waiter = {.lease.timeout = 100};
    struct fake_world world;
    unsigned drained = 0;

    begin(&world);
    fake_hold(&world, &holder, a);
    fake_ask(&world, &waiter, a);
    double asked = testing_now(world.t);
    pool_drain(world.pool, 3, count, &drained);
    fake_run(&world, 2.9);
    cr_assert(eq(uint, holder.closed + waiter.done + drained, 0));
    fake_run(&world, 0.2);
    cr_assert(eq(uint, holder.closed, 1));
    cr_assert(eq(int, holder.lease.status, LINKPOOL_ECLOSED));
    cr_assert(eq(int, waiter.status, LINKPOOL_ECLOSED));
    cr_assert(epsilon_eq(dbl, waiter.told_at - asked, 3, 1e-6));
    cr_assert(eq(uint, drained, 1));
    fake_world_end(&world);
}

Test(pool_end, a_drain_of_0_ends_all_in_this_turn)
{
    struct fake_user holder = {0}, waiter = {0};
    struct fake_world world;
    unsigned drained = 0;

    begin(&world);
    fake_hold(&world, &holder, a);
    fake_ask(&world, &waiter, a);
    pool_drain(world.pool, 0, count, &drained);
    cr_assert(eq(uint, holder.closed + waiter.done + drained, 0)); /* never inside the call */
    fake_settle(&world);
    cr_assert(eq(uint, holder.closed, 1));
    cr_assert(eq(uint, waiter.done, 1));
    cr_assert(eq(uint, drained, 1));
    fake_world_end(&world);
}

Test(pool_end, a_draining_pool_takes_nothing_new)
{
    struct pool_target_options options;
    struct fake_world world;

    begin(&world);
    struct pool_host *host = pool_host(world.pool, a);
    struct pool_target *target = fake_target(&world, "db", &pool_pick_first, both, 1);
    cr_assert(eq(int, pool_drain(world.pool, -1, NULL, NULL), LINKPOOL_EINVAL));
    cr_assert(eq(int, pool_drain(world.pool, NAN, NULL, NULL), LINKPOOL_EINVAL));
    cr_assert(eq(int, pool_drain(world.pool, 10, NULL, NULL), 0));
    cr_assert(eq(int, pool_drain(world.pool, 10, NULL, NULL), LINKPOOL_ESTATE));
    pool_target_options_init(&options);
    cr_assert(eq(ptr, pool_host(world.pool, b), NULL));
    cr_assert(eq(int, errno, ESHUTDOWN));
    cr_assert(eq(ptr, pool_target_add(world.pool, "other", &options), NULL));
    cr_assert(eq(int, errno, ESHUTDOWN));
    cr_assert(eq(int, pool_host_start(host), LINKPOOL_ECLOSED));
    cr_assert(eq(int, pool_target_start(target), LINKPOOL_ECLOSED));
    cr_assert(eq(int, pool_target_update(target, NULL, 0), LINKPOOL_ECLOSED));
    fake_world_end(&world);
}

Test(pool_end, a_host_out_of_service_is_down_until_it_is_started)
{
    struct fake_user holder = {0}, waiter = {0}, late = {0}, other = {0};
    struct fake_world world;

    begin(&world);
    fake_echo(&world, b);
    struct pool_target *target = fake_target(&world, "db", &pool_pick_first, both, 2);
    struct pool_host *host = pool_target_host(target, 0);
    fake_hold(&world, &holder, a);
    fake_ask(&world, &waiter, a);
    cr_assert(eq(int, pool_host_drain(host, -1), LINKPOOL_EINVAL));
    cr_assert(eq(int, pool_host_drain(host, 30), 0));
    cr_assert(eq(int, pool_host_state(host), LINK_DRAINING));
    cr_assert(eq(int, fake_ask(&world, &late, a), LINKPOOL_ECLOSED));
    fake_hold(&world, &other, "db");
    cr_assert(ne(ptr, other.lease.host, host));
    fake_give_back(&other);
    fake_give_back(&holder);
    fake_settle(&world);
    cr_assert(eq(int, waiter.status, POOL_READY)); /* those waiting and out may finish */
    fake_give_back(&waiter);
    fake_settle(&world);
    cr_assert(eq(uint, fake_host_stats(host).links[LINK_READY], 0));
    cr_assert(eq(int, pool_host_start(host), 0));
    fake_settle(&world);
    cr_assert(eq(int, fake_ask(&world, &late, a), POOL_READY));
    fake_world_end(&world);
}

Test(pool_end, what_is_left_when_a_hosts_drain_is_over_is_ended)
{
    struct fake_user holder = {0}, waiter = {.lease.timeout = 100}, other = {0};
    struct fake_world world;

    begin(&world);
    fake_echo(&world, b);
    fake_hold(&world, &holder, a);
    fake_hold(&world, &other, b);
    fake_ask(&world, &waiter, a);
    double asked = testing_now(world.t);
    cr_assert(eq(int, pool_host_drain(holder.lease.host, 3), 0));
    fake_run(&world, 2.9);
    cr_assert(eq(uint, holder.closed + waiter.done, 0));
    fake_run(&world, 0.2);
    cr_assert(eq(uint, holder.closed, 1));
    cr_assert(eq(int, holder.lease.status, LINKPOOL_ECLOSED));
    cr_assert(eq(int, waiter.status, LINKPOOL_ECLOSED));
    cr_assert(epsilon_eq(dbl, waiter.told_at - asked, 3, 1e-6));
    fake_exchange(&world, &other); /* the other host goes on */
    fake_world_end(&world);
}

/* ---- free ---- */

Test(pool_end, free_tells_everybody_before_it_returns)
{
    struct fake_user holder = {0}, waiters[3] = {0}, coming = {0};
    struct fake_world world;

    begin(&world);
    fake_peer(&world, b, TESTING_BLACK_HOLE);
    fake_target(&world, "db", &pool_round_robin, both, 2);
    fake_hold(&world, &holder, a);
    fake_ask(&world, &waiters[0], a);
    fake_ask(&world, &waiters[1], "db");
    fake_ask(&world, &waiters[2], b);
    fake_run(&world, 0.1);
    fake_ask(&world, &coming, a);
    pool_free(world.pool);
    world.pool = NULL;
    cr_assert(eq(uint, holder.closed, 1));
    cr_assert(eq(int, holder.lease.status, LINKPOOL_ECLOSED));
    cr_assert(eq(ptr, holder.lease.channel, NULL));
    for (int i = 0; i < 3; i++)
        cr_assert(eq(int, waiters[i].status, LINKPOOL_ECLOSED));
    cr_assert(eq(uint, coming.done, 1));
    cr_assert(eq(uint, testing_open_descriptors(world.t), 0));
    fake_run(&world, 100);
    cr_assert(eq(uint, world.told, 6)); /* each once */
    fake_world_end(&world);
}

Test(pool_end, free_tells_a_winner_that_had_not_been_told)
{
    struct fake_user holder = {0}, winner = {0};
    struct fake_world world;

    begin(&world);
    fake_hold(&world, &holder, a);
    fake_ask(&world, &winner, a);
    fake_give_back(&holder);
    pool_free(world.pool);
    world.pool = NULL;
    cr_assert(eq(uint, winner.done, 1));
    cr_assert(eq(int, winner.status, LINKPOOL_ECLOSED));
    cr_assert(eq(uint, winner.closed, 0));
    fake_world_end(&world);
}

Test(pool_end, free_of_nothing_does_nothing)
{
    pool_free(NULL);
}

Test(pool_end, leases_are_over_after_free_and_may_be_used_on_another_pool)
{
    struct fake_user user = {0};
    struct fake_world world;

    begin(&world);
    fake_hold(&world, &user, a);
    pool_free(world.pool);
    cr_assert(eq(int, pool_release(&user.lease, POOL_REUSE), LINKPOOL_ESTATE));
    cr_assert(eq(int, pool_cancel(&user.lease), LINKPOOL_ESTATE));
    fake_world_open(&world);
    fake_hold(&world, &user, a);
    fake_exchange(&world, &user);
    fake_world_end(&world);
}

/* Someone who frees the pool from inside a callback; the others are users as usual. */
struct killer {
    struct pool_lease lease;
    struct fake_world *world;
    unsigned killed;
};

static void kill_pool(struct killer *killer)
{
    pool_free(killer->world->pool);
    killer->world->pool = NULL;
    killer->killed++;
}

static void kill_by_lease(struct pool_lease *lease)
{
    kill_pool(lease->data);
}
static void kill_by_timer(void *data)
{
    kill_pool(data);
}
static void kill_by_channel(struct channel *channel)
{
    kill_pool(channel_data(channel));
}

static void kill_by_message(struct channel *channel, const void *bytes, size_t n)
{
    (void)bytes;
    (void)n;
    kill_pool(channel_data(channel));
}

static void kill_by_drain(struct pool *pool, void *data)
{
    (void)pool;
    kill_pool(data);
}

static void kill_by_target(struct pool_target *target, void *data)
{
    (void)target;
    kill_pool(data);
}

static void none(struct pool_lease *lease)
{
    (void)lease;
}

static void begin_with_killer(struct fake_world *world, struct killer *killer, struct fake_user *others)
{
    begin(world);
    fake_peer(world, b, TESTING_BLACK_HOLE);
    *killer =
        (struct killer){.world = world, .lease = {.done = kill_by_lease, .closed = kill_by_lease, .data = killer}};
    fake_ask(world, &others[0], b);
    fake_ask(world, &others[1], b);
}

static void expect_killed(struct fake_world *world, const struct killer *killer, const struct fake_user *others)
{
    cr_assert(eq(uint, killer->killed, 1));
    for (int i = 0; i < 2; i++) {
        cr_assert(eq(uint, others[i].done, 1));
        cr_assert(eq(int, others[i].status, LINKPOOL_ECLOSED));
    }
    fake_run(world, 10);
    fake_world_end(world);
}

Test(pool_end, free_inside_done)
{
    struct fake_user others[2] = {0};
    struct fake_world world;
    struct killer killer;

    begin_with_killer(&world, &killer, others);
    killer.lease.closed = none; /* of its own channel: it had it for a moment */
    cr_assert(eq(int, pool_acquire(world.pool, a, &killer.lease), POOL_PENDING));
    fake_settle(&world);
    cr_assert(eq(int, killer.lease.status, LINKPOOL_ECLOSED));
    expect_killed(&world, &killer, others);
}

Test(pool_end, free_inside_done_of_a_failure)
{
    struct fake_user others[2] = {0};
    struct fake_world world;
    struct killer killer;

    begin_with_killer(&world, &killer, others);
    cr_assert(eq(int, pool_acquire(world.pool, "10.0.0.9:80", &killer.lease), POOL_PENDING)); /* refused */
    fake_settle(&world);
    cr_assert(eq(int, killer.lease.status, LINKPOOL_EUNAVAILABLE));
    expect_killed(&world, &killer, others);
}

Test(pool_end, free_inside_readable_and_writable)
{
    static const struct channel_events events = {.readable = kill_by_channel, .writable = kill_by_channel};

    for (unsigned want = LINKPOOL_READ; want <= LINKPOOL_WRITE; want++) {
        struct fake_user others[2] = {0}, holder = {0};
        struct fake_world world;
        struct killer killer;
        begin_with_killer(&world, &killer, others);
        fake_hold(&world, &holder, a);
        channel_set_data(holder.lease.channel, &killer);
        channel_watch(holder.lease.channel, &events, want);
        fake_send(&holder, "x");
        fake_settle(&world);
        cr_assert(eq(uint, holder.closed, 1));
        expect_killed(&world, &killer, others);
    }
}

Test(pool_end, free_inside_message_and_closed_of_a_shared_link)
{
    static const struct channel_events events = {.message = kill_by_message};

    for (int i = 0; i < 2; i++) {
        struct fake_user holders[2] = {0};
        struct fake_world world;
        struct killer killer;
        fake_world_begin(&world);
        world.host.protocol = &fake_shared;
        fake_world_open(&world);
        struct testing_peer *peer = fake_echo(&world, a);
        killer = (struct killer){.world = &world, .lease = {.done = none, .closed = kill_by_lease, .data = &killer}};
        if (i)
            killer.lease.closed = none;
        for (int k = 0; k < 2; k++)
            fake_hold(&world, &holders[k], a);
        cr_assert(eq(int, pool_acquire(world.pool, a, &killer.lease), POOL_READY));
        channel_set_data(killer.lease.channel, &killer);
        channel_watch(killer.lease.channel, &events, 0);
        if (i)
            cr_assert(eq(int, channel_send(killer.lease.channel, "x", 1), 0));
        else
            testing_peer_cut(peer, LINK_RESET);
        fake_settle(&world);
        cr_assert(eq(uint, killer.killed, 1));
        for (int k = 0; k < 2; k++)
            cr_assert(eq(uint, holders[k].closed, 1));
        fake_run(&world, 10);
        fake_world_end(&world);
    }
}

Test(pool_end, free_inside_a_timer_of_the_users)
{
    struct fake_user others[2] = {0};
    struct fake_world world;
    struct killer killer;

    begin_with_killer(&world, &killer, others);
    testing_at(world.t, testing_now(world.t) + 0.5, kill_by_timer, &killer);
    fake_run(&world, 1);
    expect_killed(&world, &killer, others);
}

Test(pool_end, free_inside_the_end_of_a_drain)
{
    struct fake_user others[2] = {0};
    struct fake_world world;
    struct killer killer;

    begin_with_killer(&world, &killer, others);
    pool_drain(world.pool, 1, kill_by_drain, &killer);
    fake_run(&world, 2);
    expect_killed(&world, &killer, others);
}

Test(pool_end, free_inside_the_end_of_a_targets_drain)
{
    struct fake_user others[2] = {0};
    struct fake_world world;
    struct killer killer;

    begin_with_killer(&world, &killer, others);
    struct pool_target *target = fake_target(&world, "db", &pool_pick_first, both, 1);
    pool_target_drain(target, 1, kill_by_target, &killer);
    fake_run(&world, 0.1);
    expect_killed(&world, &killer, others);
}

Test(pool_end, free_inside_what_free_tells)
{
    struct fake_user others[2] = {0};
    struct fake_world world;
    struct killer killer;

    begin_with_killer(&world, &killer, others);
    killer.lease.done = none;
    pool_acquire(world.pool, a, &killer.lease);
    fake_settle(&world);
    cr_assert(ne(ptr, killer.lease.channel, NULL));
    pool_free(world.pool); /* tells `closed`, which frees it again */
    expect_killed(&world, &killer, others);
}

/* ---- after a fork ---- */

Test(pool_end, after_a_fork_all_is_forgotten_without_a_word)
{
    struct fake_user holder = {0}, waiter = {0}, winner = {0};
    struct fake_world world;

    begin(&world);
    struct testing_peer *other = fake_echo(&world, b);
    fake_hold(&world, &holder, b);
    fake_ask(&world, &winner, b);
    fake_give_back(&holder); /* decided, and not told */
    fake_hold(&world, &holder, a);
    fake_ask(&world, &waiter, a);
    winner.done = waiter.done = 0;
    uint64_t sent = testing_calls(world.t, TESTING_SENDMSG), shut = testing_calls(world.t, TESTING_SHUTDOWN);
    unsigned told = world.told;

    pool_after_fork(world.pool);
    cr_assert(eq(int, holder.lease.status, LINKPOOL_ECLOSED));
    cr_assert(eq(int, waiter.lease.status, LINKPOOL_ECLOSED));
    cr_assert(eq(ptr, holder.lease.channel, NULL));
    cr_assert(eq(int, pool_release(&holder.lease, POOL_REUSE), LINKPOOL_ESTATE));
    cr_assert(eq(int, pool_cancel(&waiter.lease), LINKPOOL_ESTATE));
    fake_run(&world, 10);
    cr_assert(eq(uint, world.told, told));
    cr_assert(eq(u64, testing_calls(world.t, TESTING_SENDMSG), sent));
    cr_assert(eq(u64, testing_calls(world.t, TESTING_SHUTDOWN), shut));
    cr_assert(eq(uint, testing_open_descriptors(world.t), 0));

    fake_hold(&world, &holder, b); /* and it can be used again */
    fake_exchange(&world, &holder);
    cr_assert(eq(uint, testing_peer_accepted(other), 2));
    fake_world_end(&world);
}

/* A pool on a real loop, and a real peer on another, which the parent alone runs. */
struct real {
    struct ev_loop *loop, *peers;
    struct testing_peer *peer;
    struct pool *pool;
    struct pool_lease lease;
};

static void got(struct channel *channel)
{
    char bytes[8];

    *(ssize_t *)channel_data(channel) = channel_read(channel, bytes, sizeof bytes);
}

static void on_time(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)timer;
    (void)events;
    ev_break(loop, EVBREAK_ALL);
    cr_assert(false, "nothing happens any more");
}

/* A whole exchange; the peer runs in this process, or (peers NULL) in the parent. */
static bool exchange_for_real(struct real *real, struct ev_loop *peers)
{
    static const struct channel_events events = {.readable = got};
    ssize_t answer = 0;
    bool sent = false;

    while (!answer) {
        if (real->lease.channel && !sent) {
            struct iovec part = {"x", 1};
            channel_set_data(real->lease.channel, &answer);
            channel_watch(real->lease.channel, &events, LINKPOOL_READ);
            sent = channel_writev(real->lease.channel, &part, 1) == 1;
        }
        if (peers)
            ev_run(peers, EVRUN_NOWAIT);
        ev_run(real->loop, peers ? EVRUN_NOWAIT : EVRUN_ONCE);
    }
    return answer == 1;
}

static int child(struct real *real)
{
    ev_loop_fork(real->loop);
    pool_after_fork(real->pool);
    if (real->lease.channel || real->lease.status != LINKPOOL_ECLOSED)
        return 1;
    if (pool_acquire(real->pool, testing_peer_address(real->peer), &real->lease) != POOL_PENDING)
        return 2;
    if (!exchange_for_real(real, NULL))
        return 3;
    pool_free(real->pool);
    return 0;
}

Test(pool_end, a_child_forgets_its_parents_connections_and_the_parent_keeps_them)
{
    struct real real = {.loop = ev_loop_new(EVFLAG_AUTO), .peers = ev_loop_new(EVFLAG_AUTO), .lease.done = none};
    ev_timer guard;
    int status = -1;

    real.peer = testing_peer_on_loop(real.peers, "127.0.0.1:0", TESTING_ACCEPT);
    cr_assert(ne(ptr, real.peer, NULL));
    testing_peer_serve(real.peer, testing_echo, NULL);
    real.pool = pool_new(real.loop, NULL);
    cr_assert(ne(ptr, real.pool, NULL));
    ev_timer_init(&guard, on_time, 20, 0);
    ev_timer_start(real.loop, &guard);
    cr_assert(eq(int, pool_acquire(real.pool, testing_peer_address(real.peer), &real.lease), POOL_PENDING));
    cr_assert(exchange_for_real(&real, real.peers));

    pid_t pid = fork();
    cr_assert(ge(int, pid, 0));
    if (pid == 0)
        _exit(child(&real));
    while (waitpid(pid, &status, WNOHANG) == 0)
        ev_run(real.peers, EVRUN_NOWAIT);
    cr_assert(eq(int, status, 0));
    cr_assert(eq(uint, testing_peer_accepted(real.peer), 2)); /* the child's own is another one */
    cr_assert(exchange_for_real(&real, real.peers));
    cr_assert(eq(uint, testing_peer_accepted(real.peer), 2));

    ev_timer_stop(real.loop, &guard);
    pool_free(real.pool);
    testing_peer_free(real.peer);
    ev_loop_destroy(real.loop);
    ev_loop_destroy(real.peers);
}
