/* driver.h - takes one message from bytes that come in pieces, as the proxy does, and keeps all that it was found to
 * be.
 *
 * Each piece lies in a heap block of just its size, so that the sanitizer sees a byte read too many. What may never
 * happen, whatever the bytes, ends the program. */
#ifndef TESTS_MESSAGE_DRIVER_H
#define TESTS_MESSAGE_DRIVER_H

#include <stdbool.h>
#include <stddef.h>

#include "examples/lbproxy/message/head.h"
#include "examples/lbproxy/message/message.h"

/** Where the bytes are cut: at `at` (n of them, in rising order), and after each `every` bytes (0: not). */
struct cuts {
    const size_t *at;
    size_t n, every;
};

struct bytes {
    char *at; /* owned; a NUL behind it */
    size_t n;
};

struct outcome {
    enum message_kind kind;
    enum message_step end; /* MORE: the bytes have ended before the head has */
    struct fault fault;
    bool has_head; /* `head` is good, and points into `head_bytes` */
    struct head head;
    struct bytes head_bytes, body, trailer;
    size_t used; /* bytes of the message, when it is whole */
};

/** Takes one message from the first of `n` bytes, which the peer closes after. */
void outcome_take(
    struct outcome *outcome, enum message_kind kind, const char *bytes, size_t n, size_t max, const struct cuts *cuts);

/** Writes all of it but `used` as text, for comparing: *text is the caller's, to be freed. */
void outcome_show(const struct outcome *outcome, struct bytes *text);

/** Writes the message, which is whole, as the proxy passes it on: an answer to a client that speaks HTTP/1.minor. */
void outcome_compose(const struct outcome *outcome, unsigned minor, struct bytes *wire);

/** Whether a message that was composed from another says the same, but for what the proxy adds. */
bool outcome_means_same(const struct outcome *first, unsigned minor, const struct outcome *second);

/** Takes what the proxy has added out of a message that was composed from `from`, so that composing it again adds it
 * again. @return false: something that was to be added is not there. */
bool outcome_strip(struct outcome *outcome, const struct outcome *from);

void outcome_free(struct outcome *outcome);

/** Ends the program when something is not so. */
#define MUST(what)                                                                                                     \
    do {                                                                                                               \
        if (!(what))                                                                                                   \
            must(#what, __FILE__, __LINE__);                                                                           \
    } while (0)
_Noreturn void must(const char *what, const char *file, int line);

#endif
