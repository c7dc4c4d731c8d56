/* worker.c - a worker's life: made by the control thread, run in its own, ended by an order. */
#include "examples/lbproxy/worker.h"

#include <errno.h>
#include <linkpool/pool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/common/options.h"
#include "examples/lbproxy/options.h"

/* ---- orders ---- */

static void on_drained(struct pool *pool, void *data)
{
    struct worker *worker = data;

    (void)pool;
    clients_end(worker, CLIENT_STOPPED);
    ev_break(worker->loop, EVBREAK_ALL);
}

static void drain(struct worker *worker)
{
    listener_stop(&worker->listener);
    pool_drain(worker->pool, worker->options->drain_timeout, on_drained, worker); /* a second time changes nothing */
}

static void quit(struct worker *worker)
{
    listener_stop(&worker->listener);
    clients_end(worker, CLIENT_STOPPED);
    ev_break(worker->loop, EVBREAK_ALL);
}

static void on_wake(struct ev_loop *loop, ev_async *wake, int events)
{
    struct worker *worker = wake->data;
    unsigned orders = atomic_exchange(&worker->orders, 0);

    (void)loop, (void)events;
    if (orders & WORKER_REPORT) {
        report_write(worker);
        ev_async_send(worker->done_loop, worker->done_wake);
    }
    if (orders & WORKER_QUIT)
        quit(worker);
    else if (orders & WORKER_DRAIN)
        drain(worker);
}

void worker_order(struct worker *worker, unsigned orders)
{
    if (atomic_load(&worker->over))
        return;
    atomic_fetch_or(&worker->orders, orders);
    ev_async_send(worker->loop, &worker->wake);
}

/* ---- quiet clients ---- */

static void on_idle(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct worker *worker = timer->data;
    double next = clients_expire(worker);

    (void)events;
    if (next < 0)
        return;
    ev_timer_set(timer, next, 0);
    ev_timer_start(loop, timer);
}

void worker_watch_idle(struct worker *worker)
{
    if (worker->options->idle_timeout <= 0 || ev_is_active(&worker->idle))
        return;
    ev_timer_set(&worker->idle, worker->options->idle_timeout, 0);
    ev_timer_start(worker->loop, &worker->idle);
}

/* ---- making one ---- */

struct backend_counts *worker_backend(struct worker *worker, const struct pool_host *host)
{
    unsigned i = 0;

    while (i + 1 < worker->options->n_backends && pool_target_host(worker->target, i) != host)
        i++;
    return &worker->backends[i];
}

/* Reads only, as an observer may: the listener is ours, not the pool's. */
static void on_transition(void *data, const struct pool_host *host, const struct link_transition *transition)
{
    struct worker *worker = data;

    (void)host;
    if (transition->reason == LINK_NO_DESCRIPTORS)
        listener_short(&worker->listener);
    else if (transition->to == LINK_READY)
        listener_enough(&worker->listener);
}

/* A client waits at most twice as long as one attempt may take, so that a second backend may be tried; clients are
 * bounded by the listener, so the line is as long as they are many. */
static struct pool *make_pool(struct worker *worker, unsigned index)
{
    const struct options *options = worker->options;
    struct pool_observer observer = {.size = sizeof observer, .transition = on_transition, .data = worker};
    struct pool_options pool;
    struct pool_host_options host;
    struct pool *made;
    char why[256];

    pool_options_init(&pool);
    pool_host_options_init(&host);
    pool.host = &host;
    pool.observer = &observer;
    pool.max_links = host.max_links = options_share(options, options->max_links, index);
    pool.max_line = pool.max_waiting = options_share(options, options->max_clients, index);
    pool.wait_timeout = 2 * options->connect_timeout;
    host.connect_timeout = options->connect_timeout;
    if (pool_options_check(&pool, why, sizeof why) < 0)
        die("pool: %s", why);
    made = pool_new(worker->loop, &pool);
    if (made == NULL)
        die("pool: %s", strerror(errno));
    return made;
}

static struct pool_target *make_target(const struct options *options, struct pool *pool)
{
    struct pool_endpoint endpoints[MAX_BACKENDS];
    struct pool_target_options target;
    struct pool_target *made;
    char why[256];

    memset(endpoints, 0, sizeof endpoints);
    for (unsigned i = 0; i < options->n_backends; i++) {
        endpoints[i].size = sizeof endpoints[i];
        endpoints[i].address = options->backends[i];
    }
    pool_target_options_init(&target);
    target.picker = options->policy;
    target.endpoints = endpoints;
    target.n_endpoints = options->n_backends;
    if (pool_target_options_check(&target, why, sizeof why) < 0)
        die("--backend: %s", why);
    made = pool_target_add(pool, "backends", &target);
    if (made == NULL)
        die("--backend: %s", strerror(errno));
    return made;
}

static void *run(void *data)
{
    struct worker *worker = data;

    ev_run(worker->loop, 0);
    report_write(worker);
    pool_free(worker->pool);
    worker->pool = NULL;
    atomic_store(&worker->over, true);
    ev_async_send(worker->done_loop, worker->done_wake);
    return NULL;
}

static void watch(struct worker *worker)
{
    ev_async_init(&worker->wake, on_wake);
    worker->wake.data = worker;
    ev_async_start(worker->loop, &worker->wake);
    ev_timer_init(&worker->idle, on_idle, 0, 0);
    worker->idle.data = worker;
}

struct worker *worker_start(
    const struct options *options, unsigned index, int fd, struct ev_loop *done_loop, ev_async *done_wake)
{
    struct worker *worker = calloc(1, sizeof *worker);

    if (worker == NULL)
        die("thread %u: out of memory", index);
    worker->options = options;
    worker->done_loop = done_loop;
    worker->done_wake = done_wake;
    worker->loop = ev_loop_new(EVFLAG_AUTO);
    worker->backends = calloc(options->n_backends, sizeof *worker->backends);
    if (worker->loop == NULL || worker->backends == NULL)
        die("thread %u: out of memory", index);
    worker->pool = make_pool(worker, index);
    worker->target = make_target(options, worker->pool);
    pthread_mutex_init(&worker->lock, NULL);
    watch(worker);
    listener_start(&worker->listener, worker, fd, options_share(options, options->max_clients, index));
    if (pthread_create(&worker->thread, NULL, run, worker) != 0)
        die("thread %u: cannot be started", index);
    return worker;
}

void worker_join(struct worker *worker)
{
    pthread_join(worker->thread, NULL);
    ev_loop_destroy(worker->loop);
    pthread_mutex_destroy(&worker->lock);
    buffers_clear(&worker->buffers);
    report_clear(&worker->report);
    free(worker->backends);
    free(worker);
}
