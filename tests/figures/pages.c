/* pages.c - the figures of two workers, added up and written: for people, and for Prometheus. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <linkpool/linkpool.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/lbproxy/metrics.h"
#include "examples/lbproxy/page.h"
#include "tests/figures/crew.h"

TestSuite(pages, .init = crew_make, .fini = crew_clear);
TestSuite(counts);

static char *text;
static size_t size;

/* Writes a page anew to `text`. */
static void write_with(void (*write)(FILE *page, const struct crew *crew, const struct report *sum))
{
    struct report sum = {0};
    FILE *page;

    free(text);
    text = NULL;
    page = open_memstream(&text, &size);
    cr_assert(report_sum(&crew, &sum));
    write(page, &crew, &sum);
    fclose(page);
    report_clear(&sum);
}

static bool has_line(const char *line)
{
    const char *at = text;
    size_t n = strlen(line);

    while ((at = strstr(at, line)) != NULL && !((at == text || at[-1] == '\n') && at[n] == '\n'))
        at += n;
    return at != NULL;
}

/* Each thread has seen something else, so that a sum shows that both are in it. */
static void fill(void)
{
    for (unsigned i = 0; i < CREW_THREADS; i++) {
        struct report *report = crew_report(i);
        struct backend_counts *first = &report->backends[0];

        report->clients = 3 + i;
        report->buffers = 1;
        report->text = strdup(i == 0 ? "all is well\n" : "so it is\n");
        report->counts.accepted = 100;
        report->counts.requests = 1000 + i;
        report->counts.no_backend = 5;
        report->counts.log_dropped = 2;
        report->counts.ended[CLIENT_BROKEN] = 7;
        counts_refuse(&report->counts, i == 0 ? 400 : 505);
        counts_refuse(&report->counts, 418);
        report->pool.waiting = 4;
        report->pool.links = 6;
        first->leases = 10;
        first->held = 1 + i;
        first->bytes_to = 1000000000000;
        first->bytes_from = 1;
        first->retries = 2;
        first->ends[LINK_RESET] = 3;
        counts_request(first, 204, 0, 0.0003);
        counts_request(first, 503, 0.02, 20);
        report->hosts[0].opened = 9;
        report->hosts[0].failed = 8;
        report->hosts[0].links[LINK_READY] = 2;
        report->hosts[1].state = i == 0 ? LINK_BACKOFF : LINK_READY;
    }
}

/* ---- counting ---- */

Test(counts, a_time_is_in_the_first_bucket_whose_bound_it_does_not_exceed)
{
    struct histogram histogram = {0};
    double sum = 0;

    for (int i = 0; i < HISTOGRAM_BUCKETS - 1; i++) {
        histogram_add(&histogram, histogram_bounds[i]);
        histogram_add(&histogram, histogram_bounds[i] * 1.5);
        sum += histogram_bounds[i] * 2.5;
    }
    cr_assert(eq(u64, histogram.n[0], 1));
    for (int i = 1; i < HISTOGRAM_BUCKETS - 1; i++)
        cr_assert(eq(u64, histogram.n[i], 2), "bucket %d", i);
    cr_assert(eq(u64, histogram.n[HISTOGRAM_BUCKETS - 1], 1));
    cr_assert(epsilon_eq(dbl, histogram.sum, sum, 1e-9));
}

Test(counts, a_status_has_the_class_of_its_first_digit)
{
    static const unsigned statuses[] = {0, 99, 100, 101, 200, 299, 304, 404, 499, 500, 599, 600, 4000};
    static const uint64_t wanted[CLASSES] = {4, 2, 2, 1, 2, 2};
    struct backend_counts counts = {0};

    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        counts_request(&counts, statuses[i], 0, 0);
    for (int i = 0; i < CLASSES; i++)
        cr_assert(eq(u64, counts.requests[i], wanted[i]), "class %d", i);
}

Test(counts, each_refusal_is_counted_once_by_its_status)
{
    struct worker_counts counts = {0};

    for (unsigned status = 0; status < 1000; status++)
        counts_refuse(&counts, status);
    for (int i = 0; i < REFUSALS - 1; i++)
        cr_assert(eq(u64, counts.refused[i], 1), "%u", refusal_statuses[i]);
    cr_assert(eq(u64, counts.refused[REFUSALS - 1], 1000 - (REFUSALS - 1)));
}

/* ---- for people ---- */

