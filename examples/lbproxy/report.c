/* report.c - figures and words about a worker, copied under its lock, and added up from there. */
#include "examples/lbproxy/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/lbproxy/access_log.h"
#include "examples/lbproxy/crew.h"
#include "examples/lbproxy/options.h"
#include "examples/lbproxy/worker.h"

/* ---- writing one ---- */

static char *explain_target(const struct pool_target *target)
{
    int n = pool_target_explain(target, NULL, 0);
    char *text = n < 0 ? NULL : malloc((size_t)n + 1);

    if (text != NULL)
        pool_target_explain(target, text, (size_t)n + 1);
    return text;
}

static char *describe(const struct worker *worker)
{
    char *explained = explain_target(worker->target);
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);

    if (stream != NULL) {
        fprintf(stream, "clients %u, listener %s, buffers in use %u\n%s\n", worker->n_clients,
            listener_state(&worker->listener), worker->buffers.n_taken, explained == NULL ? "" : explained);
        fclose(stream);
    }
    free(explained);
    return text;
}

static bool make_backends(struct report *report, unsigned n)
{
    if (report->hosts == NULL)
        report->hosts = calloc(n, sizeof *report->hosts);
    if (report->backends == NULL)
        report->backends = calloc(n, sizeof *report->backends);
    return report->hosts != NULL && report->backends != NULL;
}

static void copy_backends(const struct worker *worker, struct report *report)
{
    unsigned n = worker->options->n_backends;

    if (!make_backends(report, n))
        return;
    for (unsigned i = 0; i < n; i++)
        pool_host_stats(pool_target_host(worker->target, i), &report->hosts[i], sizeof report->hosts[i]);
    memcpy(report->backends, worker->backends, n * sizeof *report->backends);
}

void report_write(struct worker *worker)
{
    struct report *report = &worker->report;
    char *text = describe(worker);

    pthread_mutex_lock(&worker->lock);
    report->round++;
    report->clients = worker->n_clients;
    report->buffers = worker->buffers.n_taken;
    report->counts = worker->counts;
    report->counts.log_dropped = access_log_dropped(worker->log);
    pool_stats(worker->pool, &report->pool, sizeof report->pool);
    copy_backends(worker, report);
    free(report->text);
    report->text = text;
    pthread_mutex_unlock(&worker->lock);
}

void report_clear(struct report *report)
{
    free(report->text);
    free(report->hosts);
    free(report->backends);
}

/* ---- adding up ---- */

bool report_is_down(enum link_state state)
{
    return state == LINK_BACKOFF || state == LINK_OFFLINE || state == LINK_DRAINING || state == LINK_CLOSED;
}

static void add_numbers(uint64_t *sum, const uint64_t *more, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        sum[i] += more[i];
}

static void add_pool(struct pool_stats *sum, const struct pool_stats *more)
{
    sum->links += more->links;
    sum->leased += more->leased;
    sum->idle += more->idle;
    sum->connecting += more->connecting;
    sum->waiting += more->waiting;
    sum->opened += more->opened;
}

static void add_counts(struct worker_counts *sum, const struct worker_counts *more)
{
    sum->accepted += more->accepted;
    sum->requests += more->requests;
    sum->no_backend += more->no_backend;
    sum->log_dropped += more->log_dropped;
    add_numbers(sum->ended, more->ended, CLIENT_REASONS);
    add_numbers(sum->refused, more->refused, REFUSALS);
}

static void add_histogram(struct histogram *sum, const struct histogram *more)
{
    add_numbers(sum->n, more->n, HISTOGRAM_BUCKETS);
    sum->sum += more->sum;
}

static void add_backend(struct backend_counts *sum, const struct backend_counts *more)
{
    sum->leases += more->leases;
    sum->held += more->held;
    sum->bytes_to += more->bytes_to;
    sum->bytes_from += more->bytes_from;
    sum->retries += more->retries;
    add_numbers(sum->requests, more->requests, CLASSES);
    add_numbers(sum->ends, more->ends, LINK_REASONS);
    add_histogram(&sum->wait, &more->wait);
    add_histogram(&sum->answer, &more->answer);
}

static void add_host(struct pool_host_stats *sum, const struct pool_host_stats *more)
{
    sum->opened += more->opened;
    sum->failed += more->failed;
    for (int state = 0; state < LINK_STATES; state++)
        sum->links[state] += more->links[state];
    if (report_is_down(sum->state))
        sum->state = more->state;
}

static void add_report(struct report *sum, const struct report *more, unsigned n_backends)
{
    sum->clients += more->clients;
    sum->buffers += more->buffers;
    add_counts(&sum->counts, &more->counts);
    add_pool(&sum->pool, &more->pool);
    if (more->hosts == NULL || more->backends == NULL)
        return;
    for (unsigned i = 0; i < n_backends; i++) {
        add_backend(&sum->backends[i], &more->backends[i]);
        add_host(&sum->hosts[i], &more->hosts[i]);
    }
}

bool report_sum(const struct crew *crew, struct report *sum)
{
    unsigned n = crew->options->n_backends;

    if (!make_backends(sum, n))
        return false;
    for (unsigned i = 0; i < n; i++)
        sum->hosts[i].state = LINK_OFFLINE; /* until a worker knows better */
    for (unsigned i = 0; i < crew->options->threads; i++) {
        struct worker *worker = crew->workers[i];

        pthread_mutex_lock(&worker->lock);
        add_report(sum, &worker->report, n);
        pthread_mutex_unlock(&worker->lock);
    }
    return true;
}
