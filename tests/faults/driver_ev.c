/* driver_ev.c - what libev allocates for a driver, and when.
 *
 * libev aborts the process when memory runs out. It allocates as it grows and never per event: a driver makes it grow
 * when it is made; and once as many descriptors were watched, changed and ready at once as ever will be, a loop asks
 * for nothing more. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <ev.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "linkpool/linkpool.h"
#include "linkpool/testing.h"

enum {
    WATCHED = 200, /* more than the 64 events of libev's first buffer for a poll */
    LEASES = 40
};

static struct {
    unsigned times;
    size_t bytes;
    bool on;
} asked;

static void *count(void *memory, long size) __attribute__((no_sanitize("undefined")));
static void *count(void *memory, long size)
{
    if (!size) {
        free(memory);
        return NULL;
    }
    if (asked.on) {
        asked.times++;
        asked.bytes += (size_t)size;
    }
    return realloc(memory, (size_t)size);
}

static struct ev_loop *counted_loop(void)
{
    struct ev_loop *loop;

    ev_set_allocator(count);
    loop = ev_loop_new(EVFLAG_AUTO);
    cr_assert(ne(ptr, loop, NULL));
    return loop;
}

/* ---- a driver alone ---- */

struct watcher {
    struct driver_io io; /* first: its callback finds the rest by it */
    int fd, far_end;
    unsigned rang;
};

struct crowd {
    struct ev_loop *loop;
    struct driver *driver;
    struct watcher watchers[2 * WATCHED];
    unsigned n, alarms, laters;
};

static void on_io(struct driver_io *io, unsigned events)
{
    struct watcher *watcher = (struct watcher *)(void *)io;
    char byte;

    if (events & LINKPOOL_READ)
        cr_assert(eq(long, read(watcher->fd, &byte, 1), 1));
    watcher->rang++;
}

static void on_alarm(struct driver *driver)
{
    ((struct crowd *)driver->owner)->alarms++;
}

static void on_later(struct driver *driver)
{
    struct crowd *crowd = driver->owner;

    if (crowd->laters++ % 3 == 0)
        driver->ops->later(driver); /* once more, after the next poll */
}

static void begin(struct crowd *crowd)
{
    *crowd = (struct crowd){.loop = counted_loop()};
    crowd->driver = driver_ev_new(crowd->loop);
    cr_assert(ne(ptr, crowd->driver, NULL));
    crowd->driver->owner = crowd;
    crowd->driver->on_alarm = on_alarm;
    crowd->driver->on_later = on_later;
    for (unsigned i = 0; i < 2 * WATCHED; i++) {
        int pair[2];
        cr_assert(eq(int, socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0));
        crowd->watchers[i] = (struct watcher){.io = {.on = on_io}, .fd = pair[0], .far_end = pair[1]};
    }
}

static void end(struct crowd *crowd)
{
    driver_free(crowd->driver);
    for (unsigned i = 0; i < 2 * WATCHED; i++) {
        close(crowd->watchers[i].fd);
        close(crowd->watchers[i].far_end);
    }
    ev_loop_destroy(crowd->loop);
}

static bool all_rang(const struct crowd *crowd, unsigned times)
{
    for (unsigned i = 0; i < crowd->n; i++)
        if (crowd->watchers[i].rang < times)
            return false;
    return true;
}

static void run_until_all_rang(struct crowd *crowd, unsigned times)
{
    for (unsigned turns = 0; !all_rang(crowd, times); turns++) {
        cr_assert(lt(uint, turns, 10000));
        ev_run(crowd->loop, EVRUN_NOWAIT);
    }
}

/* All that a driver does: `n` are watched, ready at once, changed at once, stopped; an alarm, and the end of a turn. */
static void round_of(struct crowd *crowd, unsigned n)
{
    const struct driver_ops *ops = crowd->driver->ops;

    crowd->n = n;
    for (unsigned i = 0; i < n; i++) {
        crowd->watchers[i].rang = 0;
        cr_assert(
            eq(int, ops->io_start(crowd->driver, &crowd->watchers[i].io, crowd->watchers[i].fd, LINKPOOL_READ), 0));
        cr_assert(eq(long, write(crowd->watchers[i].far_end, "x", 1), 1));
    }
    run_until_all_rang(crowd, 1);
    for (unsigned i = 0; i < n; i++)
        ops->io_events(crowd->driver, &crowd->watchers[i].io, LINKPOOL_WRITE);
    run_until_all_rang(crowd, 2);
    ops->later(crowd->driver);
    ops->alarm(crowd->driver, 0); /* long due */
    for (unsigned was = crowd->alarms; crowd->alarms == was;)
        ev_run(crowd->loop, EVRUN_NOWAIT);
    for (unsigned i = 0; i < n; i++)
        ops->io_stop(crowd->driver, &crowd->watchers[i].io);
    ev_run(crowd->loop, EVRUN_NOWAIT);
}