Test(pages, the_page_adds_up_all_threads_in_lines_of_names_and_values)
{
    fill();
    write_with(page_write);
    cr_assert(has_line("lbproxy " LINKPOOL_VERSION " mode tcp policy round_robin threads 2 up 12.500"), "%s", text);
    cr_assert(
        has_line("clients open 7 accepted 200 served 0 unserved 0 broken 14 idle 0 stopped 0 buffers 2"), "%s", text);
    cr_assert(has_line("links open 12 leased 0 idle 0 connecting 0 waiting 8 opened 0"), "%s", text);
    cr_assert(has_line("requests 2001 retries 4 refused 4 no_backend 10 log_dropped 4"), "%s", text);
    cr_assert(
        has_line("refused status_400 1 status_405 0 status_408 0 status_413 0 status_414 0 status_417 0 status_431 0 "
                 "status_499 0 status_501 0 status_502 0 status_503 0 status_504 0 status_505 1 other 2"),
        "%s", text);
    cr_assert(
        has_line("backend 10.0.0.1:80 leases 20 held 3 bytes_to 2000000000000 bytes_from 2 opened 18 failed 16 idle 0 "
                 "connecting 0 handshaking 0 ready 4 resetting 0 draining 0 backoff 0 offline 0 closed 0"),
        "%s", text);
    cr_assert(has_line("answers 10.0.0.1:80 1xx 0 2xx 2 3xx 0 4xx 0 5xx 2 other 0 retries 4"), "%s", text);
    cr_assert(ne(ptr, strstr(text, "\n\nthread 0: all is well\n\nthread 1: so it is\n"), NULL), "%s", text);
}

Test(pages, the_page_says_that_lbproxy_drains_and_which_threads_are_over)
{
    crew.draining = true;
    atomic_store(&crew.workers[1]->over, true);
    write_with(page_write);
    cr_assert(eq(sz, strcspn(text, "\n"), (size_t)(strstr(text, " draining\n") - text) + 9), "%s", text);
    cr_assert(has_line("thread 0: no report"), "%s", text);
    cr_assert(has_line("thread 1: over, no report"), "%s", text);
}

/* ---- for Prometheus ---- */

Test(pages, metrics_add_up_all_threads)
{
    fill();
    write_with(metrics_write);
    cr_assert(has_line("lbproxy_build_info{version=\"" LINKPOOL_VERSION "\",mode=\"tcp\",policy=\"round_robin\"} 1"));
    cr_assert(has_line("lbproxy_uptime_seconds 12.500"), "%s", text);
    cr_assert(has_line("lbproxy_draining 0"));
    cr_assert(has_line("lbproxy_clients 7"));
    cr_assert(has_line("lbproxy_clients_accepted_total 200"));
    cr_assert(has_line("lbproxy_clients_ended_total{reason=\"broken\"} 14"));
    cr_assert(has_line("lbproxy_requests_ended_total 2001"));
    cr_assert(has_line("lbproxy_requests_without_backend_total 10"));
    cr_assert(has_line("lbproxy_retries_total 4"));
    cr_assert(has_line("lbproxy_waiting 8"));
    cr_assert(has_line("lbproxy_access_log_dropped_total 4"));
    cr_assert(has_line("lbproxy_refused_total{status=\"400\"} 1"));
    cr_assert(has_line("lbproxy_refused_total{status=\"other\"} 2"));
    cr_assert(has_line("lbproxy_backend_up{backend=\"10.0.0.1:80\"} 1"));
    cr_assert(has_line("lbproxy_backend_up{backend=\"10.0.0.2:80\"} 1"), "one thread finds it up");
    cr_assert(has_line("lbproxy_requests_total{backend=\"10.0.0.1:80\",class=\"2xx\"} 2"));
    cr_assert(has_line("lbproxy_requests_total{backend=\"10.0.0.1:80\",class=\"5xx\"} 2"));
    cr_assert(has_line("lbproxy_requests_total{backend=\"10.0.0.2:80\",class=\"5xx\"} 0"));
    cr_assert(has_line("lbproxy_leases_total{backend=\"10.0.0.1:80\"} 20"));
    cr_assert(has_line("lbproxy_leases{backend=\"10.0.0.1:80\"} 3"));
    cr_assert(has_line("lbproxy_bytes_total{backend=\"10.0.0.1:80\",direction=\"to\"} 2000000000000"));
    cr_assert(has_line("lbproxy_bytes_total{backend=\"10.0.0.1:80\",direction=\"from\"} 2"));
    cr_assert(has_line("lbproxy_links{backend=\"10.0.0.1:80\",state=\"ready\"} 4"));
    cr_assert(has_line("lbproxy_link_attempts_total{backend=\"10.0.0.1:80\"} 18"));
    cr_assert(has_line("lbproxy_link_attempts_failed_total{backend=\"10.0.0.1:80\"} 16"));
}

