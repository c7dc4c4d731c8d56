/* parts.h - pieces of a body on their way out, without copying them: what to write before, between and after. */
#ifndef LBPROXY_PARTS_H
#define LBPROXY_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

enum {
    PARTS_MAX = 60 /* pieces of a body; beside them come what is held, a chunk's size line and its end */
};

struct parts {
    int n;                           /* pieces of the body, in iov[2] and on */
    int first, last;                 /* iov[first] to iov[last - 1] are to be written */
    size_t bytes;                    /* of the body */
    char size_line[20];              /* of the chunk */
    struct iovec iov[PARTS_MAX + 5]; /* [0] is free for what goes before, [1] is the size line */
};

/** Empties it. */
void parts_begin(struct parts *parts);

/** Adds a piece, joined to the one before where it follows it in memory. @return false: it is full. */
bool parts_add(struct parts *parts, const char *at, size_t n);

/** Has nothing to write but what parts_add() added: a body of known length, or until close. */
void parts_plain(struct parts *parts);

/** Makes all pieces one chunk (none where there is no piece), with the last chunk after them when `last`, followed by
 * the trailer fields ("Name: value\r\n" each; n 0: none). */
void parts_chunk(struct parts *parts, bool last, const char *trailer, size_t trailer_n);

/** Puts bytes before the rest; once, and after parts_plain() or parts_chunk(). n 0 changes nothing. */
void parts_put_first(struct parts *parts, const char *at, size_t n);

/** How many bytes are to be written in all. */
size_t parts_left(const struct parts *parts);

/** Takes off the first `n` bytes, which have been written. */
void parts_skip(struct parts *parts, size_t n);

#endif
