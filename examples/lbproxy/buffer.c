/* buffer.c - short lists of spare buffers before malloc(). */
#include "examples/lbproxy/buffer.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_SMALL = 256, /* 1 MiB a thread */
    MAX_LARGE = 16   /* and 1 MiB more */
};

static struct buffer *pop(struct buffer **spare, unsigned *n)
{
    struct buffer *buffer = *spare;

    if (buffer != NULL) {
        *spare = buffer->next;
        --*n;
    }
    return buffer;
}

struct buffer *buffers_take(struct buffers *buffers, size_t n)
{
    size_t room = n <= BUFFER_SMALL ? BUFFER_SMALL : BUFFER_LARGE;
    struct buffer *buffer = NULL;

    if (n <= BUFFER_LARGE)
        buffer =
            room == BUFFER_SMALL ? pop(&buffers->small, &buffers->n_small) : pop(&buffers->large, &buffers->n_large);
    if (buffer == NULL && n <= BUFFER_LARGE)
        buffer = malloc(sizeof *buffer + room);
    if (buffer == NULL)
        return NULL;
    buffers->n_taken++;
    buffer->room = room;
    buffer->start = buffer->end = 0;
    return buffer;
}

static bool keep(struct buffer **spare, unsigned *n, unsigned most, struct buffer *buffer)
{
    if (*n >= most)
        return false;
    buffer->next = *spare;
    *spare = buffer;
    ++*n;
    return true;
}

void buffers_give(struct buffers *buffers, struct buffer *buffer)
{
    bool kept;

    if (buffer == NULL)
        return;
    buffers->n_taken--;
    if (buffer->room == BUFFER_SMALL)
        kept = keep(&buffers->small, &buffers->n_small, MAX_SMALL, buffer);
    else
        kept = keep(&buffers->large, &buffers->n_large, MAX_LARGE, buffer);
    if (!kept)
        free(buffer);
}

void buffers_clear(struct buffers *buffers)
{
    struct buffer *buffer;

    while ((buffer = pop(&buffers->small, &buffers->n_small)) != NULL)
        free(buffer);
    while ((buffer = pop(&buffers->large, &buffers->n_large)) != NULL)
        free(buffer);
}

static bool move_to_larger(struct buffers *buffers, struct buffer **buffer, size_t n)
{
    struct buffer *larger = buffers_take(buffers, n);
    size_t held = buffer_held(*buffer);

    if (larger == NULL)
        return false;
    if (held > 0)
        memcpy(larger->bytes, (*buffer)->bytes + (*buffer)->start, held);
    larger->end = held;
    buffers_give(buffers, *buffer);
    *buffer = larger;
    return true;
}

static void move_to_start(struct buffer *buffer)
{
    memmove(buffer->bytes, buffer->bytes + buffer->start, buffer_held(buffer));
    buffer->end -= buffer->start;
    buffer->start = 0;
}

bool buffers_add(struct buffers *buffers, struct buffer **buffer, const char *bytes, size_t n)
{
    size_t held = buffer_held(*buffer);

    if (*buffer == NULL || held + n > (*buffer)->room) {
        if (!move_to_larger(buffers, buffer, held + n))
            return false;
    } else if ((*buffer)->end + n > (*buffer)->room) {
        move_to_start(*buffer);
    }
    memcpy((*buffer)->bytes + (*buffer)->end, bytes, n);
    (*buffer)->end += n;
    return true;
}

/* What may be read into a buffer: the rest of a large one is for what a message grows by on its way out. */
static size_t readable(const struct buffer *buffer)
{
    return buffer->room < BUFFER_SIZE ? buffer->room : BUFFER_SIZE;
}

size_t buffers_make_room(struct buffers *buffers, struct buffer **buffer)
{
    if ((*buffer)->end >= readable(*buffer)) {
        if ((*buffer)->start > 0)
            move_to_start(*buffer);
        else if ((*buffer)->room < BUFFER_LARGE)
            move_to_larger(buffers, buffer, BUFFER_LARGE);
    }
    return readable(*buffer) - (*buffer)->end;
}

size_t buffer_held(const struct buffer *buffer)
{
    return buffer == NULL ? 0 : buffer->end - buffer->start;
}
