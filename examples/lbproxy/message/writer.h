/* writer.h - writes a head into memory, piece by piece; what does not fit is left out, and said at the end. */
#ifndef LBPROXY_WRITER_H
#define LBPROXY_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "examples/lbproxy/message/head.h"

struct writer {
    char *begin, *at, *end;
    bool full;
};

static inline struct writer writer_begin(char *out, size_t room)
{
    return (struct writer){out, out, out + room, false};
}

static inline void put(struct writer *writer, const char *at, size_t n)
{
    if ((size_t)(writer->end - writer->at) < n) {
        writer->full = true;
        return;
    }
    memcpy(writer->at, at, n);
    writer->at += n;
}

#define PUT(writer, literal) put(writer, literal, sizeof(literal) - 1)

static inline void put_text(struct writer *writer, struct text text)
{
    put(writer, text.at, text.n);
}

static inline void put_number(struct writer *writer, uint64_t number)
{
    char digits[20], *at = digits + sizeof digits;

    do
        *--at = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    put(writer, at, (size_t)(digits + sizeof digits - at));
}

static inline void put_field(struct writer *writer, struct text name, struct text value)
{
    put_text(writer, name);
    PUT(writer, ": ");
    put_text(writer, value);
    PUT(writer, "\r\n");
}

/** The length of what was written; 0: it has not fit. */
static inline size_t writer_end(const struct writer *writer)
{
    return writer->full ? 0 : (size_t)(writer->at - writer->begin);
}

#endif