Test(faults_driver_ev, after_a_warm_up_libev_allocates_nothing)
{
    static struct crowd crowd;

    begin(&crowd);
    for (unsigned i = 0; i < 4; i++) /* the buffer of a poll doubles with each poll that filled it */
        round_of(&crowd, WATCHED);
    asked.on = true;
    for (unsigned i = 0; i < 50; i++)
        round_of(&crowd, WATCHED - i);
    cr_assert(eq(uint, asked.times, 0));
    round_of(&crowd, 2 * WATCHED); /* more than ever: it grows, and the count sees it */
    cr_assert(lt(uint, 0, asked.times));
    cr_assert(lt(sz, asked.bytes, 2 * WATCHED * 256));
    asked.on = false;
    end(&crowd);
}

/* ---- what is asked for ahead of use ---- */

enum {
    PAIRS = 35,
    COPIES =
        25, /* of one end of each: ready with it; twice as many are fewer than libev's first buffer of a poll holds */
    HIGH = 2047 /* the highest number that is asked for when the driver is made */
};

static void say_seen(struct driver_io *io, unsigned events)
{
    (void)events;
    ((struct watcher *)(void *)io)->rang++;
}

/* Copies of one end of a pair, at the numbers from `from` on. */
static void copy_end(struct watcher *copies, int from)
{
    int pair[2];

    cr_assert(eq(int, socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0));
    for (int i = 0; i < COPIES; i++) {
        copies[i] = (struct watcher){.io = {.on = say_seen}, .fd = fcntl(pair[0], F_DUPFD_CLOEXEC, from)};
        cr_assert(ge(int, copies[i].fd, from));
    }
    close(pair[0]);
    cr_assert(eq(long, write(pair[1], "x", 1), 1));
    copies[0].far_end = pair[1];
}

static void watch_copies(struct driver *driver, struct watcher *copies, unsigned events)
{
    for (unsigned i = 0; i < COPIES; i++)
        cr_assert(eq(int, driver->ops->io_start(driver, &copies[i].io, copies[i].fd, events), 0));
}

static void mute_copies(struct driver *driver, struct watcher *copies)
{
    for (unsigned i = 0; i < COPIES; i++)
        driver->ops->io_events(driver, &copies[i].io, 0);
}

static void turn_until(struct ev_loop *loop, const unsigned *count, unsigned times)
{
    for (unsigned turns = 0; *count < times; turns++) {
        cr_assert(lt(uint, turns, 100000));
        ev_run(loop, EVRUN_NOWAIT);
    }
}

static void may_open(rlim_t n)
{
    struct rlimit limit;

    cr_assert(eq(int, getrlimit(RLIMIT_NOFILE, &limit), 0));
    if (limit.rlim_cur >= n)
        return;
    limit.rlim_cur = n;
    if (setrlimit(RLIMIT_NOFILE, &limit))
        cr_skip("too few descriptors");
}

/* 875 descriptors, their numbers up to HIGH, all changed in one turn, 25 ready at a time and 25 more that the kernel
 * has still to be told of; and the end of a turn. */
