/* text.h - texts in bounded buffers. */
#ifndef EXAMPLES_TEXT_H
#define EXAMPLES_TEXT_H

#include <stddef.h>

/**
 * Adds `length` bytes at `at` to the `n` that stand in `to`, as far as its `room` goes; a NUL follows.
 *
 * @return how many stand there now.
 */
size_t text_append(char *to, size_t n, size_t room, const char *at, size_t length);

#endif
