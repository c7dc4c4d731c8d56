/* counts.h - what a worker counts. Counters never fall; each is written by its own worker alone. */
#ifndef LBPROXY_COUNTS_H
#define LBPROXY_COUNTS_H

#include <linkpool/link.h>
#include <stdint.h>

#include "examples/lbproxy/client.h"

enum {
    CLASSES = 6,            /* of an answer's status: [2] is 2xx; [0] is any that has none */
    HISTOGRAM_BUCKETS = 17, /* 16 with a bound, and one for all above */
    REFUSALS = 14           /* statuses of answers of our own, and one for any other */
};

/** Upper bounds of the buckets, in seconds; each is of its bucket still. */
extern const double histogram_bounds[HISTOGRAM_BUCKETS - 1];

/** The statuses that are counted one by one; the last is 0: any other. */
extern const unsigned refusal_statuses[REFUSALS];

struct histogram {
    uint64_t n[HISTOGRAM_BUCKETS]; /* in this bucket alone */
    double sum;                    /* seconds */
};

struct worker_counts {
    uint64_t accepted;
    uint64_t ended[CLIENT_REASONS];
    uint64_t requests;          /* that have ended, however: those refused and those of clients that went away too */
    uint64_t no_backend;        /* of them: those that a backend was looked for and not found */
    uint64_t refused[REFUSALS]; /* answers of our own, as in refusal_statuses */
    uint64_t log_dropped;       /* lines of the access log; filled in when reported */
};

struct backend_counts {
    uint64_t leases;               /* clients, or requests, that got a link to it */
    unsigned held;                 /* now */
    uint64_t bytes_to, bytes_from; /* passed on to it, and to its clients */
    uint64_t requests[CLASSES];    /* that it has answered, by class */
    uint64_t retries;              /* requests tried once more after a link to it broke */
    uint64_t ends[LINK_REASONS];   /* of links to it */
    struct histogram wait, answer; /* seconds in line for a link, and from the request to the answer's end */
};

/** Adds a time, in seconds. */
void histogram_add(struct histogram *histogram, double seconds);

/** A request was answered by a backend, which it `waited` for, and which `answered` it, in so many seconds. */
void counts_request(struct backend_counts *counts, unsigned status, double waited, double answered);

/** A client was told an answer of our own. */
void counts_refuse(struct worker_counts *counts, unsigned status);

#endif