Test(faults_driver_ev, what_libev_needs_is_asked_for_when_the_driver_is_made)
{
    static struct watcher watchers[PAIRS][COPIES];
    static struct crowd crowd;

    may_open(HIGH + 1);
    crowd = (struct crowd){.loop = counted_loop()};
    asked.on = true;
    crowd.driver = driver_ev_new(crowd.loop);
    cr_assert(lt(uint, 0, asked.times));
    cr_assert(lt(sz, asked.bytes, 400000)); /* what was asked for in steps, all of them added; see driver_ev.c */
    crowd.driver->owner = &crowd;
    crowd.driver->on_alarm = on_alarm;
    crowd.driver->on_later = on_later;
    asked.times = 0;
    for (unsigned i = 0; i < PAIRS; i++) {
        copy_end(watchers[i], HIGH + 1 - PAIRS * COPIES);
        watch_copies(crowd.driver, watchers[i], LINKPOOL_READ);
        turn_until(crowd.loop, &watchers[i][COPIES - 1].rang, 1);
        mute_copies(crowd.driver, watchers[i]);
    }
    for (unsigned i = 0; i < PAIRS; i++) /* all of them change before the next poll */
        for (unsigned j = 0; j < COPIES; j++) {
            crowd.driver->ops->io_stop(crowd.driver, &watchers[i][j].io);
            crowd.driver->ops->io_start(crowd.driver, &watchers[i][j].io, watchers[i][j].fd, 0);
        }
    crowd.driver->ops->later(crowd.driver);
    turn_until(crowd.loop, &crowd.laters, 2); /* the second after an idle watcher */
    cr_assert(eq(uint, asked.times, 0));
    crowd.driver->ops->alarm(crowd.driver, 0);
    turn_until(crowd.loop, &crowd.alarms, 1);
    cr_assert(le(uint, asked.times, 1)); /* what is left: a word, at the first timer that rings */
    asked.times = 0;
    crowd.driver->ops->alarm(crowd.driver, 0);
    turn_until(crowd.loop, &crowd.alarms, 2);
    cr_assert(eq(uint, asked.times, 0));
    asked.on = false;
    driver_free(crowd.driver);
    ev_loop_destroy(crowd.loop);
}

/* ---- a pool on a loop, its peer on another ---- */

struct fan {
    struct ev_loop *loop, *far;
    struct testing_peer *peer;
    struct pool *pool;
    struct pool_lease leases[LEASES];
    unsigned told;
};

static void on_done(struct pool_lease *lease)
{
    ((struct fan *)lease->data)->told++;
}

/* Counted is what the pool's own loop asks for. */
static void turn(struct fan *fan, bool counted)
{
    asked.on = counted;
    ev_run(fan->loop, EVRUN_NOWAIT);
    asked.on = false;
    ev_run(fan->far, EVRUN_NOWAIT);
}

static void lease_all(struct fan *fan, bool counted)
{
    const char *address = testing_peer_address(fan->peer);
    unsigned ready = 0;

    fan->told = 0;
    asked.on = counted;
    for (unsigned i = 0; i < LEASES; i++) {
        fan->leases[i] = (struct pool_lease){.done = on_done, .data = fan, .flags = POOL_WAIT_FOR_READY};
        int status = pool_acquire(fan->pool, address, &fan->leases[i]);
        cr_assert(ge(int, status, POOL_READY));
        ready += status == POOL_READY;
    }
    for (unsigned turns = 0; ready + fan->told < LEASES; turns++) {
        cr_assert(lt(uint, turns, 100000));
        turn(fan, counted);
    }
}

/* By turns they go on idle, and are closed, to be opened anew by the next. */
static void give_all_back(struct fan *fan, enum pool_disposition disposition, bool counted)
{
    asked.on = counted;
    for (unsigned i = 0; i < LEASES; i++)
        cr_assert(eq(int, pool_release(&fan->leases[i], disposition), 0));
    turn(fan, counted);
}

Test(faults_driver_ev, a_pool_at_its_usual_size_makes_libev_allocate_nothing)
{
    static struct fan fan;
    struct pool_options options;

    fan.loop = counted_loop();
    fan.far = counted_loop();
    fan.peer = testing_peer_on_loop(fan.far, "127.0.0.1:0", TESTING_ACCEPT);
    cr_assert(ne(ptr, fan.peer, NULL));
    pool_options_init(&options);
    fan.pool = pool_new(fan.loop, &options);
    cr_assert(ne(ptr, fan.pool, NULL));
    for (unsigned i = 0; i < 20; i++) {
        bool counted = i >= 4; /* the warm-up is over */
        lease_all(&fan, counted);
        give_all_back(&fan, i % 2 ? POOL_DISCARD : POOL_REUSE, counted);
    }
    cr_assert(eq(uint, asked.times, 0));
    pool_free(fan.pool);
    testing_peer_free(fan.peer);
    ev_loop_destroy(fan.loop);
    ev_loop_destroy(fan.far);
}
