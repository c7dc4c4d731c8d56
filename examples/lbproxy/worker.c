/* worker.c - a worker's life: made by the control thread, run in its own, ended by an order. */
#include "examples/lbproxy/worker.h"

#include <errno.h>
#include <linkpool/pool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "examples/common/options.h"
#include "examples/lbproxy/access_log.h"
#include "examples/lbproxy/options.h"

/* ---- orders ---- */

static void on_drained(struct pool *pool, void *data)
{
    struct worker *worker = data;

    (void)pool;
    ev_break(worker->loop, EVBREAK_ALL);
}

/* Clients first: one that is still being served may want another link. Then the links, in order. */
void worker_client_gone(struct worker *worker)
{
    if (worker->draining && worker->n_clients == 0)
        pool_drain(worker->pool, 0, on_drained, worker); /* a second time changes nothing */
}

static void on_drain_limit(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct worker *worker = timer->data;

    (void)loop, (void)events;
    clients_end(worker, CLIENT_STOPPED);
}

static void drain(struct worker *worker)
{
    if (worker->draining)
        return;
    worker->draining = true;
    listener_stop(&worker->listener);
    clients_drain(worker);
    worker_client_gone(worker);
    ev_timer_set(&worker->drain_limit, worker->options->drain_timeout, 0);
    ev_timer_start(worker->loop, &worker->drain_limit);
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
    if (orders & WORKER_REOPEN && worker->log != NULL)
        access_log_reopen(worker->log); /* where that fails the old file goes on */
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

/* ---- making one ---- */

/* Looks from the last one found on: leases go to the same backend again, or to the next. */
struct backend_counts *worker_backend(struct worker *worker, const struct pool_host *host)
{
    unsigned n = worker->options->n_backends;
    unsigned i = worker->last_backend;

    for (unsigned looked = 1; looked < n && pool_target_host(worker->target, i) != host; looked++)
        i = i + 1 == n ? 0 : i + 1;
    worker->last_backend = i;
    return &worker->backends[i];
}

/* Reads only, as an observer may: the listener and the counts are ours, not the pool's. */
static void on_transition(void *data, const struct pool_host *host, const struct link_transition *transition)
{
    struct worker *worker = data;

    if (transition->reason != LINK_NO_REASON && worker->target != NULL)
        worker_backend(worker, host)->ends[transition->reason]++;
    if (transition->reason == LINK_NO_DESCRIPTORS)
        listener_short(&worker->listener);
    else if (transition->to == LINK_READY)
        listener_enough(&worker->listener);
}

/* A lease waits at most twice as long as one attempt may take, so that a second backend may be tried. A backend that
 * takes connections is there, whatever becomes of one of them: only those that cannot be opened, or die before anybody
 * used them, make it fail. */
static struct pool *make_pool(struct worker *worker, unsigned index)
{
    const struct options *options = worker->options;
    struct pool_observer observer = {.size = sizeof observer, .transition = on_transition, .data = worker};
    struct pool_options pool;
    struct pool_host_options host;
    struct backoff_policy backoff = backoff_default;
    struct pool *made;
    char why[256];

    pool_options_init(&pool);
    pool_host_options_init(&host);
    pool.host = &host;
    pool.observer = &observer;
    pool.max_links = host.max_links = options_share(options, options->max_links, index);
    pool.max_line = pool.max_waiting = options_share(options, options->max_waiting, index);
    pool.wait_timeout = 2 * options->connect_timeout;
    host.connect_timeout = options->connect_timeout;
    host.backoff = &backoff;
    backoff.stable_after = backoff.reconnect_spread = 0;
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

static void open_log(struct worker *worker)
{
    const char *path = worker->options->access_log;

    if (path == NULL)
        return;
    worker->log = access_log_new(worker->loop, path);
    if (worker->log == NULL)
        die("--access-log: %s: %s", path, strerror(errno));
}

static void seed(struct worker *worker)
{
    if (getrandom(worker->random, sizeof worker->random, 0) != (ssize_t)sizeof worker->random)
        die("no random numbers: %s", strerror(errno));
    worker->random[0] |= 1; /* a state of nothing but 0 would stay so */
}

/* xorshift128+, by Vigna: "Further scramblings of Marsaglia's xorshift generators" (2017), with 23, 18 and 5. */
uint64_t worker_draw(struct worker *worker)
{
    uint64_t a = worker->random[0], b = worker->random[1];

    worker->random[0] = b;
    a ^= a << 23;
    worker->random[1] = a ^ b ^ (a >> 18) ^ (b >> 5);
    return worker->random[1] + b;
}

static void *run(void *data)
{
    struct worker *worker = data;

    ev_run(worker->loop, 0);
    report_write(worker);
    ev_timer_stop(worker->loop, &worker->drain_limit);
    clocks_stop(worker);
    worker->target = NULL; /* the last links' ends are counted nowhere */
    pool_free(worker->pool);
    worker->pool = NULL;
    access_log_free(worker->log);
    worker->log = NULL;
    atomic_store(&worker->over, true);
    ev_async_send(worker->done_loop, worker->done_wake);
    return NULL;
}

static void watch(struct worker *worker)
{
    ev_async_init(&worker->wake, on_wake);
    worker->wake.data = worker;
    ev_async_start(worker->loop, &worker->wake);
    ev_timer_init(&worker->drain_limit, on_drain_limit, 0, 0);
    worker->drain_limit.data = worker;
    clocks_init(worker, worker->options);
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
    open_log(worker);
    seed(worker);
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