Test(pages, metrics_have_the_ends_of_links_by_reason)
{
    char line[160];

    fill();
    write_with(metrics_write);
    snprintf(line, sizeof line, "lbproxy_link_ends_total{backend=\"10.0.0.1:80\",reason=\"%s\"} 6",
        link_reason_text(LINK_RESET));
    cr_assert(has_line(line), "%s", text);
}

Test(pages, buckets_of_a_histogram_have_all_below_their_bound)
{
    fill();
    write_with(metrics_write);
    cr_assert(has_line("lbproxy_wait_seconds_bucket{backend=\"10.0.0.1:80\",le=\"0.0001\"} 2"));
    cr_assert(has_line("lbproxy_wait_seconds_bucket{backend=\"10.0.0.1:80\",le=\"0.01\"} 2"));
    cr_assert(has_line("lbproxy_wait_seconds_bucket{backend=\"10.0.0.1:80\",le=\"0.025\"} 4"));
    cr_assert(has_line("lbproxy_wait_seconds_bucket{backend=\"10.0.0.1:80\",le=\"+Inf\"} 4"));
    cr_assert(has_line("lbproxy_wait_seconds_sum{backend=\"10.0.0.1:80\"} 0.040000"));
    cr_assert(has_line("lbproxy_wait_seconds_count{backend=\"10.0.0.1:80\"} 4"));
    cr_assert(has_line("lbproxy_answer_seconds_bucket{backend=\"10.0.0.1:80\",le=\"0.00025\"} 0"));
    cr_assert(has_line("lbproxy_answer_seconds_bucket{backend=\"10.0.0.1:80\",le=\"0.0005\"} 2"));
    cr_assert(has_line("lbproxy_answer_seconds_bucket{backend=\"10.0.0.1:80\",le=\"10\"} 2"));
    cr_assert(has_line("lbproxy_answer_seconds_bucket{backend=\"10.0.0.1:80\",le=\"+Inf\"} 4"));
    cr_assert(has_line("lbproxy_answer_seconds_count{backend=\"10.0.0.2:80\"} 0"));
}

Test(pages, label_values_are_escaped)
{
    crew_options.backends[1] = "unix:/run/a\"b\\c\nd.sock";
    write_with(metrics_write);
    cr_assert(has_line("lbproxy_leases{backend=\"unix:/run/a\\\"b\\\\c\\nd.sock\"} 0"), "%s", text);
    cr_assert(
        has_line("lbproxy_bytes_total{backend=\"unix:/run/a\\\"b\\\\c\\nd.sock\",direction=\"to\"} 0"), "%s", text);
}

/* A family's name, from one of its lines: up to the labels, without what a histogram's lines end in. */
static size_t family_length(const char *line)
{
    static const char *const ends[] = {"_bucket", "_sum", "_count"};
    size_t n = strcspn(line, "{ ");

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (n > strlen(ends[i]) && strncmp(line + n - strlen(ends[i]), ends[i], strlen(ends[i])) == 0)
            return n - strlen(ends[i]);
    return n;
}

Test(pages, each_family_of_metrics_stands_together_under_its_help_and_type)
{
    char name[80] = "", expected[120];
    unsigned families = 0;

    fill();
    write_with(metrics_write);
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        if (strncmp(line, "# HELP ", 7) == 0) {
            char *seen = strdup(name);

            snprintf(name, sizeof name, "%.*s", (int)strcspn(line + 7, " "), line + 7);
            cr_assert(ne(str, seen, name));
            free(seen);
            cr_assert(lt(sz, 7 + strlen(name) + 5, strlen(line)), "no help: %s", line);
            line = strtok(NULL, "\n");
            snprintf(expected, sizeof expected, "# TYPE %s ", name);
            cr_assert(zero(int, strncmp(line, expected, strlen(expected))), "%s", line);
            cr_assert(
                eq(int, strcmp(line + strlen(expected), "counter") == 0, strstr(name, "_total") != NULL), "%s", line);
            families++;
        } else {
            cr_assert(eq(sz, family_length(line), strlen(name)), "%s stands under %s", line, name);
            cr_assert(zero(int, strncmp(line, name, strlen(name))), "%s stands under %s", line, name);
        }
    }
    cr_assert(lt(uint, 20, families));
}
