/* access_log.h - a line for each request, for whoever has to find out what happened.
 *
 * Lines are gathered and written together at the end of the loop's turn, whole lines in each write, so that several
 * threads may append to one file. What cannot be written at once (the disk is full, nobody reads the pipe) is dropped
 * and counted: no log stops a proxy, and no half line is left. */
#ifndef LBPROXY_ACCESS_LOG_H
#define LBPROXY_ACCESS_LOG_H

#include <ev.h>
#include <stddef.h>
#include <stdint.h>

struct access_log; /* opaque: from access_log_new() to access_log_free(); one loop and thread */

/** One request, when it is over. Texts are read during access_log_write() only; NULL is written "-". */
struct access_entry {
    const char *client; /* its address, without the port */
    const char *method;
    const char *target; /* path and query */
    size_t target_n;    /* bytes of it; 0: "-" */
    unsigned status;    /* what the client was told; 0: "-" */
    uint64_t bytes;     /* of the answer's body that were sent */
    double waited;      /* seconds in line for a link; negative: "-" */
    double total;       /* seconds from the request's first byte to its end; negative: "-" */
    const char *backend;
    int reused;     /* 1: the last link had served before; 0: it was new; negative: "-" */
    unsigned tries; /* links asked */
    const char *outcome;
};

/**
 * Opens a log: a file, which is made where there is none and else appended to, or "-", the standard output.
 *
 * Make it before the pool of the same loop: what runs at the end of a turn runs in the opposite order.
 *
 * @param loop  borrowed until access_log_free(). The log does not keep ev_run() from returning.
 * @param path  borrowed until access_log_free().
 * @return the log, or NULL with errno (ENXIO: a fifo that nobody reads).
 */
struct access_log *access_log_new(struct ev_loop *loop, const char *path);

/** Writes what is gathered to the old file, and goes on in a new one of that name. @return 0, or errno: then the old
 * one goes on. */
int access_log_reopen(struct access_log *log);

/** Adds a line. A long target is cut, and ends in "..." then. */
void access_log_write(struct access_log *log, const struct access_entry *entry);

/** How many lines were dropped. NULL: 0. */
uint64_t access_log_dropped(const struct access_log *log);

/** Writes what is gathered, and closes it. NULL: nothing happens. */
void access_log_free(struct access_log *log);

#endif
