/* driver.c - a driver on virtual time.
 *
 * A watcher is level-triggered: it runs once in each turn in which its socket is ready for what it waits for. Only
 * sockets in the ready list are looked at. Everything the user's callbacks may free is off its list before they run. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <utlist.h>

#include "link/testing/testing_internal.h"
#include "linkpool/error.h"

static struct testing__driver *mine(struct driver *driver)
{
    return testing__of(driver, struct testing__driver, base);
}

static int io_start(struct driver *driver, struct driver_io *io, int fd, unsigned events)
{
    struct testing__driver *self = mine(driver);
    struct testing *t = self->world;
    struct testing__watch *watch;

    if (io->room[0]) {
        testing__misuse(t, "a watcher started twice");
        return 0;
    }
    watch = malloc(sizeof *watch);
    if (!watch)
        return LINKPOOL_ENOMEM;
    *watch = (struct testing__watch){.io = io, .driver = self, .socket = testing__socket_at(t, fd), .events = events};
    io->room[0] = watch;
    DL_APPEND2(self->watches, watch, driver_prev, driver_next);
    if (watch->socket) {
        DL_APPEND(watch->socket->watches, watch);
        testing__socket_changed(watch->socket);
    } else {
        testing__misuse(t, "a watcher of what is no open descriptor");
        DL_APPEND(t->orphans, watch);
    }
    return 0;
}

static void io_events(struct driver *driver, struct driver_io *io, unsigned events)
{
    struct testing__watch *watch = io->room[0];

    (void)driver;
    if (!watch)
        return;
    watch->events = events;
    if (watch->socket)
        testing__socket_changed(watch->socket);
}

static bool is_pending(struct driver *driver, const struct driver_io *io)
{
    const struct testing__watch *watch = io->room[0];

    (void)driver;
    return watch && watch->firing;
}

static void stop_firing(struct testing *t, struct testing__watch *watch)
{
    if (watch->firing)
        DL_DELETE2(t->firing, watch, fire_prev, fire_next);
    watch->firing = false;
}

static void stop(struct testing__watch *watch)
{
    struct testing *t = watch->driver->world;

    stop_firing(t, watch);
    DL_DELETE2(watch->driver->watches, watch, driver_prev, driver_next);
    if (watch->socket)
        DL_DELETE(watch->socket->watches, watch);
    else
        DL_DELETE(t->orphans, watch);
    watch->io->room[0] = NULL;
    free(watch);
}

static void io_stop(struct driver *driver, struct driver_io *io)
{
    (void)driver;
    if (io->room[0])
        stop(io->room[0]);
}

void testing__orphan(struct testing__socket *socket)
{
    while (socket->watches) {
        struct testing__watch *watch = socket->watches;
        stop_firing(socket->world, watch);
        DL_DELETE(socket->watches, watch);
        watch->socket = NULL;
        DL_APPEND(socket->world->orphans, watch);
    }
}

static bool awaited(const struct testing__socket *socket)
{
    const struct testing__watch *watch;
    unsigned events = testing__socket_events(socket);

    DL_FOREACH (socket->watches, watch)
        if (watch->events & events)
            return true;
    return false;
}

void testing__socket_changed(struct testing__socket *socket)
{
    if (!socket->ready && socket->watches && awaited(socket)) {
        socket->ready = true;
        DL_APPEND2(socket->world->ready, socket, ready_prev, ready_next);
    }
}

bool testing__prune(struct testing *t)
{
    struct testing__socket *socket, *next;

    DL_FOREACH_SAFE2 (t->ready, socket, next, ready_next) {
        if (awaited(socket))
            continue;
        socket->ready = false;
        DL_DELETE2(t->ready, socket, ready_prev, ready_next);
    }
    return t->ready != NULL;
}

static void line_up(struct testing *t, struct testing__watch *watch)
{
    watch->firing = true;
    if (t->shuffle && testing__random(&t->draws) & 1)
        DL_PREPEND2(t->firing, watch, fire_prev, fire_next);
    else
        DL_APPEND2(t->firing, watch, fire_prev, fire_next);
}

static void count_orphans(struct testing *t)
{
    struct testing__watch *watch;

    while ((watch = t->orphans)) {
        testing__misuse(t, "a watched descriptor was closed when the loop polled");
        stop(watch);
    }
}

void testing__gather(struct testing *t)
{
    struct testing__socket *socket;
    struct testing__watch *watch;

    count_orphans(t);
    testing__prune(t);
    DL_FOREACH2(t->ready, socket, ready_next)
    {
        unsigned events = testing__socket_events(socket);
        DL_FOREACH (socket->watches, watch) {
            watch->pending = events & watch->events;
            if (watch->pending)
                line_up(t, watch);
        }
    }
}

static void drivers_tell(struct testing *t, bool telling)
{
    struct testing__driver *self;

    DL_FOREACH (t->drivers, self)
        self->base.telling = telling;
}

void testing__fire(struct testing *t)
{
    drivers_tell(t, true);
    while (t->firing && !t->gone) {
        struct testing__watch *watch = t->firing;
        unsigned events = watch->pending & watch->events; /* the interest may have changed since the poll */
        stop_firing(t, watch);
        if (events)
            watch->io->on(watch->io, events);
    }
    drivers_tell(t, false);
}

