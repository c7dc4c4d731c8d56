/* support.h - what the unit tests of messages share: each message is taken under every split before it is looked at. */
#ifndef TESTS_MESSAGE_SUPPORT_H
#define TESTS_MESSAGE_SUPPORT_H

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "tests/message/driver.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/** A message in a table, NULs within it too, and what it is found to be: a status of 0 is a good one. */
struct sample {
    const char *bytes;
    size_t n;
    unsigned status;
    const char *fault;
};

#define SAMPLE(literal) (literal), sizeof(literal) - 1

/** A request with these lines after its Host, up to the blank line. */
#define WITH(lines) SAMPLE("POST / HTTP/1.1\r\nHost: a\r\n" lines "\r\n")

/** A chunked request with this body. */
#define CHUNKED(body) SAMPLE("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" body)

/** An answer with these lines. */
#define ANSWER(status, lines) SAMPLE("HTTP/1.1 " status "\r\n" lines "\r\n")

/** Takes a message whole, and checks that it is the same under every split in two and byte by byte. The outcome is
 * valid until the next call. */
struct outcome *take(enum message_kind kind, const char *bytes, size_t n);

/** Each of them is found to be what the table says; good ones may be composed, and are a fixed point then. */
void expect_samples(enum message_kind kind, const struct sample *samples, size_t n);

/** The text of a part of a head, for comparing; valid until the fourth call after. */
char *text_of(struct text text);

/** What is composed from a good message, with terms of the tests (driver.c); valid until the next call. */
char *composed(enum message_kind kind, const char *bytes, size_t n, unsigned minor);

#endif
