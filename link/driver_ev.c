/* driver_ev.c - a libev loop as a driver.
 *
 * What happens in one poll is put in order by libev's priorities: our clock, the links' descriptors, our alarm,
 * the user's watchers, the end of our turn. The user's are between when their priority is above EV_MINPRI and
 * below EV_MAXPRI - 1 (libev's default, 0, is); among equals libev runs what was queued last first.
 *
 * What always holds:
 * - Only a watched descriptor, a finite alarm and an `on_later` still owed keep ev_run() from returning.
 * - `now` is taken after each poll and stands until the next. Where no turn is under way, because `later` is
 *   asked for outside ev_run(), it is taken there and again before that `on_later`, so that a program that was
 *   busy before it ran its loop does not start its first attempts on a clock of long ago.
 * - Nothing runs after driver_free(); the memory goes when the outermost callback of ours has returned.
 *
 * libev itself aborts when memory runs out (ev_set_allocator() can change that). It allocates as it grows, never
 * per event: 16 bytes for every descriptor number up to the highest one watched, and a few words for each timer,
 * check and idle watcher, each changed descriptor and each pending event at their peak. It grows where we can
 * still say that there is no memory: when the driver is made, for RESERVED descriptors, and when a descriptor is
 * watched that is more than it has grown for. What is left comes of libev's own polling, at the first times: a word for
 * each timer that rings at once, and the buffer of a poll, which holds 64 events and is doubled whenever it was full
 * (what it does not hold comes with the next poll).
 *
 * When the kernel refuses to watch a descriptor (no memory, max_user_watches), libev stops its watcher and reports an
 * error once, beside both events, of which neither has come: that is LINKPOOL_UNWATCHED here. */
#include <assert.h>
#include <errno.h>
#include <ev.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "linkpool/driver.h"
#include "linkpool/error.h"

#if !EV_MULTIPLICITY || !EV_CHECK_ENABLE || !EV_IDLE_ENABLE
#error "linkpool needs a libev with EV_MULTIPLICITY, check and idle watchers, as it is built by default"
#endif

static_assert(sizeof(struct ev_io) <= sizeof((struct driver_io){0}.room), "an ev_io lies in the room of a driver_io");
static_assert(
    (int)LINKPOOL_READ == EV_READ && (int)LINKPOOL_WRITE == EV_WRITE, "events are handed through as they are");
static_assert(EV_MINPRI < 0 && EV_MAXPRI - 1 > 0, "there is room around the user's watchers, whose default is 0");

enum {
    PRIORITY_CLOCK = EV_MAXPRI, /* check watchers are queued after all else: of their priority they run first */
    PRIORITY_IO = EV_MAXPRI,
    PRIORITY_ALARM = EV_MAXPRI - 1, /* what came in time with the poll is seen before the deadline */
    PRIORITY_LATER = EV_MINPRI,
};

enum {
    RESERVED = 2048 /* descriptors: as many as most processes may open, or more. libev takes 112 KiB for them */
};

struct driver_ev;

/** One watched descriptor in the driver's table; the ev_io's `data` points here while it is watched. */
struct watched {
    struct driver_ev *driver;
    struct driver_io *io;
};

struct driver_ev {
    struct driver driver;   /* first: a driver of ours is a struct driver_ev */
    struct ev_loop *loop;   /* the user's */
    struct ev_check clock;  /* always active, not counted by the loop */
    struct ev_prepare told; /* the same */
    struct ev_timer alarm;  /* active: rings at `rings_at`; that may be before `due`, never after it */
    struct ev_idle
        later;      /* pending: on_later at the end of this turn; active: after the next poll, which does not block */
    double asleep;  /* seconds that the machine has slept so far: what its clocks differ by */
    double look_at; /* when that is looked at again */
    double due;     /* as asked; INFINITY: no alarm */
    double rings_at;
    int numbers;             /* libev has grown for descriptors below this */
    struct watched *watched; /* dense; what driver_free() has to stop */
    size_t watched_count;
    size_t watched_size;
    unsigned inside;    /* callbacks of ours on the stack */
    bool telling;       /* on_later is one of them */
    bool outside_turns; /* `later` was asked for while the loop did not run */
    bool gone;          /* freed inside a callback: the last one to return releases the memory */
};

static struct driver_ev *of(struct driver *driver)
{
    return (struct driver_ev *)driver;
}

static struct ev_io *watcher_of(struct driver_io *io)
{
    return (struct ev_io *)(void *)io->room;
}

