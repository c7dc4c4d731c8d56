/* chars.h - which bytes may be where in an HTTP/1 message, and comparing texts without regard to case. */
#ifndef LBPROXY_CHARS_H
#define LBPROXY_CHARS_H

#include <stdbool.h>
#include <stddef.h>

#include "examples/lbproxy/message/head.h"

enum {
    CHAR_TOKEN = 1,  /* names of fields, methods, options of Connection */
    CHAR_TARGET = 2, /* a request's target: '!' to '~', but no '#' */
    CHAR_VALUE = 4,  /* a field's value: all but control bytes, but HTAB */
    CHAR_HOST = 8,   /* a host's name, without the brackets and the colons of IPv6 */
    CHAR_DIGIT = 16,
    CHAR_HEX = 32
};

/** The kinds of each byte. */
extern const unsigned char chars[256];

/** How many bytes from `at` on are of this kind. */
static inline size_t chars_span(const char *at, size_t n, unsigned kind)
{
    size_t i = 0;

    while (i < n && (chars[(unsigned char)at[i]] & kind) != 0)
        i++;
    return i;
}

/** The first byte that may not be in a value; NULL: all may. */
const char *chars_find_control(const char *at, size_t n);

/** The text without blanks and tabs around it. */
struct text text_trim(struct text text);

/** Whether the text is this word, which is in lower case, in any case. */
bool text_is(struct text text, const char *word);

/** Whether the texts are the same but for the case of their letters. */
bool text_same(struct text a, struct text b);

#endif
