/* buffer.h - bounded buffers for bytes that could not go on at once.
 *
 * A client has one only while such bytes exist; a few that nobody needs are kept for the next. There are small ones,
 * for the many, and large ones, which take all that was read at once and a head that grew on its way. */
#ifndef LBPROXY_BUFFER_H
#define LBPROXY_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

enum {
    BUFFER_SIZE = 65536, /* what is read at once, at most */
    BUFFER_SMALL = 4000,
    BUFFER_LARGE = BUFFER_SIZE + 8192
};

struct buffer {
    struct buffer *next; /* among the spare ones */
    size_t room;         /* BUFFER_SMALL or BUFFER_LARGE */
    size_t start, end;   /* the bytes held */
    char bytes[];
};

/** A thread's buffers. All zero at first. */
struct buffers {
    struct buffer *small, *large; /* spare */
    unsigned n_small, n_large;
    unsigned n_taken;
};

/** Hands out an empty buffer for `n` bytes, at most BUFFER_LARGE; NULL: out of memory, or n is more. */
struct buffer *buffers_take(struct buffers *buffers, size_t n);

/** Takes a buffer back; NULL: nothing happens. */
void buffers_give(struct buffers *buffers, struct buffer *buffer);

/** Frees the spare ones. */
void buffers_clear(struct buffers *buffers);

/** Adds bytes at the end of *buffer, which may be NULL at first, in a larger one where that must be; an empty one is
 * filled from its start. Returns false when memory is short, or a large one is full: then nothing has changed. */
bool buffers_add(struct buffers *buffers, struct buffer **buffer, const char *bytes, size_t n);

/** Makes room after the bytes held, by moving them to the start or to a large buffer. Returns the room: 0 is none. */
size_t buffers_make_room(struct buffers *buffers, struct buffer **buffer);

/** How many bytes are held; NULL: none. */
size_t buffer_held(const struct buffer *buffer);

#endif
