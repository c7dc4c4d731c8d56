/* watching.c - the kernel refuses to watch a descriptor: no memory, or max_user_watches are in use.
 *
 * libev tells of it by both events at once, neither of which came. Taken for events they would make a connection that
 * is under way READY, with nobody to hear of it ever after. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <ev.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/fakes/world.h"

/* The program's own epoll_ctl() comes before the C library's, also for libev. */
static int refusal;    /* errno of the calls that are refused; 0: none is */
static int refused_op; /* EPOLL_CTL_ADD or EPOLL_CTL_MOD */
static unsigned n_refused;

__attribute__((visibility("default"))) int epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
    if (refusal && op == refused_op) {
        n_refused++;
        errno = refusal;
        return -1;
    }
    return (int)syscall(SYS_epoll_ctl, epoll, op, fd, event);
}

/* ---- a driver that has no memory itself ---- */

static struct driver_ops ops;

static int no_memory(struct driver *driver, struct driver_io *io, int fd, unsigned events)
{
    (void)driver, (void)io, (void)fd, (void)events;
    return LINKPOOL_ENOMEM;
}

Test(faults_watching, an_attempt_for_which_the_driver_has_no_memory_does_not_wait_for_its_deadline)
{
    struct fake_user user = {0};
    struct fake_world world;

    fake_world_begin(&world);
    fake_peer(&world, "10.0.0.1:80", TESTING_BLACK_HOLE);
    struct driver *driver = testing_driver(world.t);
    ops = *driver->ops;
    ops.io_start = no_memory;
    driver->ops = &ops;
    world.pool = pool_new_on(driver, &world.options);
    cr_assert(ne(ptr, world.pool, NULL));
    fake_ask(&world, &user, "10.0.0.1:80");
    fake_settle(&world);
    cr_assert(eq(int, user.status, LINKPOOL_EUNAVAILABLE));
    cr_assert(eq(int, user.lease.reason, LINK_NO_MEMORY));
    fake_world_end(&world);
}

/* ---- a pool on a loop, its peer on another, which is refused nothing ---- */

static struct {
    struct ev_loop *loop, *far;
    struct testing_peer *peer;
    struct pool *pool;
    struct pool_lease lease;
    unsigned done, closed;
} scene;

static void on_done(struct pool_lease *lease)
{
    (void)lease;
    scene.done++;
}

static void on_closed(struct pool_lease *lease)
{
    (void)lease;
    scene.closed++;
}

static void begin(enum testing_behaviour behaviour)
{
    struct pool_options options;

    scene.loop = ev_loop_new(EVFLAG_AUTO);
    scene.far = ev_loop_new(EVFLAG_AUTO);
    cr_assert(eq(uint, ev_backend(scene.loop), EVBACKEND_EPOLL));
    scene.peer = testing_peer_on_loop(scene.far, "127.0.0.1:0", behaviour);
    cr_assert(ne(ptr, scene.peer, NULL));
    pool_options_init(&options);
    scene.pool = pool_new(scene.loop, &options);
    cr_assert(ne(ptr, scene.pool, NULL));
}

static void end(void)
{
    pool_free(scene.pool);
    testing_peer_free(scene.peer);
    ev_loop_destroy(scene.loop);
    ev_loop_destroy(scene.far);
}

/* Asks, and turns both loops until the lease has been told. */
static void ask(int op, int error)
{
    scene.lease = (struct pool_lease){.done = on_done, .closed = on_closed};
    scene.done = scene.closed = 0;
    cr_assert(eq(int, pool_acquire(scene.pool, testing_peer_address(scene.peer), &scene.lease), POOL_PENDING));
    for (unsigned turns = 0; !scene.done; turns++) {
        cr_assert(lt(uint, turns, 1000000));
        refused_op = op;
        refusal = error;
        ev_run(scene.loop, EVRUN_NOWAIT);
        refusal = 0;
        ev_run(scene.far, EVRUN_NOWAIT);
    }
}

static uint64_t ends_by(enum link_reason reason)
{
    struct pool_stats stats;

    pool_stats(scene.pool, &stats, sizeof stats);
    return stats.ends[reason];
}

static void is_our_own_want(int error)
{
    begin(TESTING_BLACK_HOLE); /* it never comes up: whoever says READY has made that up */
    ask(EPOLL_CTL_ADD, error);
    cr_assert(lt(uint, 0, n_refused));
    cr_assert(eq(int, scene.lease.status, LINKPOOL_EUNAVAILABLE));
    cr_assert(eq(int, scene.lease.reason, LINK_NO_MEMORY));
    cr_assert(eq(u64, ends_by(LINK_NO_MEMORY), 1));
    cr_assert(eq(u64, ends_by(LINK_TIMED_OUT) + ends_by(LINK_REFUSED) + ends_by(LINK_UNREACHABLE), 0));
    end();
}

Test(faults_watching, an_attempt_for_which_the_kernel_has_no_memory_is_our_own_want)
{
    is_our_own_want(ENOMEM);
}

Test(faults_watching, an_attempt_beyond_max_user_watches_is_our_own_want)
{
    is_our_own_want(ENOSPC);
}

Test(faults_watching, once_the_kernel_watches_again_a_link_comes_up)
{
    begin(TESTING_ACCEPT);
    ask(EPOLL_CTL_ADD, ENOSPC);
    cr_assert(eq(int, scene.lease.reason, LINK_NO_MEMORY));
    pool_reset_backoff(scene.pool);
    ask(EPOLL_CTL_ADD, 0);
    cr_assert(eq(int, scene.lease.status, POOL_READY));
    cr_assert(eq(int, pool_release(&scene.lease, POOL_REUSE), 0));
    end();
}

/* A link that is up has asked to write from its connecting on: to read as well is a change, and is refused. */
Test(faults_watching, a_link_that_is_up_and_is_watched_no_more_ends)
{
    begin(TESTING_ACCEPT);
    ask(EPOLL_CTL_MOD, ENOMEM);
    cr_assert(eq(int, scene.lease.status, POOL_READY));
    refused_op = EPOLL_CTL_MOD;
    refusal = ENOMEM;
    for (unsigned turns = 0; !scene.closed; turns++) {
        cr_assert(lt(uint, turns, 1000));
        ev_run(scene.loop, EVRUN_NOWAIT);
    }
    refusal = 0;
    cr_assert(eq(int, scene.lease.status, LINKPOOL_ELOST));
    cr_assert(eq(int, scene.lease.reason, LINK_NO_MEMORY));
    cr_assert(eq(u64, ends_by(LINK_NO_MEMORY), 1));
    end();
}
