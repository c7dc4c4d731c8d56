/* report.c - figures and words about a worker, copied under its lock. */
#include "examples/lbproxy/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/lbproxy/options.h"
#include "examples/lbproxy/worker.h"

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

static void copy_hosts(const struct worker *worker, struct report *report)
{
    unsigned n = worker->options->n_backends;

    if (report->hosts == NULL)
        report->hosts = calloc(n, sizeof *report->hosts);
    if (report->backends == NULL)
        report->backends = calloc(n, sizeof *report->backends);
    if (report->hosts == NULL || report->backends == NULL)
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
    pool_stats(worker->pool, &report->pool, sizeof report->pool);
    copy_hosts(worker, report);
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
