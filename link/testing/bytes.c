/* bytes.c - a queue of bytes that lies in one piece of memory, and so can be handed out as it is. */
#include <stdlib.h>
#include <string.h>

#include "link/testing/testing_internal.h"
#include "linkpool/error.h"

static int grow(struct testing__bytes *bytes, size_t need)
{
    size_t room = bytes->room ? bytes->room : 256;
    unsigned char *memory;

    while (room < need)
        room *= 2;
    memory = realloc(bytes->memory, room);
    if (!memory)
        return LINKPOOL_ENOMEM;
    bytes->memory = memory;
    bytes->room = room;
    return 0;
}

int testing__bytes_add(struct testing__bytes *bytes, const void *from, size_t n)
{
    if (n == 0)
        return 0;
    if (bytes->from && bytes->from + bytes->n + n > bytes->room) {
        memmove(bytes->memory, bytes->memory + bytes->from, bytes->n);
        bytes->from = 0;
    }
    if (bytes->n + n > bytes->room && grow(bytes, bytes->n + n) != 0)
        return LINKPOOL_ENOMEM;
    memcpy(bytes->memory + bytes->from + bytes->n, from, n);
    bytes->n += n;
    return 0;
}

void testing__bytes_drop(struct testing__bytes *bytes, size_t n)
{
    bytes->from += n;
    bytes->n -= n;
    if (bytes->n == 0)
        bytes->from = 0;
}

void testing__bytes_free(struct testing__bytes *bytes)
{
    free(bytes->memory);
    *bytes = (struct testing__bytes){0};
}
