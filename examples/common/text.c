/* text.c - what does not fit is cut off. */
#include "examples/common/text.h"

#include <string.h>

size_t text_append(char *to, size_t n, size_t room, const char *at, size_t length)
{
    size_t part = length < room - 1 - n ? length : room - 1 - n;

    memcpy(to + n, at, part);
    to[n + part] = '\0';
    return n + part;
}
