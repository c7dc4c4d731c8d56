/* stage_real.c - libev and the kernel as a stage, on the clock of clock.h. */
#include <assert.h>
#include <ev.h>
#include <math.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utlist.h>

#include "tests/sim/seam/clock.h"
#include "tests/sim/seam/ends.h"
#include "tests/sim/seam/stage.h"

struct real;

struct timer { /* a user's own */
    struct ev_timer watcher;
    struct real *real;
    double due;
    void (*fn)(void *data);
    void *data;
    struct timer *prev, *next;
};

struct knock { /* a user's own descriptor */
    struct ev_io watcher;
    struct real *real;
    double due;
    bool told;
    void (*fn)(void *data);
    void *data;
    struct knock *prev, *next;
};

struct real {
    struct stage stage;
    struct ev_loop *loop;
    struct ends *ends;
    struct clock_world world;
    double time; /* the script's: each run ends where it would in the other world, polls that cost time or not */
    bool running;
    struct timer *timers;
    struct knock *knocks;
};

static struct real *of(struct stage *stage)
{
    return (struct real *)stage;
}

static struct driver *new_driver(struct stage *stage)
{
    return driver_ev_new(of(stage)->loop);
}

static double now(struct stage *stage)
{
    (void)stage;
    return clock_time();
}

static void run(struct stage *stage, double seconds)
{
    struct real *self = of(stage);

    self->time += seconds;
    self->running = true;
    clock_stop_at(self->time);
    while (!clock_reached() && !clock_is_stuck()) {
        bool waits = ev_run(self->loop, EVRUN_ONCE);
        if (stage->turned)
            stage->turned(stage->data);
        if (!waits && !ev_pending_count(self->loop) && clock_was_quiet())
            clock_go_on(); /* a program would have left ev_run() here */
    }
    self->running = false;
    stage->stuck = stage->stuck || clock_is_stuck();
}

static void leap(struct stage *stage, double seconds)
{
    if (!of(stage)->running) /* else the run ends when it would have */
        of(stage)->time += seconds;
    clock_leap(seconds);
}

static void sleep_for(struct stage *stage, double seconds)
{
    (void)stage;
    clock_sleep(seconds);
}

static void free_timer(struct timer *timer)
{
    ev_timer_stop(timer->real->loop, &timer->watcher);
    DL_DELETE(timer->real->timers, timer);
    free(timer);
}

static void on_timer(struct ev_loop *loop, struct ev_timer *watcher, int events)
{
    struct timer *timer = watcher->data;
    void (*fn)(void *data) = timer->fn;
    void *data = timer->data;

    (void)events;
    if (clock_time() < timer->due) { /* libev counts from its last poll: too soon by what has passed since */
        ev_timer_set(watcher, timer->due - clock_time(), 0.);
        ev_timer_start(loop, watcher);
        return;
    }
    free_timer(timer);
    fn(data);
}

static void at(struct stage *stage, double seconds, void (*fn)(void *data), void *data)
{
    struct real *self = of(stage);
    struct timer *timer = malloc(sizeof *timer);

    assert(timer);
    *timer = (struct timer){
        .real = self, .due = (self->running ? clock_time() : self->time) + seconds, .fn = fn, .data = data};
    ev_timer_init(&timer->watcher, on_timer, timer->due > clock_time() ? timer->due - clock_time() : 0., 0.);
    timer->watcher.data = timer;
    ev_timer_start(self->loop, &timer->watcher);
    DL_APPEND(self->timers, timer);
}

static void free_knock(struct knock *knock)
{
    ev_io_stop(knock->real->loop, &knock->watcher);
    close(knock->watcher.fd);
    DL_DELETE(knock->real->knocks, knock);
    free(knock);
}

static void on_knock(struct ev_loop *loop, struct ev_io *watcher, int events)
{
    struct knock *knock = watcher->data;
    void (*fn)(void *data) = knock->fn;
    void *data = knock->data;

    (void)loop, (void)events;
    free_knock(knock);
    fn(data);
}

