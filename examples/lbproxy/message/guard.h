/* guard.h - what frames a chunked body, byte by byte, before llhttp sees it: sizes, extensions, line ends, trailers.
 *
 * Parsers differ in what they let pass there, and a proxy and its backend must never differ. */
#ifndef LBPROXY_GUARD_H
#define LBPROXY_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    GUARD_MAX_DIGITS = 16,     /* of a chunk's size */
    GUARD_MAX_EXTENSION = 256, /* bytes, of one chunk */
    GUARD_MAX_TRAILER = 8192   /* bytes of all trailer fields, each written as "Name: value\r\n" */
};

/** What is expected next. */
enum guard_at {
    GUARD_OFF, /* the body is not chunked */
    GUARD_SIZE,
    GUARD_EXTENSION, /* from its ';' on */
    GUARD_SIZE_CR,
    GUARD_SIZE_LF,
    GUARD_DATA, /* `size` bytes of the body, which are not looked at */
    GUARD_DATA_CR,
    GUARD_DATA_LF,
    GUARD_TRAILER, /* the start of a trailer line */
    GUARD_TRAILER_NAME,
    GUARD_TRAILER_VALUE,
    GUARD_TRAILER_LF,
    GUARD_END_LF,
    GUARD_END
};

struct guard {
    enum guard_at at;
    unsigned count; /* of digits, or of bytes of the extension */
    uint64_t size;  /* of the chunk; in GUARD_DATA what is left of it */
    size_t trailer; /* bytes of the trailer fields */
};

void guard_begin(struct guard *guard, bool chunked);

/**
 * Looks at bytes of framing, up to where they change their kind: before an extension, after it, before bytes of the
 * body, or at the end. Which kind these are is in `at` before the call.
 *
 * @param looked  gets how many bytes were good.
 * @return NULL, or what is wrong with the byte after them.
 */
const char *guard_look(struct guard *guard, const char *bytes, size_t n, size_t *looked);

/** Counts off bytes of the body, at most `size`. */
void guard_data(struct guard *guard, size_t n);

#endif
