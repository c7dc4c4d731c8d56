/* page.c - sums first, in lines of names and values that a script can take apart; then each thread in words. */
#include "examples/lbproxy/page.h"

#include <inttypes.h>
#include <linkpool/linkpool.h>

#include "examples/lbproxy/crew.h"
#include "examples/lbproxy/mode.h"
#include "examples/lbproxy/options.h"
#include "examples/lbproxy/worker.h"

static void write_clients(FILE *page, const struct report *sum)
{
    fprintf(page, "clients open %u accepted %" PRIu64, sum->clients, sum->counts.accepted);
    for (int i = 0; i < CLIENT_REASONS; i++)
        fprintf(page, " %s %" PRIu64, client_reason_name((enum client_reason)i), sum->counts.ended[i]);
    fprintf(page, " buffers %u\n", sum->buffers);
}

static void write_links(FILE *page, const struct pool_stats *pool)
{
    fprintf(page, "links open %u leased %u idle %u connecting %u waiting %u opened %" PRIu64 "\n", pool->links,
        pool->leased, pool->idle, pool->connecting, pool->waiting, pool->opened);
}

/* A status is no name here, since it could be a value too. */
static void write_requests(FILE *page, const struct report *sum, unsigned n_backends)
{
    const struct worker_counts *counts = &sum->counts;
    uint64_t retries = 0, refused = 0;

    for (unsigned i = 0; i < n_backends; i++)
        retries += sum->backends[i].retries;
    for (unsigned i = 0; i < REFUSALS; i++)
        refused += counts->refused[i];
    fprintf(page,
        "requests %" PRIu64 " retries %" PRIu64 " refused %" PRIu64 " no_backend %" PRIu64 " log_dropped %" PRIu64
        "\nrefused",
        counts->requests, retries, refused, counts->no_backend, counts->log_dropped);
    for (unsigned i = 0; i < REFUSALS - 1; i++)
        fprintf(page, " status_%u %" PRIu64, refusal_statuses[i], counts->refused[i]);
    fprintf(page, " other %" PRIu64 "\n", counts->refused[REFUSALS - 1]);
}

static void write_backend(
    FILE *page, const char *name, const struct backend_counts *counts, const struct pool_host_stats *host)
{
    fprintf(page,
        "backend %s leases %" PRIu64 " held %u bytes_to %" PRIu64 " bytes_from %" PRIu64 " opened %" PRIu64
        " failed %" PRIu64,
        name, counts->leases, counts->held, counts->bytes_to, counts->bytes_from, host->opened, host->failed);
    for (int state = 0; state < LINK_STATES; state++)
        fprintf(page, " %s %u", link_state_name((enum link_state)state), host->links[state]);
    fprintf(page, "\nanswers %s", name);
    for (unsigned i = 1; i < CLASSES; i++)
        fprintf(page, " %uxx %" PRIu64, i, counts->requests[i]);
    fprintf(page, " other %" PRIu64 " retries %" PRIu64 "\n", counts->requests[0], counts->retries);
}

static void write_thread(FILE *page, unsigned i, struct worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    fprintf(page, "\nthread %u: %s%s", i, atomic_load(&worker->over) ? "over, " : "",
        worker->report.text == NULL ? "no report\n" : worker->report.text);
    pthread_mutex_unlock(&worker->lock);
}

void page_write(FILE *page, const struct crew *crew, const struct report *sum)
{
    const struct options *options = crew->options;

    fprintf(page, "lbproxy %s mode %s policy %s threads %u up %.3f%s\n", LINKPOOL_VERSION, options->mode->name,
        options->policy->name, options->threads, ev_now(crew->loop) - crew->started, crew->draining ? " draining" : "");
    write_clients(page, sum);
    write_links(page, &sum->pool);
    write_requests(page, sum, options->n_backends);
    for (unsigned i = 0; i < options->n_backends; i++)
        write_backend(page, options->backends[i], &sum->backends[i], &sum->hosts[i]);
    for (unsigned i = 0; i < options->threads; i++)
        write_thread(page, i, crew->workers[i]);
}
