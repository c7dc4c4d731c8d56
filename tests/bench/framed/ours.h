/* ours.h - the client that is measured against the bare one. */
#ifndef LINKPOOL_TESTS_BENCH_FRAMED_OURS_H
#define LINKPOOL_TESTS_BENCH_FRAMED_OURS_H

#include "tests/bench/framed/bare.h"

struct ours;
struct ours *ours_new(const char *address, unsigned n_links, unsigned n_callers);
void ours_call(struct ours *ours, unsigned n); /* makes so many calls, and returns when all are over */
void ours_free(struct ours *ours);

double channel_bytes(void); /* of a channel in use, beyond buffers */

#endif
