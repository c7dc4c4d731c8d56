/* metrics.h - the page for Prometheus, in its text format, version 0.0.4. */
#ifndef LBPROXY_METRICS_H
#define LBPROXY_METRICS_H

#include <stdio.h>

struct crew;
struct report;

/** Writes the figures of all workers together. */
void metrics_write(FILE *page, const struct crew *crew, const struct report *sum);

#endif
