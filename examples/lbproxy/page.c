/* page.c - sums first, in lines of names and values that a script can take apart; then each thread in words. */
#include "examples/lbproxy/page.h"

#include <inttypes.h>
#include <linkpool/linkpool.h>
#include <stdio.h>
#include <stdlib.h>

#include "examples/common/options.h"
#include "examples/lbproxy/crew.h"
#include "examples/lbproxy/mode.h"
#include "examples/lbproxy/options.h"
#include "examples/lbproxy/worker.h"

struct sums {
    unsigned clients, buffers, links, leased, idle, connecting, waiting;
    uint64_t opened;
    struct worker_counts counts;
};

static void add_worker(struct sums *sums, const struct report *report)
{
    sums->clients += report->clients;
    sums->buffers += report->buffers;
    sums->links += report->pool.links;
    sums->leased += report->pool.leased;
    sums->idle += report->pool.idle;
    sums->connecting += report->pool.connecting;
    sums->waiting += report->pool.waiting;
    sums->opened += report->pool.opened;
    sums->counts.accepted += report->counts.accepted;
    for (int i = 0; i < CLIENT_REASONS; i++)
        sums->counts.ended[i] += report->counts.ended[i];
}

static void write_sums(FILE *page, const struct crew *crew)
{
    struct sums sums = {0};

    for (unsigned i = 0; i < crew->options->threads; i++)
        add_worker(&sums, &crew->workers[i]->report);
    fprintf(page, "clients open %u accepted %" PRIu64, sums.clients, sums.counts.accepted);
    for (int i = 0; i < CLIENT_REASONS; i++)
        fprintf(page, " %s %" PRIu64, client_reason_name((enum client_reason)i), sums.counts.ended[i]);
    fprintf(page, " buffers %u\n", sums.buffers);
    fprintf(page, "links open %u leased %u idle %u connecting %u waiting %u opened %" PRIu64 "\n", sums.links,
        sums.leased, sums.idle, sums.connecting, sums.waiting, sums.opened);
}

static void add_backend(struct backend_counts *counts, const struct backend_counts *more)
{
    counts->leases += more->leases;
    counts->held += more->held;
    counts->bytes_to += more->bytes_to;
    counts->bytes_from += more->bytes_from;
}

static void write_backend(FILE *page, const struct crew *crew, unsigned backend)
{
    struct backend_counts counts = {0};
    unsigned links[LINK_STATES] = {0};
    uint64_t opened = 0, failed = 0;

    for (unsigned i = 0; i < crew->options->threads; i++) {
        const struct report *report = &crew->workers[i]->report;

        if (report->hosts == NULL || report->backends == NULL)
            continue;
        add_backend(&counts, &report->backends[backend]);
        opened += report->hosts[backend].opened;
        failed += report->hosts[backend].failed;
        for (int state = 0; state < LINK_STATES; state++)
            links[state] += report->hosts[backend].links[state];
    }
    fprintf(page,
        "backend %s leases %" PRIu64 " held %u bytes_to %" PRIu64 " bytes_from %" PRIu64 " opened %" PRIu64
        " failed %" PRIu64,
        crew->options->backends[backend], counts.leases, counts.held, counts.bytes_to, counts.bytes_from, opened,
        failed);
    for (int state = 0; state < LINK_STATES; state++)
        fprintf(page, " %s %u", link_state_name((enum link_state)state), links[state]);
    fprintf(page, "\n");
}

static void write_all(FILE *page, const struct crew *crew)
{
    const struct options *options = crew->options;

    fprintf(page, "lbproxy %s mode %s policy %s threads %u up %.3f%s\n", LINKPOOL_VERSION, options->mode->name,
        options->policy->name, options->threads, ev_now(crew->loop) - crew->started, crew->draining ? " draining" : "");
    write_sums(page, crew);
    for (unsigned i = 0; i < options->n_backends; i++)
        write_backend(page, crew, i);
    for (unsigned i = 0; i < options->threads; i++) {
        const struct worker *worker = crew->workers[i];

        fprintf(page, "\nthread %u: %s%s", i, atomic_load(&worker->over) ? "over, " : "",
            worker->report.text == NULL ? "no report\n" : worker->report.text);
    }
}

static void lock_all(const struct crew *crew)
{
    for (unsigned i = 0; i < crew->options->threads; i++)
        pthread_mutex_lock(&crew->workers[i]->lock);
}

static void unlock_all(const struct crew *crew)
{
    for (unsigned i = 0; i < crew->options->threads; i++)
        pthread_mutex_unlock(&crew->workers[i]->lock);
}

char *page_write(const struct crew *crew, size_t *size)
{
    char *text = NULL;
    FILE *page = open_memstream(&text, size);

    if (page == NULL)
        return NULL;
    lock_all(crew);
    write_all(page, crew);
    unlock_all(crew);
    if (fclose(page) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
