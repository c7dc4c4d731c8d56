/* driver_ev_sleep.c - the libev driver and a machine that sleeps, as its two clocks tell of it: both are as far ahead
 * of the system's as the test wants, so that no time has to pass. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <ev.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "linkpool/driver.h"

static long ahead;        /* seconds by which both clocks are, of the system's */
static long asleep;       /* seconds that the machine has slept, beyond what it has */
static bool has_no_clock; /* that counts them */
static unsigned told;

__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *t)
{
    if (id == CLOCK_BOOTTIME && has_no_clock) {
        errno = EINVAL;
        return -1;
    }
    long error = syscall(SYS_clock_gettime, id, t);
    if (id == CLOCK_BOOTTIME)
        t->tv_sec += ahead + asleep;
    if (id == CLOCK_MONOTONIC)
        t->tv_sec += ahead;
    return (int)error;
}

static void on_slept(struct driver *driver)
{
    (void)driver;
    told++;
}

/* A turn, later than the driver leaves between two looks. */
static void run(struct ev_loop *loop)
{
    ahead++;
    ev_run(loop, EVRUN_NOWAIT);
}

static struct driver *begin(struct ev_loop **loop)
{
    asleep = 0;
    has_no_clock = false;
    told = 0;
    *loop = ev_loop_new(EVFLAG_AUTO);
    return driver_ev_new(*loop);
}

static void end(struct ev_loop *loop, struct driver *driver)
{
    driver_free(driver);
    ev_loop_destroy(loop);
}

Test(driver_ev_sleep, a_sleep_of_the_machine_is_told_once)
{
    struct ev_loop *loop;
    struct driver *driver = begin(&loop);

    driver->on_slept = on_slept;
    run(loop);
    cr_assert(eq(uint, told, 0));
    asleep = 10;
    run(loop);
    run(loop);
    cr_assert(eq(uint, told, 1));
    asleep += 2;
    run(loop);
    cr_assert(eq(uint, told, 2));
    driver->on_slept = NULL;
    end(loop, driver);
}

Test(driver_ev_sleep, a_sleep_that_nobody_wants_to_hear_of_is_over_with_that)
{
    struct ev_loop *loop;
    struct driver *driver = begin(&loop);

    asleep = 10;
    run(loop);
    driver->on_slept = on_slept;
    run(loop);
    cr_assert(eq(uint, told, 0));
    driver->on_slept = NULL;
    end(loop, driver);
}

Test(driver_ev_sleep, where_no_clock_counts_sleep_none_is_told)
{
    struct ev_loop *loop;
    struct driver *driver = begin(&loop);

    driver->on_slept = on_slept;
    has_no_clock = true;
    asleep = 10;
    run(loop);
    run(loop);
    cr_assert(eq(uint, told, 0));
    driver->on_slept = NULL;
    end(loop, driver);
}
