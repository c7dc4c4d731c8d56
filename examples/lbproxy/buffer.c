/* buffer.c - a short list of spare buffers before malloc(). */
#include "examples/lbproxy/buffer.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_SPARE = 16 /* 1 MiB a thread */
};

struct buffer *buffers_take(struct buffers *buffers)
{
    struct buffer *buffer = buffers->spare;

    if (buffer != NULL) {
        buffers->spare = buffer->next;
        buffers->n_spare--;
    } else {
        buffer = malloc(sizeof *buffer);
        if (buffer == NULL)
            return NULL;
    }
    buffers->n_taken++;
    buffer->start = buffer->end = 0;
    return buffer;
}

void buffers_give(struct buffers *buffers, struct buffer *buffer)
{
    if (buffer == NULL)
        return;
    buffers->n_taken--;
    if (buffers->n_spare >= MAX_SPARE) {
        free(buffer);
        return;
    }
    buffer->next = buffers->spare;
    buffers->spare = buffer;
    buffers->n_spare++;
}

void buffers_clear(struct buffers *buffers)
{
    while (buffers->spare != NULL) {
        struct buffer *next = buffers->spare->next;

        free(buffers->spare);
        buffers->spare = next;
    }
    buffers->n_spare = 0;
}

void buffer_add(struct buffer *buffer, const char *bytes, size_t n)
{
    memcpy(buffer->bytes + buffer->end, bytes, n);
    buffer->end += n;
}
