/* crew.c - workers of which nothing runs: what they are asked stands in their orders. */
#include "tests/figures/crew.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <linkpool/pool.h>
#include <stdlib.h>
#include <string.h>

#include "examples/lbproxy/mode.h"

struct crew crew;
struct options crew_options;
static struct worker *workers[CREW_THREADS];

static void ignore(struct ev_loop *loop, ev_async *wake, int events)
{
    (void)loop, (void)wake, (void)events;
}

static struct worker *make_worker(void)
{
    struct worker *worker = calloc(1, sizeof *worker);

    worker->options = &crew_options;
    worker->loop = ev_loop_new(0);
    pthread_mutex_init(&worker->lock, NULL);
    ev_async_init(&worker->wake, ignore);
    ev_async_start(worker->loop, &worker->wake);
    worker->report.backends = calloc(CREW_BACKENDS, sizeof *worker->report.backends);
    worker->report.hosts = calloc(CREW_BACKENDS, sizeof *worker->report.hosts);
    return worker;
}

void crew_make(void)
{
    crew_options = (struct options){.policy = &pool_round_robin,
        .mode = &mode_tcp,
        .threads = CREW_THREADS,
        .n_backends = CREW_BACKENDS,
        .backends = {"10.0.0.1:80", "10.0.0.2:80"}};
    crew = (struct crew){.options = &crew_options, .loop = ev_loop_new(0), .workers = workers};
    crew.started = ev_now(crew.loop) - 12.5;
    for (unsigned i = 0; i < CREW_THREADS; i++)
        workers[i] = make_worker();
}

struct report *crew_report(unsigned worker)
{
    return &workers[worker]->report;
}

void crew_clear(void)
{
    for (unsigned i = 0; i < CREW_THREADS; i++) {
        ev_async_stop(workers[i]->loop, &workers[i]->wake);
        ev_loop_destroy(workers[i]->loop);
        pthread_mutex_destroy(&workers[i]->lock);
        report_clear(&workers[i]->report);
        free(workers[i]);
    }
    ev_loop_destroy(crew.loop);
}
