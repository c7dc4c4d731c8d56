/* clock.c - a world, its clock and its turns.
 *
 * Time stands still but between two turns, and goes only from event to event. What is due in a turn is taken off the
 * heap before any of the user's code runs in it: what that code asks for comes in the next turn, even if it is due. */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <utlist.h>

#include "link/testing/testing_internal.h"
#include "linkpool/error.h"

enum {
    MAX_STILL = 1000000
}; /* turns at one time; 10,000 links that all begin at once need some 100 */

struct testing *testing_new(uint64_t seed)
{
    struct testing *t = calloc(1, sizeof *t);

    if (!t)
        return NULL;
    t->now = 1000;
    t->heap.now = &t->now;
    t->draws = seed;
    t->env_draws = testing__random(&t->draws);
    t->user_draws = testing__random(&t->draws);
    t->max_open = UINT_MAX;
    t->send_buffer = 65536;
    t->next_port = 32768; /* the first of Linux's ephemeral ones */
    testing__sockets_init(t);
    return t;
}

static void free_timers(struct testing *t)
{
    struct testing__user *user, *next;

    DL_FOREACH_SAFE (t->due, user, next)
        free(user);
    for (size_t i = 1; i <= t->heap.n; i++) /* all others left with what they were in */
        free(testing__of(t->heap.at[i].timer, struct testing__user, timer));
    free(t->heap.at);
}

static void destroy(struct testing *t)
{
    testing__drivers_free(t);
    testing__network_free(t);
    free_timers(t);
    free(t);
}

void testing_free(struct testing *t)
{
    if (!t)
        return;
    t->gone = true;
    if (!t->running)
        destroy(t);
}

const struct linkpool_env *testing_env(struct testing *t)
{
    return &t->env;
}

double testing_now(const struct testing *t)
{
    return t->now;
}

uint64_t testing_random(struct testing *t)
{
    return testing__random(&t->user_draws);
}

bool testing_stuck(const struct testing *t)
{
    return t->stuck;
}

void testing_suspend(struct testing *t, double seconds)
{
    assert(seconds >= 0);
    t->asleep += seconds;
}

void testing_early_alarms(struct testing *t, bool on)
{
    t->early_alarms = on;
}

void testing_shuffle(struct testing *t, bool on)
{
    t->shuffle = on;
}

static void user_is_due(struct testing__timer *timer)
{
    struct testing__user *user = testing__of(timer, struct testing__user, timer);

    user->due = true;
    DL_APPEND(user->world->due, user);
}

int testing_at(struct testing *t, double when, void (*fn)(void *data), void *data)
{
    struct testing__user *user;

    if (!isfinite(when) || !fn)
        return LINKPOOL_EINVAL;
    user = malloc(sizeof *user);
    if (!user)
        return LINKPOOL_ENOMEM;
    if (testing__hold(&t->heap) != 0) {
        free(user);
        return LINKPOOL_ENOMEM;
    }
    *user = (struct testing__user){.timer.fire = user_is_due, .world = t, .fn = fn, .data = data};
    testing__arm(&t->heap, &user->timer, when);
    return 0;
}

static void free_user(struct testing__user *user)
{
    testing__unhold(&user->world->heap, &user->timer);
    if (user->due)
        DL_DELETE(user->world->due, user);
    free(user);
}

unsigned testing_at_cancel(struct testing *t, void (*fn)(void *data), void *data)
{
    struct testing__user *user, *next;
    unsigned n = 0;

    DL_FOREACH_SAFE (t->due, user, next)
        if (user->fn == fn && user->data == data)
            free_user(user), n++;
    for (size_t i = t->heap.n; i >= 1; i--) {
        if (t->heap.at[i].timer->fire != user_is_due)
            continue;
        user = testing__of(t->heap.at[i].timer, struct testing__user, timer);
        if (user->fn == fn && user->data == data) {
            free_user(user);
            n++;
            i = t->heap.n + 1; /* the heap has moved: from its end again */
        }
    }
    return n;
}

static void run_users(struct testing *t)
{
    while (t->due && !t->gone) {
        void (*fn)(void *data) = t->due->fn;
        void *data = t->due->data;
        free_user(t->due);
        fn(data);
    }
}

/** All that is due: the network moves; alarms and the user's timers line up for their part of the turn. */
static void run_network(struct testing *t)
{
    struct testing__timer *timer;

    while (!t->gone && (timer = testing__top(&t->heap)) && timer->due <= t->now) {
        testing__disarm(&t->heap, timer);
        timer->fire(timer);
    }
}

static double next_event(struct testing *t)
{
    const struct testing__timer *top = testing__top(&t->heap);

    if (t->asked || testing__prune(t))
        return t->now;
    return !top ? INFINITY : top->due > t->now ? top->due : t->now;
}

static bool go_on_to(struct testing *t, double when)
{
    if (when > t->now) {
        t->now = when;
        t->still = 0;
    } else if (t->still >= MAX_STILL) {
        t->stuck = true;
        return false;
    }
    t->still++;
    return true;
}

/** One turn, if there is anything until then. */
static bool turn(struct testing *t, double until)
{
    double when = next_event(t);

    if (t->gone || when > until || isinf(when) || !go_on_to(t, when))
        return false;
    run_network(t);
    if (t->gone)
        return false;
    testing__drivers_turn(t);
    testing__drivers_wake(t);
    testing__gather(t);
    testing__fire(t);
    testing__ring(t);
    run_users(t);
    testing__tell_later(t);
    return !t->gone;
}

static bool over(struct testing *t, bool result)
{
    t->running = false;
    if (!t->gone)
        return result;
    destroy(t);
    return false;
}

bool testing_turn(struct testing *t)
{
    assert(!t->running); /* a run within a run: a callback waits by returning */
    t->running = true;
    return over(t, turn(t, INFINITY));
}

/** The clock at the end of a run: at its time, unless something spins or the run was for ever. */
static void stop_at(struct testing *t, double end)
{
    if (isfinite(end) && !t->gone && t->still < MAX_STILL) {
        t->now = end;
        t->still = 0;
        testing__drivers_now(t);
    }
}

bool testing_run_for(struct testing *t, double seconds)
{
    double end = t->now + seconds;

    assert(!t->running && seconds >= 0);
    t->running = true;
    while (turn(t, end))
        continue;
    stop_at(t, end);
    return over(t, t->still < MAX_STILL);
}

bool testing_run_until(struct testing *t, bool (*reached)(void *data), void *data, double at_most)
{
    double end = t->now + at_most;
    bool done;

    assert(!t->running && at_most >= 0);
    t->running = true;
    while (!(done = reached(data)) && turn(t, end))
        continue;
    if (!done)
        stop_at(t, end);
    return over(t, done);
}
