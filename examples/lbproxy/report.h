/* report.h - a worker's figures, written by the worker and read by the control thread; and those of all together. */
#ifndef LBPROXY_REPORT_H
#define LBPROXY_REPORT_H

#include <linkpool/pool.h>
#include <stdbool.h>

#include "examples/lbproxy/counts.h"

struct crew;
struct worker;

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

/** Whether a backend in this state would be passed over. */
bool report_is_down(enum link_state state);

/**
 * Adds up the workers' last reports: all that is counted, and a state of each backend in which any of them finds it up.
 *
 * @param sum  all zero before; report_clear() frees what it holds. It has no text.
 * @return false: out of memory.
 */
bool report_sum(const struct crew *crew, struct report *sum);

/** Frees what a report holds. */
void report_clear(struct report *report);

#endif
