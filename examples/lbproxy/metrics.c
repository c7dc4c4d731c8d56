/* metrics.c - families of figures, each with its help and type, then a line for each of its labels. */
#include "examples/lbproxy/metrics.h"

#include <inttypes.h>
#include <linkpool/linkpool.h>

#include "examples/lbproxy/crew.h"
#include "examples/lbproxy/mode.h"
#include "examples/lbproxy/options.h"
#include "examples/lbproxy/report.h"

static void write_head(FILE *page, const char *name, const char *type, const char *help)
{
    fprintf(page, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void write_escaped(FILE *page, const char *text)
{
    for (; *text != '\0'; text++)
        if (*text == '\n') {
            fputs("\\n", page);
        } else {
            if (*text == '\\' || *text == '"')
                fputc('\\', page);
            fputc(*text, page);
        }
}

/* ---- of the process ---- */

static void write_one(FILE *page, const char *name, const char *type, const char *help, uint64_t value)
{
    write_head(page, name, type, help);
    fprintf(page, "%s %" PRIu64 "\n", name, value);
}

static void write_program(FILE *page, const struct crew *crew)
{
    const struct options *options = crew->options;

    write_head(page, "lbproxy_build_info", "gauge", "What runs here; always 1.");
    fprintf(page, "lbproxy_build_info{version=\"%s\",mode=\"%s\",policy=\"%s\"} 1\n", LINKPOOL_VERSION,
        options->mode->name, options->policy->name);
    write_head(page, "lbproxy_uptime_seconds", "gauge", "Time since the start.");
    fprintf(page, "lbproxy_uptime_seconds %.3f\n", ev_now(crew->loop) - crew->started);
    write_one(page, "lbproxy_threads", "gauge", "Event loops.", options->threads);
    write_one(page, "lbproxy_draining", "gauge", "1 after the first signal to end.", crew->draining);
}

static void write_clients(FILE *page, const struct report *sum)
{
    const struct worker_counts *counts = &sum->counts;

    write_one(page, "lbproxy_clients", "gauge", "Clients now.", sum->clients);
    write_one(page, "lbproxy_clients_accepted_total", "counter", "Clients so far.", counts->accepted);
    write_head(page, "lbproxy_clients_ended_total", "counter", "Clients that are over, by how they ended.");
    for (int i = 0; i < CLIENT_REASONS; i++)
        fprintf(page, "lbproxy_clients_ended_total{reason=\"%s\"} %" PRIu64 "\n",
            client_reason_name((enum client_reason)i), counts->ended[i]);
    write_one(page, "lbproxy_buffers", "gauge", "Buffers in use.", sum->buffers);
}

static void write_refusals(FILE *page, const struct worker_counts *counts)
{
    write_head(page, "lbproxy_refused_total", "counter", "Answers of lbproxy's own, by status.");
    for (unsigned i = 0; i < REFUSALS - 1; i++)
        fprintf(page, "lbproxy_refused_total{status=\"%u\"} %" PRIu64 "\n", refusal_statuses[i], counts->refused[i]);
    fprintf(page, "lbproxy_refused_total{status=\"other\"} %" PRIu64 "\n", counts->refused[REFUSALS - 1]);
}

static void write_requests(FILE *page, const struct report *sum, unsigned n_backends)
{
    const struct worker_counts *counts = &sum->counts;
    uint64_t retries = 0;

    for (unsigned i = 0; i < n_backends; i++)
        retries += sum->backends[i].retries;
    write_one(page, "lbproxy_requests_ended_total", "counter", "Requests that are over, however they ended.",
        counts->requests);
    write_one(page, "lbproxy_requests_without_backend_total", "counter", "Requests that no backend was found for.",
        counts->no_backend);
    write_one(page, "lbproxy_retries_total", "counter", "Requests tried once more after a link broke.", retries);
    write_one(page, "lbproxy_waiting", "gauge", "In line for a link now.", sum->pool.waiting);
    write_one(page, "lbproxy_access_log_dropped_total", "counter", "Lines of the access log that could not be written.",
        counts->log_dropped);
    write_refusals(page, counts);
}

/* ---- of each backend ---- */

struct backend {
    const char *name;
    const struct backend_counts *counts;
    const struct pool_host_stats *host;
};

struct family {
    const char *name, *type, *help;
    void (*write)(FILE *page, const char *name, const struct backend *backend);
};

/* What the lines of a backend begin with; one more label may follow, or the closing brace. */
static void begin(FILE *page, const char *name, const char *suffix, const struct backend *backend)
{
    fprintf(page, "%s%s{backend=\"", name, suffix);
    write_escaped(page, backend->name);
    fputc('"', page);
}

static void write_value(FILE *page, const char *name, const struct backend *backend, uint64_t value)
{
    begin(page, name, "", backend);
    fprintf(page, "} %" PRIu64 "\n", value);
}

static void write_labelled(
    FILE *page, const char *name, const struct backend *backend, const char *label, const char *text, uint64_t value)
{
    begin(page, name, "", backend);
    fprintf(page, ",%s=\"%s\"} %" PRIu64 "\n", label, text, value);
}

static void write_up(FILE *page, const char *name, const struct backend *backend)
{
    write_value(page, name, backend, !report_is_down(backend->host->state));
}

static void write_classes(FILE *page, const char *name, const struct backend *backend)
{
    static const char *const classes[CLASSES] = {"other", "1xx", "2xx", "3xx", "4xx", "5xx"};

    for (int i = 0; i < CLASSES; i++)
        write_labelled(page, name, backend, "class", classes[i], backend->counts->requests[i]);
}

static void write_leases(FILE *page, const char *name, const struct backend *backend)
{
    write_value(page, name, backend, backend->counts->leases);
}

static void write_held(FILE *page, const char *name, const struct backend *backend)
{
    write_value(page, name, backend, backend->counts->held);
}

static void write_bytes(FILE *page, const char *name, const struct backend *backend)
{
    write_labelled(page, name, backend, "direction", "to", backend->counts->bytes_to);
    write_labelled(page, name, backend, "direction", "from", backend->counts->bytes_from);
}

static void write_links(FILE *page, const char *name, const struct backend *backend)
{
    for (int i = 0; i < LINK_STATES; i++)
        write_labelled(page, name, backend, "state", link_state_name((enum link_state)i), backend->host->links[i]);
}

static void write_attempts(FILE *page, const char *name, const struct backend *backend)
{
    write_value(page, name, backend, backend->host->opened);
}

static void write_failed(FILE *page, const char *name, const struct backend *backend)
{
    write_value(page, name, backend, backend->host->failed);
}

static void write_ends(FILE *page, const char *name, const struct backend *backend)
{
    for (int i = LINK_NO_REASON + 1; i < LINK_REASONS; i++)
        write_labelled(page, name, backend, "reason", link_reason_text((enum link_reason)i), backend->counts->ends[i]);
}

static void write_histogram(
    FILE *page, const char *name, const struct backend *backend, const struct histogram *histogram)
{
    uint64_t count = 0;

    for (int i = 0; i < HISTOGRAM_BUCKETS - 1; i++) {
        count += histogram->n[i];
        begin(page, name, "_bucket", backend);
        fprintf(page, ",le=\"%g\"} %" PRIu64 "\n", histogram_bounds[i], count);
    }
    count += histogram->n[HISTOGRAM_BUCKETS - 1];
    begin(page, name, "_bucket", backend);
    fprintf(page, ",le=\"+Inf\"} %" PRIu64 "\n", count);
    begin(page, name, "_sum", backend);
    fprintf(page, "} %.6f\n", histogram->sum);
    begin(page, name, "_count", backend);
    fprintf(page, "} %" PRIu64 "\n", count);
}

static void write_wait(FILE *page, const char *name, const struct backend *backend)
{
    write_histogram(page, name, backend, &backend->counts->wait);
}

static void write_answer(FILE *page, const char *name, const struct backend *backend)
{
    write_histogram(page, name, backend, &backend->counts->answer);
}

static const struct family families[] = {
    {"lbproxy_backend_up", "gauge", "1 while some thread finds the backend up.", write_up},
    {"lbproxy_requests_total", "counter", "Requests answered, by the class of their status.", write_classes},
    {"lbproxy_leases_total", "counter", "Leases of a link to it.", write_leases},
    {"lbproxy_leases", "gauge", "Links to it that are leased now.", write_held},
    {"lbproxy_bytes_total", "counter", "Bytes passed on to it, and from it.", write_bytes},
    {"lbproxy_links", "gauge", "Links to it, by state.", write_links},
    {"lbproxy_link_attempts_total", "counter", "Attempts to open a link to it.", write_attempts},
    {"lbproxy_link_attempts_failed_total", "counter", "Attempts that failed.", write_failed},
    {"lbproxy_link_ends_total", "counter", "Links to it that ended, by reason.", write_ends},
    {"lbproxy_wait_seconds", "histogram", "Time in line for a link.", write_wait},
    {"lbproxy_answer_seconds", "histogram", "Time from a request to its answer's end.", write_answer},
};

static void write_family(FILE *page, const struct family *family, const struct crew *crew, const struct report *sum)
{
    write_head(page, family->name, family->type, family->help);
    for (unsigned i = 0; i < crew->options->n_backends; i++) {
        const struct backend backend = {crew->options->backends[i], &sum->backends[i], &sum->hosts[i]};

        family->write(page, family->name, &backend);
    }
}

void metrics_write(FILE *page, const struct crew *crew, const struct report *sum)
{
    write_program(page, crew);
    write_clients(page, sum);
    write_requests(page, sum, crew->options->n_backends);
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        write_family(page, &families[i], crew, sum);
}
