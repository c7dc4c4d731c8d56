/* check.h - what must hold of any bytes at all: of each message that they begin with, one behind the other. */
#ifndef TESTS_MESSAGE_CHECK_H
#define TESTS_MESSAGE_CHECK_H

#include <stddef.h>

#include "tests/message/driver.h"

/**
 * Takes the messages in `n` bytes, and ends the program unless, for each of them,
 * - it keeps the rules (oracle.h), when it was found good;
 * - what is found is the same whole, byte by byte, and with `cuts`;
 * - what is composed from a good one is good again, and means the same;
 * - what is composed from that is the same bytes;
 * - the refusal of a bad one is a good answer.
 *
 * @return how many messages were good.
 */
unsigned check_messages(enum message_kind kind, const char *bytes, size_t n, size_t max, const struct cuts *cuts);

/** The same with each cut in two. */
void check_cuts_in_two(enum message_kind kind, const char *bytes, size_t n);

#endif
