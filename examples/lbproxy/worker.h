/* worker.h - one thread: a loop, its pool, its listener and its clients.
 *
 * Nothing is shared with other workers. The control thread sends orders (worker_order) and reads the report that a
 * worker writes when ordered to; both go by an ev_async, each in the direction of the loop that must act. */
#ifndef LBPROXY_WORKER_H
#define LBPROXY_WORKER_H

#include <ev.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "examples/lbproxy/buffer.h"
#include "examples/lbproxy/client.h"
#include "examples/lbproxy/clocks.h"
#include "examples/lbproxy/counts.h"
#include "examples/lbproxy/listener.h"
#include "examples/lbproxy/message/head.h"
#include "examples/lbproxy/message/parts.h"
#include "examples/lbproxy/report.h"

struct access_log;
struct options;
struct pool;
struct pool_host;
struct pool_target;

enum worker_order {
    WORKER_REPORT = 1, /* write a report */
    WORKER_DRAIN = 2,  /* accept no more, end when the last client is served or drain_timeout is over */
    WORKER_QUIT = 4,   /* end now */
    WORKER_REOPEN = 8  /* open the access log anew */
};

struct worker {
    const struct options *options;
    struct ev_loop *loop;
    struct pool *pool;
    struct pool_target *target;
    struct listener listener;
    struct clock clocks[CLOCKS]; /* every client is in one of them */
    unsigned n_clients;
    bool draining;
    ev_timer drain_limit;
    struct buffers buffers;
    char scratch[BUFFER_SIZE]; /* for bytes on their way through, one event long */
    struct head head;          /* and for a head, and pieces of a body, in the same way */
    struct parts parts;
    struct worker_counts counts;
    struct backend_counts *backends; /* one each, in the options' order */
    unsigned last_backend;           /* that worker_backend() found */
    struct access_log *log;          /* NULL: none */
    uint64_t random[2];              /* for request ids */
    pthread_t thread;

    ev_async wake;       /* the worker: there are orders */
    atomic_uint orders;  /* enum worker_order */
    ev_async *done_wake; /* the control thread's: a report is there, or the worker is over */
    struct ev_loop *done_loop;
    atomic_bool over;
    pthread_mutex_t lock; /* of report */
    struct report report;
};

/** Makes a worker that will accept from `fd`, and starts its thread; what fails ends the program. `index` is its
 * number. */
struct worker *worker_start(
    const struct options *options, unsigned index, int fd, struct ev_loop *done_loop, ev_async *done_wake);

/** Gives an order, from the control thread. */
void worker_order(struct worker *worker, unsigned orders);

/** Waits for the end of a worker and frees it. */
void worker_join(struct worker *worker);

/** The counts of the backend that a lease got. */
struct backend_counts *worker_backend(struct worker *worker, const struct pool_host *host);

/** A client has gone: while draining the last one takes the worker along. */
void worker_client_gone(struct worker *worker);

/** 64 random bits, for what must be unique and need not be secret. */
uint64_t worker_draw(struct worker *worker);

#endif
