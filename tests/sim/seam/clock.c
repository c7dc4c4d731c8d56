/* clock.c - see clock.h.
 *
 * Where epoll_wait() would block, time goes on to the end of its time-out, which libev has rounded to milliseconds, or
 * to the next move of the world, if that is sooner. A time-out of 0 costs a microsecond: a loop that asked for nothing
 * else would live in one instant for ever, and alarms that ring early would never be due. The wall clock is set now and
 * then: nothing may hang on it. */
#include "tests/sim/seam/clock.h"

#include <math.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const double poll_takes = 1e-6;        /* seconds */
static const uint64_t polls_a_moment = 20000; /* a scenario has some hundred in a millisecond */
static const double moment = 0.5;             /* seconds: so many polls of no wait take 20 ms of it */
static const double wall = 1.6e9;             /* what the wall clock is ahead of the other */
static const double put_on = 3600;            /* and somebody sets it, on and back, every so many polls */
static const uint64_t wall_stands = 5;

static struct {
    bool on, reached, quiet;
    double now, end;
    double asleep; /* what CLOCK_BOOTTIME is ahead of it */
    double since;  /* when `still` began to count */
    uint64_t still;
    const struct clock_world *world;
    struct clock_counts counts;
} the;

void clock_on(double start, const struct clock_world *world)
{
    the.on = true;
    the.now = the.end = the.since = start;
    the.asleep = 0;
    the.still = 0;
    the.world = world;
    the.counts = (struct clock_counts){0};
}

void clock_off(void)
{
    the.on = false;
}

double clock_time(void)
{
    return the.now;
}

void clock_leap(double seconds)
{
    the.now += seconds;
}

void clock_sleep(double seconds)
{
    the.asleep += seconds;
}

void clock_stop_at(double end)
{
    the.end = end;
    the.reached = false;
}

bool clock_reached(void)
{
    return the.reached;
}

struct clock_counts clock_counts(void)
{
    return the.counts;
}

bool clock_was_quiet(void)
{
    return the.quiet;
}

bool clock_is_stuck(void)
{
    return the.still > polls_a_moment;
}

static void go_to(double when)
{
    if (when > the.now)
        the.now = when;
}

void clock_go_on(void)
{
    double next = the.world->move(the.world->data, the.now);

    if (the.now >= the.end)
        the.reached = true;
    else
        go_to(next < the.end ? next : the.end);
}

/* ---- the system's own ---- */

static int real_clock(clockid_t id, struct timespec *t)
{
    return (int)syscall(SYS_clock_gettime, id, t);
}

static int real_poll(int epoll, struct epoll_event *events, int max, int timeout)
{
    return (int)syscall(SYS_epoll_pwait, epoll, events, max, timeout, NULL, sizeof(uint64_t));
}

/* ---- what comes before it ---- */

static double wall_time(void)
{
    return the.now + wall + (the.counts.polls / wall_stands & 1 ? put_on : 0);
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *t)
{
    double now = id == CLOCK_REALTIME ? wall_time() : id == CLOCK_BOOTTIME ? the.now + the.asleep : the.now;

    if (!the.on || (id != CLOCK_MONOTONIC && id != CLOCK_REALTIME && id != CLOCK_BOOTTIME))
        return real_clock(id, t);
    t->tv_sec = (time_t)floor(now);
    t->tv_nsec = (long)((now - floor(now)) * 1e9);
    return 0;
}

/* libev's wall clock. */
__attribute__((visibility("default"))) int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
    struct timespec now;

    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    *t = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    return 0;
}

/* libev runs what came last first: in this order its watchers run as they would in the other world. */
static void turn_round(struct epoll_event *events, int n)
{
    for (int i = 0; i < n / 2; i++) {
        struct epoll_event event = events[i];
        events[i] = events[n - 1 - i];
        events[n - 1 - i] = event;
    }
}

static void count(void)
{
    the.counts.polls++;
    the.still++;
    if (the.now - the.since > moment) {
        the.since = the.now;
        the.still = 0;
    }
}

/* Looks until something is ready or the time is up. */
static int look(int epoll, struct epoll_event *events, int max, double until)
{
    for (;;) {
        double next = the.world->move(the.world->data, the.now);
        int n = real_poll(epoll, events, max, 0);

        if (n != 0)
            return n;
        if (the.now >= until) {
            the.counts.timed_out++;
            return 0;
        }
        if (the.now >= the.end) {
            the.reached = true;
            return 0;
        }
        if (next > until)
            next = until;
        go_to(next < the.end ? next : the.end);
    }
}

__attribute__((visibility("default"))) int epoll_wait(int epoll, struct epoll_event *events, int max, int timeout)
{
    int n;

    if (!the.on)
        return real_poll(epoll, events, max, timeout);
    count();
    if (timeout == 0) {
        the.world->move(the.world->data, the.now);
        n = real_poll(epoll, events, max, 0);
        the.now += poll_takes;
    } else {
        n = look(epoll, events, max, timeout < 0 ? (double)INFINITY : the.now + timeout * 1e-3);
    }
    the.quiet = n == 0;
    the.counts.ready += n > 0;
    turn_round(events, n);
    return n;
}
