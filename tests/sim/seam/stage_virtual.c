/* stage_virtual.c - the testing kit as a stage. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "link/testing/testing_internal.h"
#include "tests/sim/seam/stage.h"

struct virtual
{
    struct stage stage;
    struct testing *t;
    struct testing_peer *peers[STAGE_PEERS];
};

static struct virtual *of(struct stage *stage)
{
    return (struct virtual *)stage;
}

static struct driver *new_driver(struct stage *stage)
{
    return testing_driver(of(stage)->t);
}

static double now(struct stage *stage)
{
    return testing_now(of(stage)->t);
}

static void at(struct stage *stage, double seconds, void (*fn)(void *data), void *data)
{
    int error = testing_at(of(stage)->t, now(stage) + seconds, fn, data);

    assert(!error);
    (void)error;
}

static bool end_of_turn(void *data)
{
    struct stage *stage = data;

    if (stage->turned)
        stage->turned(stage->data);
    return false;
}

static void nothing(void *data)
{
    (void)data;
}

/* The script's next step comes after a poll, as it does on a real loop: without the timer a run may end between two. */
static void run(struct stage *stage, double seconds)
{
    at(stage, seconds, nothing, stage);
    testing_run_until(of(stage)->t, end_of_turn, stage, seconds);
    stage->stuck = testing_stuck(of(stage)->t);
}

static void leap(struct stage *stage, double seconds)
{
    of(stage)->t->now += seconds;
    if (!of(stage)->t->running) /* the real driver asks for the time where it is used first */
        testing__drivers_now(of(stage)->t);
}

static void sleep_for(struct stage *stage, double seconds)
{
    testing_suspend(of(stage)->t, seconds);
}

static unsigned descriptors(struct stage *stage)
{
    return testing_open_descriptors(of(stage)->t);
}

static void refresh(struct stage *stage)
{
    (void)stage; /* there is one clock here */
}

static bool watches(const struct testing *t)
{
    const struct testing__driver *driver;

    DL_FOREACH (t->drivers, driver)
        if (driver->watches || driver->alarm.place || driver->later != NOT_ASKED)
            return true;
    return false;
}

static bool waits(struct stage *stage)
{
    return watches(of(stage)->t);
}

/* They do not keep a stage from ending, as peers do not. */
static void cancel_timers(struct stage *stage)
{
    (void)stage;
}

static const char *misuse(struct stage *stage)
{
    return testing_misuses(of(stage)->t) ? testing_last_misuse(of(stage)->t) : NULL;
}

static void free_stage(struct stage *stage)
{
    testing_free(of(stage)->t);
    free(of(stage));
}

/* ---- peers ---- */

static void peer(struct stage *stage, unsigned i, const char *address, enum testing_behaviour behaviour)
{
    of(stage)->peers[i] = testing_peer_add(of(stage)->t, address, behaviour);
    assert(of(stage)->peers[i]);
}

static void behave(struct stage *stage, unsigned i, enum testing_behaviour behaviour)
{
    testing_peer_behave(of(stage)->peers[i], behaviour);
}

static void echo(struct stage *stage, unsigned i, bool on)
{
    testing_peer_serve(of(stage)->peers[i], on ? testing_echo : NULL, NULL);
}

static void greet(struct stage *stage, unsigned i, const char *text)
{
    testing_peer_greet(of(stage)->peers[i], text, strlen(text));
}

static void delay(struct stage *stage, unsigned i, double connect, double answer)
{
    testing_peer_delay(of(stage)->peers[i], connect, answer);
}

static void say(struct stage *stage, unsigned i, const char *text)
{
    testing_peer_say(of(stage)->peers[i], text, strlen(text));
}

static void cut(struct stage *stage, unsigned i, enum link_reason how)
{
    testing_peer_cut(of(stage)->peers[i], how);
}

static void window(struct stage *stage, unsigned i, size_t bytes)
{
    testing_peer_window(of(stage)->peers[i], bytes);
}

static unsigned accepted(struct stage *stage, unsigned i)
{
    return testing_peer_accepted(of(stage)->peers[i]);
}

static unsigned open_now(struct stage *stage, unsigned i)
{
    return testing_peer_open(of(stage)->peers[i]);
}

static size_t bytes(struct stage *stage, unsigned i)
{
    return testing_peer_bytes(of(stage)->peers[i]);
}

struct stage *stage_virtual(void)
{
    struct virtual *self = calloc(1, sizeof *self);

    assert(self);
    self->t = testing_new(1);
    assert(self->t);
    self->stage = (struct stage){.name = "virtual",
        .env = testing_env(self->t),
        .driver = new_driver,
        .now = now,
        .run = run,
        .leap = leap,
        .sleep = sleep_for,
        .at = at,
        .knock = at,
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
    return &self->stage;
}