static void stop_ringing(struct testing__driver *self)
{
    if (self->ringing)
        DL_DELETE2(self->world->ringing, self, ring_prev, ring_next);
    self->ringing = false;
}

static void alarm_is_due(struct testing__timer *timer)
{
    struct testing__driver *self = testing__of(timer, struct testing__driver, alarm);

    self->ringing = true;
    DL_APPEND2(self->world->ringing, self, ring_prev, ring_next);
}

static void set_alarm(struct driver *driver, double due)
{
    struct testing__driver *self = mine(driver);
    struct testing *t = self->world;

    stop_ringing(self);
    testing__disarm(&t->heap, &self->alarm);
    if (isinf(due))
        return;
    if (t->early_alarms && due > t->now && testing__random(&t->draws) & 1)
        due = t->now + (due - t->now) * testing__draw(&t->draws);
    testing__arm(&t->heap, &self->alarm, due);
}

void testing__ring(struct testing *t)
{
    while (t->ringing && !t->gone) {
        struct testing__driver *self = t->ringing;
        stop_ringing(self);
        if (self->base.on_alarm)
            self->base.on_alarm(&self->base);
    }
}

static void ask_later(struct driver *driver)
{
    struct testing__driver *self = mine(driver);

    if (self->later != NOT_ASKED)
        return;
    self->later = ASKED;
    DL_APPEND2(self->world->asked, self, later_prev, later_next);
}

static void stop_later(struct testing__driver *self)
{
    if (self->later == ASKED)
        DL_DELETE2(self->world->asked, self, later_prev, later_next);
    else if (self->later == TELLING)
        DL_DELETE2(self->world->telling, self, later_prev, later_next);
    self->later = NOT_ASKED;
}

void testing__tell_later(struct testing *t)
{
    struct testing__driver *self;

    t->telling = t->asked; /* those that ask from now on are for the next turn */
    t->asked = NULL;
    DL_FOREACH2(t->telling, self, later_next)
    self->later = TELLING;
    while ((self = t->telling) && !t->gone) {
        stop_later(self);
        if (self->base.on_later)
            self->base.on_later(&self->base);
    }
}

static void free_driver(struct driver *driver)
{
    struct testing__driver *self = mine(driver);
    struct testing *t = self->world;

    while (self->watches)
        stop(self->watches);
    stop_ringing(self);
    stop_later(self);
    testing__unhold(&t->heap, &self->alarm);
    DL_DELETE(t->drivers, self);
    free(self);
}

static const struct driver_ops ops = {
    .io_start = io_start,
    .io_events = io_events,
    .io_stop = io_stop,
    .alarm = set_alarm,
    .later = ask_later,
    .free = free_driver,
    .io_pending = is_pending,
};

struct driver *testing_driver(struct testing *t)
{
    struct testing__driver *self = calloc(1, sizeof *self);

    if (!self)
        return NULL;
    if (testing__hold(&t->heap) != 0) {
        free(self);
        errno = ENOMEM;
        return NULL;
    }
    self->base.ops = &ops;
    self->base.now = t->now;
    self->asleep = t->asleep;
    self->alarm.fire = alarm_is_due;
    self->world = t;
    DL_APPEND(t->drivers, self);
    return &self->base;
}

void testing__drivers_now(struct testing *t)
{
    struct testing__driver *self;

    DL_FOREACH (t->drivers, self)
        self->base.now = t->now;
}

void testing__drivers_turn(struct testing *t)
{
    struct testing__driver *self;

    testing__drivers_now(t);
    DL_FOREACH (t->drivers, self)
        self->base.turn++;
}

void testing__drivers_wake(struct testing *t)
{
    struct testing__driver *self, *next;

    DL_FOREACH_SAFE (t->drivers, self, next) { /* it tells nobody who might free another */
        double slept = t->asleep - self->asleep;
        self->asleep = t->asleep;
        if (slept >= DRIVER_SLEPT && self->base.on_slept)
            self->base.on_slept(&self->base);
    }
}

void testing__drivers_free(struct testing *t)
{
    while (t->drivers)
        free_driver(&t->drivers->base);
}
