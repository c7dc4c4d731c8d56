/* counts.c - counting, on the path of each request: a few additions, and compares that mostly end at the first. */
#include "examples/lbproxy/counts.h"

const double histogram_bounds[HISTOGRAM_BUCKETS - 1] = {
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};

const unsigned refusal_statuses[REFUSALS] = {400, 405, 408, 413, 414, 417, 431, 499, 501, 502, 503, 504, 505, 0};

void histogram_add(struct histogram *histogram, double seconds)
{
    unsigned i = 0;

    while (i < HISTOGRAM_BUCKETS - 1 && seconds > histogram_bounds[i])
        i++;
    histogram->n[i]++;
    histogram->sum += seconds;
}

void counts_request(struct backend_counts *counts, unsigned status, double waited, double answered)
{
    unsigned class = status / 100;

    counts->requests[class < CLASSES ? class : 0]++;
    histogram_add(&counts->wait, waited);
    histogram_add(&counts->answer, answered);
}

void counts_refuse(struct worker_counts *counts, unsigned status)
{
    unsigned i = 0;

    while (i < REFUSALS - 1 && refusal_statuses[i] != status)
        i++;
    counts->refused[i]++;
}
