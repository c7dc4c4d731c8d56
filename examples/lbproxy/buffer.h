/* buffer.h - bounded buffers for bytes that could not go on at once.
 *
 * A client has one only while such bytes exist; a few that nobody needs are kept for the next. */
#ifndef LBPROXY_BUFFER_H
#define LBPROXY_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

enum {
    BUFFER_SIZE = 65536
};

struct buffer {
    struct buffer *next; /* among the spare ones */
    size_t start, end;   /* the bytes held */
    char bytes[BUFFER_SIZE];
};

/** A thread's buffers. All zero at first. */
struct buffers {
    struct buffer *spare;
    unsigned n_spare;
    unsigned n_taken;
};

/** Hands out an empty buffer; NULL: out of memory. */
struct buffer *buffers_take(struct buffers *buffers);

/** Takes a buffer back; NULL: nothing happens. */
void buffers_give(struct buffers *buffers, struct buffer *buffer);

/** Frees the spare ones. */
void buffers_clear(struct buffers *buffers);

/** Adds bytes at the end; they must fit (BUFFER_SIZE - end). */
void buffer_add(struct buffer *buffer, const char *bytes, size_t n);

#endif