static void knock(struct stage *stage, double seconds, void (*fn)(void *data), void *data)
{
    struct real *self = of(stage);
    struct knock *made = malloc(sizeof *made);

    assert(made);
    *made = (struct knock){
        .real = self, .due = (self->running ? clock_time() : self->time) + seconds, .fn = fn, .data = data};
    ev_io_init(&made->watcher, on_knock, eventfd(0, EFD_CLOEXEC), EV_READ);
    made->watcher.data = made;
    ev_io_start(self->loop, &made->watcher);
    DL_APPEND(self->knocks, made);
}

/* The far ends, and then the user's. */
static double move(void *data, double now)
{
    struct real *self = data;
    double next = ends_move(self->ends, now);
    struct knock *knock;

    DL_FOREACH (self->knocks, knock) {
        if (!knock->told && knock->due > now)
            next = fmin(next, knock->due);
        else if (!knock->told)
            knock->told = eventfd_write(knock->watcher.fd, 1) == 0;
    }
    return next;
}

static unsigned descriptors(struct stage *stage)
{
    return ends_near(of(stage)->ends);
}

static void refresh(struct stage *stage)
{
    ev_now_update(of(stage)->loop);
}

static bool waits(struct stage *stage)
{
    return ev_run(of(stage)->loop, EVRUN_NOWAIT) || ev_pending_count(of(stage)->loop);
}

static void cancel_timers(struct stage *stage)
{
    while (of(stage)->timers)
        free_timer(of(stage)->timers);
    while (of(stage)->knocks)
        free_knock(of(stage)->knocks);
}

static const char *misuse(struct stage *stage)
{
    (void)stage;
    return NULL; /* an assertion of ends.c would have failed */
}

static void free_stage(struct stage *stage)
{
    struct real *self = of(stage);

    cancel_timers(stage);
    ev_loop_destroy(self->loop);
    clock_off();
    ends_free(self->ends);
    free(self);
}

/* ---- peers ---- */

static void peer(struct stage *stage, unsigned i, const char *address, enum testing_behaviour behaviour)
{
    ends_peer(of(stage)->ends, i, address, behaviour);
}

static void behave(struct stage *stage, unsigned i, enum testing_behaviour behaviour)
{
    ends_behave(of(stage)->ends, i, behaviour);
}

static void echo(struct stage *stage, unsigned i, bool on)
{
    ends_echo(of(stage)->ends, i, on);
}

static void greet(struct stage *stage, unsigned i, const char *text)
{
    ends_greet(of(stage)->ends, i, text);
}

static void delay(struct stage *stage, unsigned i, double connect, double answer)
{
    ends_delay(of(stage)->ends, i, connect, answer);
}

static void say(struct stage *stage, unsigned i, const char *text)
{
    ends_say(of(stage)->ends, i, text);
}

static void cut(struct stage *stage, unsigned i, enum link_reason how)
{
    ends_cut(of(stage)->ends, i, how);
}

static void window(struct stage *stage, unsigned i, size_t bytes)
{
    ends_window(of(stage)->ends, i, bytes);
}

static unsigned accepted(struct stage *stage, unsigned i)
{
    return ends_accepted(of(stage)->ends, i);
}

static unsigned open_now(struct stage *stage, unsigned i)
{
    return ends_open(of(stage)->ends, i);
}

static size_t bytes(struct stage *stage, unsigned i)
{
    return ends_bytes(of(stage)->ends, i);
}

static const struct stage functions = {.name = "real",
    .driver = new_driver,
    .now = now,
    .run = run,
    .leap = leap,
    .sleep = sleep_for,
    .at = at,
    .knock = knock,
    .descriptors = descriptors,
    .refresh = refresh,
    .waits = waits,
    .cancel_timers = cancel_timers,
    .misuse = misuse,
    .free = free_stage,
    .peer = peer,
    .behave = behave,
    .echo = echo,
    .greet = greet,
    .delay = delay,
    .say = say,
    .cut = cut,
    .window = window,
    .accepted = accepted,
    .open = open_now,
    .bytes = bytes};

struct stage *stage_real(void)
{
    static const double start = 1000; /* the other world's */
    struct real *self = calloc(1, sizeof *self);

    assert(self);
    self->stage = functions;
    self->time = start;
    self->world = (struct clock_world){.data = self, .move = move};
    clock_on(start, &self->world);
    self->ends = ends_new();
    self->stage.env = ends_env(self->ends);
    self->loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
    assert(self->loop);
    return &self->stage;
}
