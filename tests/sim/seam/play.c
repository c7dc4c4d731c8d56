/* play.c - a play from its beginning to its end: its log, its world, its checks. */
#include "tests/sim/seam/play.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "pool/internal.h"

/* ---- the log ---- */

void note(struct play *p, double value, const char *format, ...)
{
    struct record *record;
    va_list arguments;

    if (p->log.n == p->log.room) {
        p->log.room = p->log.room ? 2 * p->log.room : 256;
        p->log.records = realloc(p->log.records, p->log.room * sizeof *p->log.records);
        assert(p->log.records);
    }
    record = &p->log.records[p->log.n++];
    *record = (struct record){.at = p->stage->now(p->stage) - 1000, .value = value};
    va_start(arguments, format);
    vsnprintf(record->text, sizeof record->text, format, arguments);
    va_end(arguments);
    if (p->log.verbose)
        printf("    %-7s %12.6f  %s  (%.6g)\n", p->stage->name, record->at, record->text, record->value);
}

/** What must hold on either stage. */
void must(struct play *p, bool holds, const char *what)
{
    if (holds)
        return;
    p->broken++;
    note(p, 0, "BROKEN: %s", what);
}

/* ---- the world ---- */

void run(struct play *p, double seconds)
{
    if (!p->stage->stuck)
        p->stage->run(p->stage, seconds);
    must(p, !p->stage->stuck, "nothing spins");
}

void leap(struct play *p, double seconds)
{
    p->stage->leap(p->stage, seconds);
}

void suspend(struct play *p, double seconds)
{
    p->stage->sleep(p->stage, seconds);
}

void leap_and_refresh(struct play *p, double seconds)
{
    leap(p, seconds);
    p->stage->refresh(p->stage);
}

void note_waits(struct play *p)
{
    note(p, 0, "the loop waits: %d", p->stage->waits(p->stage));
}

void knock(struct play *p, double seconds, void (*fn)(void *data), void *data)
{
    p->stage->knock(p->stage, seconds, fn, data);
}

void at(struct play *p, double seconds, void (*fn)(void *data), void *data)
{
    p->stage->at(p->stage, seconds, fn, data);
}

void peer(struct play *p, unsigned i, enum testing_behaviour behaviour)
{
    p->has_peer[i] = true;
    p->stage->peer(p->stage, i, p->address[i], behaviour);
}

void echo_peer(struct play *p, unsigned i)
{
    peer(p, i, TESTING_ACCEPT);
    p->stage->echo(p->stage, i, true);
}

void behave(struct play *p, unsigned i, enum testing_behaviour behaviour)
{
    p->stage->behave(p->stage, i, behaviour);
}

void delay(struct play *p, unsigned i, double connect, double answer)
{
    p->stage->delay(p->stage, i, connect, answer);
}

void greet(struct play *p, unsigned i, const char *text)
{
    p->stage->greet(p->stage, i, text);
}

void peer_says(struct play *p, unsigned i, const char *text)
{
    p->stage->say(p->stage, i, text);
}

void cut(struct play *p, unsigned i, enum link_reason how)
{
    p->stage->cut(p->stage, i, how);
}

void window(struct play *p, unsigned i, size_t bytes)
{
    p->stage->window(p->stage, i, bytes);
}

/* ---- a play ---- */

static void on_turn(void *data)
{
    struct play *p = data;

    p->log.turns++;
    if (!p->pool)
        return;
#ifdef LINKPOOL_CHECK
    p->pool->checks = 0; /* all of it */
#endif
    pool__check(p->pool);
}

static void address(struct play *p, unsigned i)
{
    if (p->is_unix) /* of this process, since the kernel has one name for all */
        snprintf(p->address[i], sizeof p->address[i], "unix:@seam-%ld-%u", (long)getpid(), i);
    else
        snprintf(p->address[i], sizeof p->address[i], "10.0.0.%u:80", i + 1);
}

static void set_up(struct play *p, const struct scenario *scenario)
{
    for (unsigned i = 0; i < STAGE_PEERS; i++)
        address(p, i);
    play__env(p);
    play__observer(p);
    pool_options_init(&p->options);
    pool_host_options_init(&p->host);
    p->backoff = backoff_default;
    p->host.backoff = &p->backoff;
    p->options.host = &p->host;
    p->options.env = &p->env;
    p->options.observer = &p->observer;
    if (scenario->options)
        scenario->options(p);
    p->stage->data = p;
    p->stage->turned = on_turn;
    if (scenario->alone)
        return;
    p->driver = p->stage->driver(p->stage);
    assert(p->driver);
    p->pool = pool_new_on(p->driver, &p->options);
    must(p, p->pool, "the pool is made");
}

static void close_all(struct play *p)
{
    free_pool(p);
    link_free(p->link);
    driver_free(p->link_driver);
    for (int i = 0; i < PLAY_USERS; i++)
        must(p, !p->users[i].waits, "each lease has an outcome");
    p->stage->cancel_timers(p->stage);
    must(p, !p->stage->waits(p->stage), "nothing is watched and no timer runs");
    must(p, p->stage->descriptors(p->stage) == 0, "no descriptor is left");
    must(p, p->blocks == 0 && p->bytes == 0, "no memory is left");
    must(p, !p->stage->misuse(p->stage), "the system was used rightly");
    run(p, 1);
    for (unsigned i = 0; i < STAGE_PEERS; i++)
        if (p->has_peer[i])
            note(p, 0, "peer %u: accepted %u, open %u, %zu bytes", i, p->stage->accepted(p->stage, i),
                p->stage->open(p->stage, i), p->stage->bytes(p->stage, i));
}

void play_scenario(
    const struct scenario *scenario, struct stage *stage, bool is_unix, bool verbose, struct log *log, unsigned *broken)
{
    struct play *p = calloc(1, sizeof *p);

    assert(p);
    p->stage = stage;
    p->is_unix = is_unix;
    p->log.verbose = verbose;
    set_up(p, scenario);
    scenario->play(p);
    close_all(p);
    *log = p->log;
    *broken = p->broken;
    free(p);
}
