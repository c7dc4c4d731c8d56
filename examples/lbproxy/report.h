/* report.h - a worker's figures, written by the worker and read by the control thread. */
#ifndef LBPROXY_REPORT_H
#define LBPROXY_REPORT_H

#include <linkpool/pool.h>
#include <stdint.h>

#include "examples/lbproxy/client.h"

struct worker;

struct worker_counts {
    uint64_t accepted;
    uint64_t ended[CLIENT_REASONS];
};

struct backend_counts {
    uint64_t leases;               /* clients that got a link to it */
    unsigned held;                 /* now */
    uint64_t bytes_to, bytes_from; /* passed on to it, and to its clients */
};

struct report {
    unsigned round; /* how many were written before and with this one */
    unsigned clients, buffers;
    struct worker_counts counts;
    struct pool_stats pool;
    struct backend_counts *backends;
    struct pool_host_stats *hosts; /* one a backend */
    char *text;                    /* the rest in words; owned */
};

/** Writes a worker's report anew, in its own thread. Out of memory the text is NULL. */
void report_write(struct worker *worker);

/** Frees what a report holds. */
void report_clear(struct report *report);

#endif
