/* framed_reader.c - see framed_reader.h. */
#include "link/framed_reader.h"

#include <string.h>

#include "linkpool/error.h"

enum {
    FIRST_BODY = 4096,   /* bytes: what a frame that was announced, and does not come, costs at most beyond what came */
    LEAST_DIRECT = 16384 /* bytes missing from which on they are read in place */
};

static int grow(struct framed_reader *reader, uint32_t needed, uint32_t all)
{
    uint32_t size = reader->size > all / 2 ? all : 2 * reader->size;
    unsigned char *body;

    if (needed <= reader->size)
        return 0;
    if (size < FIRST_BODY)
        size = FIRST_BODY;
    if (size < needed)
        size = needed;
    if (size > all)
        size = all;
    if (!(body = reader->env->realloc(reader->env->data, reader->body, reader->size, size)))
        return LINKPOOL_ENOMEM;
    reader->body = body;
    reader->size = size;
    return 0;
}

static void hand_out_kept(struct framed_reader *reader, struct framed_frame *frame)
{
    frame->payload = frame->kept = reader->body;
    frame->kept_size = reader->size;
    reader->body = NULL;
    reader->size = reader->n_body = 0;
    reader->n_head = 0;
}

/* The header is there and fits: the payload, or what there is of it. */
static int take_body(struct framed_reader *reader, const unsigned char **bytes, size_t *n, struct framed_frame *frame)
{
    uint32_t all = frame->head.n, missing = all - reader->n_body;
    uint32_t taken = *n < missing ? (uint32_t)*n : missing;

    if (!reader->n_body && taken == all) {
        frame->payload = *bytes;
        reader->n_head = 0;
    } else {
        if (grow(reader, reader->n_body + taken, all))
            return LINKPOOL_ENOMEM;
        if (taken)
            memcpy(reader->body + reader->n_body, *bytes, taken);
        reader->n_body += taken;
        if (reader->n_body == all)
            hand_out_kept(reader, frame);
    }
    *bytes += taken;
    *n -= taken;
    return taken == missing ? FRAMED_FRAME : FRAMED_MORE;
}

static int take_piece(struct framed_reader *reader, const unsigned char **bytes, size_t *n, struct framed_frame *frame)
{
    uint32_t missing = frame->head.n - reader->n_body, taken = *n < missing ? (uint32_t)*n : missing;

    if (!taken)
        return FRAMED_MORE;
    frame->payload = *bytes;
    frame->n_piece = taken;
    frame->is_last = taken == missing;
    reader->n_body += taken;
    if (frame->is_last) {
        reader->in_pieces = false;
        reader->n_body = 0;
        reader->n_head = 0;
    }
    *bytes += taken;
    *n -= taken;
    return FRAMED_PIECE;
}

int framed__next(struct framed_reader *reader, const unsigned char **bytes, size_t *n, struct framed_frame *frame,
    char *why, size_t why_size)
{
    size_t missing = FRAMED_HEAD - reader->n_head, taken = *n < missing ? *n : missing;
    int error;

    *frame = (struct framed_frame){0};
    if (taken)
        memcpy(reader->head + reader->n_head, *bytes, taken);
    reader->n_head = (uint8_t)(reader->n_head + taken);
    *bytes += taken;
    *n -= taken;
    if (reader->n_head < FRAMED_HEAD)
        return FRAMED_MORE;
    frame->head = framed__get_head(reader->head);
    if (missing && (error = framed__check_head(&frame->head, reader->allowed, reader->max_payload, why, why_size))) {
        reader->n_head = 0; /* it is of nothing */
        return error;
    }
    if (reader->in_pieces)
        return take_piece(reader, bytes, n, frame);
    if (missing && reader->asks && frame->head.type == FRAMED_ANSWER && *n < frame->head.n)
        return FRAMED_BEGUN;
    return take_body(reader, bytes, n, frame);
}

void framed__frame_done(const struct linkpool_env *env, struct framed_frame *frame)
{
    if (frame->kept)
        env->realloc(env->data, frame->kept, frame->kept_size, 0);
    frame->kept = NULL;
}

size_t framed__room(struct framed_reader *reader, unsigned char **at)
{
    uint32_t all = framed__get32(reader->head);

    if (reader->n_head < FRAMED_HEAD || reader->in_pieces || all - reader->n_body < LEAST_DIRECT)
        return 0;
    if (reader->n_body == reader->size && grow(reader, reader->n_body + 1, all))
        return 0;
    *at = reader->body + reader->n_body;
    return reader->size - reader->n_body;
}

void framed__filled(struct framed_reader *reader, size_t n)
{
    reader->n_body += (uint32_t)n;
}

void framed__reader_free(struct framed_reader *reader)
{
    if (reader->body)
        reader->env->realloc(reader->env->data, reader->body, reader->size, 0);
    reader->body = NULL;
    reader->size = reader->n_body = 0;
}