/** CLOCK_MONOTONIC, the clock of libev's timers too; the vdso answers it without a system call. */
static double monotonic(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/** How long the machine has slept so far, of which CLOCK_MONOTONIC knows nothing; never more than it has: the later
 * clock is read last, so that a pause between the two only makes it less. 0 where no clock counts it. */
static double time_asleep(void)
{
#ifdef CLOCK_BOOTTIME
    struct timespec t;

    if (clock_gettime(CLOCK_BOOTTIME, &t) == 0)
        return (double)t.tv_sec + (double)t.tv_nsec * 1e-9 - monotonic();
#endif
    return 0;
}

static void release(struct driver_ev *d)
{
    free(d->watched);
    free(d);
}

static void enter(struct driver_ev *d)
{
    d->inside++;
}

static void leave(struct driver_ev *d)
{
    if (--d->inside == 0 && d->gone)
        release(d);
}

/* Descriptors. */

static void on_io(struct ev_loop *loop, struct ev_io *watcher, int events)
{
    struct watched *place = watcher->data;
    struct driver_ev *d = place->driver;
    struct driver_io *io = place->io;

    (void)loop;
    enter(d);
    io->on(io, events & (int)EV_ERROR ? LINKPOOL_UNWATCHED : (unsigned)events & (LINKPOOL_READ | LINKPOOL_WRITE));
    leave(d);
}

/* libev aborts where malloc says no. It is asked first: what is had now libev gets as well. */
static bool has_memory(size_t bytes)
{
    void *volatile trial = malloc(bytes); /* else clang does without it, and finds that there is always memory */
    bool has = trial;

    free(trial);
    return has;
}

/* A watcher that is modified, not set, and stopped before the next poll changes nothing, and nothing of it reaches the
 * kernel; its descriptor need not be open. */
static void touch(struct driver_ev *d, int fd)
{
    struct ev_io watcher = {.fd = fd};

    ev_init(&watcher, on_io);
    ev_io_modify(&watcher, EV_READ);
    ev_io_start(d->loop, &watcher);
    ev_io_stop(d->loop, &watcher);
}

/** Makes libev grow now for descriptors below `n`. It keeps 16 bytes for each, and may take twice as many at once. */
static int reserve_numbers(struct driver_ev *d, int n)
{
    if (!has_memory((size_t)n * 2 * 16))
        return LINKPOOL_ENOMEM;
    touch(d, n - 1);
    d->numbers = n;
    return 0;
}

/**
 * Makes libev grow now for `n` descriptors changed and ready at once. It keeps 4 bytes for a change and 16 for an
 * event, and up to four times as much while it grows.
 *
 * An event that is fed and taken back leaves an empty place, which this turn passes over.
 */
static int reserve_events(struct driver_ev *d, int n)
{
    struct ev_io watcher = {0};

    if (!has_memory((size_t)n * 4 * (4 + 16)))
        return LINKPOOL_ENOMEM;
    for (int fd = 0; fd < n; fd++)
        touch(d, fd);
    ev_init(&watcher, on_io);
    ev_set_priority(&watcher, PRIORITY_IO);
    for (unsigned i = ev_pending_count(d->loop); i < (unsigned)n; i++) {
        ev_feed_event(d->loop, &watcher, EV_CUSTOM);
        ev_clear_pending(d->loop, &watcher);
    }
    return 0;
}

/* The same of the alarm and the end of a turn. */
static void reserve_places(struct driver_ev *d)
{
    ev_timer_start(d->loop, &d->alarm);
    ev_timer_stop(d->loop, &d->alarm);
    ev_idle_start(d->loop, &d->later);
    ev_idle_stop(d->loop, &d->later);
    ev_feed_event(d->loop, &d->alarm, EV_CUSTOM);
    ev_clear_pending(d->loop, &d->alarm);
    ev_feed_event(d->loop, &d->later, EV_CUSTOM);
    ev_clear_pending(d->loop, &d->later);
}

/** Makes room for one more; the table moves, and its watchers are told. */
static int grow(struct driver_ev *d)
{
    size_t size = d->watched_size ? 2 * d->watched_size : 16;
    struct watched *table;

    if (size > RESERVED && reserve_events(d, (int)size) < 0)
        return LINKPOOL_ENOMEM;
    table = realloc(d->watched, size * sizeof *table);
    if (!table)
        return LINKPOOL_ENOMEM;
    d->watched = table;
    d->watched_size = size;
    for (size_t i = 0; i < d->watched_count; i++)
        watcher_of(table[i].io)->data = &table[i];
    return 0;
}

static int start_io(struct driver *driver, struct driver_io *io, int fd, unsigned events)
{
    struct driver_ev *d = of(driver);
    struct ev_io *watcher = watcher_of(io);

    assert(!watcher->data); /* zeroed by its owner, or stopped */
    if (d->watched_count == d->watched_size && grow(d) < 0)
        return LINKPOOL_ENOMEM;
    if (fd >= d->numbers && reserve_numbers(d, fd + 1) < 0)
        return LINKPOOL_ENOMEM;
    ev_io_init(watcher, on_io, fd, (int)events); /* marks it new: what libev knows of this number is not believed */
    ev_set_priority(watcher, PRIORITY_IO);
    watcher->data = &d->watched[d->watched_count];
    d->watched[d->watched_count++] = (struct watched){.driver = d, .io = io};
    ev_io_start(d->loop, watcher);
    return 0;
}

/** libev tells the kernel before the next poll, and only if the sum of the changes is one. */
static void change_io(struct driver *driver, struct driver_io *io, unsigned events)
{
    struct driver_ev *d = of(driver);
    struct ev_io *watcher = watcher_of(io);
    int pending;

    assert(watcher->data);
    if (watcher->events == (int)events)
        return;
    pending = ev_clear_pending(d->loop, watcher) & ((int)events | (int)EV_ERROR);
    ev_io_stop(d->loop, watcher);
    ev_io_modify(watcher, (int)events);
    ev_io_start(d->loop, watcher);
    if (pending) /* what came with this poll is told in this turn: it may be the end of file */
        ev_feed_event(d->loop, watcher, pending);
}

static void stop_io(struct driver *driver, struct driver_io *io)
{
    struct driver_ev *d = of(driver);
    struct ev_io *watcher = watcher_of(io);
    struct watched *place = watcher->data;

    if (!place) /* not ev_is_active(): libev stops a watcher by itself when the kernel refuses it */
        return;
    ev_io_stop(d->loop, watcher);
    watcher->data = NULL;
    *place = d->watched[--d->watched_count];
    if (place->io != io)
        watcher_of(place->io)->data = place;
}

static bool is_pending(struct driver *driver, const struct driver_io *io)
{
    (void)driver;
    return ev_is_pending((const struct ev_io *)io->room);
}

/* The alarm. */

/**
 * Starts the timer for `due`.
 *
 * libev counts from the clock of its last poll, which is not to be had and may be old by what the user's callbacks
 * took. Counting from the present instead makes the timer early by that much, never late; on_ring() waits the rest.
 * It does not spin: a timer in the future makes libev wait for a millisecond at least, one in the past rings.
 */
static void arm(struct driver_ev *d)
{
    double wait = d->due - monotonic();

    ev_timer_stop(d->loop, &d->alarm);
    ev_timer_set(&d->alarm, wait > 0 ? wait : 0., 0.);
    ev_timer_start(d->loop, &d->alarm);
    d->rings_at = d->due;
}

static void set_alarm(struct driver *driver, double due)
{
    struct driver_ev *d = of(driver);

    d->due = due;
    if (due >= (double)INFINITY)
        ev_timer_stop(d->loop, &d->alarm); /* at once: it would keep the loop alive */
    else if (!ev_is_active(&d->alarm) || due < d->rings_at)
        arm(d);
}

static void on_ring(struct ev_loop *loop, struct ev_timer *timer, int events)
{
    struct driver_ev *d = timer->data;

    (void)loop, (void)events;
    if (d->driver.now < d->due) { /* it was moved later since, or libev's clock was old */
        arm(d);
        return;
    }
    set_alarm(&d->driver, (double)INFINITY);
    enter(d);
    if (d->driver.on_alarm)
        d->driver.on_alarm(&d->driver);
    leave(d);
}

/* Sleep. */

/* Seconds between two looks: a loop without a pause pays for ten a second, and one that blocked looks at once. */
static const double look_interval = 0.1;

static void look_for_sleep(struct driver_ev *d)
{
    double asleep = time_asleep(), slept = asleep - d->asleep;

    d->look_at = d->driver.now + look_interval;
    if (slept > 0)
        d->asleep = asleep;
    if (slept < DRIVER_SLEPT || !d->driver.on_slept)
        return;
    enter(d);
    d->driver.on_slept(&d->driver);
    leave(d);
}

/* Turns. */

/* All that came with the last poll has been told. */
static void on_told(struct ev_loop *loop, struct ev_prepare *told, int events)
{
    struct driver_ev *d = told->data;

    (void)loop, (void)events;
    d->driver.telling = false;
}

static void on_poll(struct ev_loop *loop, struct ev_check *clock, int events)
{
    struct driver_ev *d = clock->data;

    (void)events;
    d->driver.turn++;
    d->driver.telling = true;
    d->driver.now = monotonic();
    d->outside_turns = false;
    if (ev_is_active(&d->later)) {
        ev_idle_stop(loop, &d->later);
        ev_feed_event(loop, &d->later, EV_CUSTOM);
    }
    if (d->driver.now >= d->look_at)
        look_for_sleep(d);
}

/**
 * An event fed to a watcher costs no system call and is handled before the loop blocks: libev runs what is pending
 * when ev_run() begins, after the watchers of each poll, and after prepare watchers. Only what is fed from on_later
 * itself would run in the same turn, endlessly; then an idle watcher keeps the next poll from blocking instead.
 */
static void ask_later(struct driver *driver)
{
    struct driver_ev *d = of(driver);

    if (d->telling) {
        ev_idle_start(d->loop, &d->later);
    } else if (!ev_is_active(&d->later) && !ev_is_pending(&d->later)) {
        if (ev_depth(d->loop) == 0) {
            d->outside_turns = true;
            d->driver.now = monotonic();
        }
        ev_feed_event(d->loop, &d->later, EV_CUSTOM);
    }
}

static void on_turn_end(struct ev_loop *loop, struct ev_idle *later, int events)
{
    struct driver_ev *d = later->data;
    bool nested = d->telling; /* on_later ran the loop */

    (void)loop, (void)events;
    if (d->outside_turns)
        d->driver.now = monotonic();
    d->outside_turns = false;
    enter(d);
    d->telling = true;
    if (d->driver.on_later) /* its owner may have gone since it asked */
        d->driver.on_later(&d->driver);
    d->telling = nested;
    leave(d);
}

static void free_driver(struct driver *driver)
{
    struct driver_ev *d = of(driver);

    while (d->watched_count > 0)
        stop_io(driver, d->watched[d->watched_count - 1].io);
    ev_timer_stop(d->loop, &d->alarm);
    ev_idle_stop(d->loop, &d->later); /* also takes back what is pending, active or not */
    ev_ref(d->loop);
    ev_check_stop(d->loop, &d->clock);
    ev_ref(d->loop);
    ev_prepare_stop(d->loop, &d->told);
    d->gone = true;
    if (d->inside == 0)
        release(d);
}

static const struct driver_ops ops = {
    .io_start = start_io,
    .io_events = change_io,
    .io_stop = stop_io,
    .alarm = set_alarm,
    .later = ask_later,
    .free = free_driver,
    .io_pending = is_pending,
};

struct driver *driver_ev_new(struct ev_loop *loop)
{
    struct driver_ev *d;

    if (!loop) {
        errno = EINVAL;
        return NULL;
    }
    d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->driver = (struct driver){.ops = &ops, .now = monotonic()};
    d->asleep = time_asleep();
    d->loop = loop;
    if (reserve_numbers(d, RESERVED) < 0 || reserve_events(d, RESERVED) < 0) {
        free(d);
        errno = ENOMEM;
        return NULL;
    }
    d->due = (double)INFINITY;
    ev_timer_init(&d->alarm, on_ring, 0., 0.);
    ev_set_priority(&d->alarm, PRIORITY_ALARM);
    d->alarm.data = d;
    ev_idle_init(&d->later, on_turn_end);
    ev_set_priority(&d->later, PRIORITY_LATER);
    d->later.data = d;
    ev_check_init(&d->clock, on_poll);
    ev_set_priority(&d->clock, PRIORITY_CLOCK);
    d->clock.data = d;
    ev_check_start(loop, &d->clock);
    ev_unref(loop);
    ev_prepare_init(&d->told, on_told);
    ev_set_priority(&d->told, PRIORITY_CLOCK);
    d->told.data = d;
    ev_prepare_start(loop, &d->told);
    ev_unref(loop);
    reserve_places(d);
    return &d->driver;
}

void driver_free(struct driver *driver)
{
    if (driver)
        driver->ops->free(driver);
}
