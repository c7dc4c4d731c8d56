/* framed_reader.h - bytes in, frames out. No I/O.
 *
 * What is whole in the caller's bytes is handed out where it lies. Of a frame that has not all come the reader keeps
 * what there is, or hands that out piece by piece; its memory follows what has come, not what was announced. A header
 * is checked before anything of its payload is kept. */
#ifndef LINKPOOL_LINK_FRAMED_READER_H
#define LINKPOOL_LINK_FRAMED_READER_H

#include <stdbool.h>

#include "link/framed_wire.h"
#include "linkpool/driver.h"

struct framed_reader {
    const struct linkpool_env *env;
    unsigned char *body;  /* of the frame that comes: what there is of its payload; NULL: nothing */
    uint32_t size;        /* bytes allocated there, */
    uint32_t n_body;      /* and used */
    uint32_t max_payload; /* see framed__check_head(); may change between frames, */
    unsigned allowed;     /* and so may this */
    unsigned char head[FRAMED_HEAD];
    uint8_t n_head;
    bool asks;      /* FRAMED_BEGUN is told */
    bool in_pieces; /* the payload is handed out as it comes; n_body is what has been */
};

struct framed_frame {
    struct framed_head head;
    const unsigned char *payload; /* head.n bytes, in the caller's or in `kept`; of a piece: n_piece, in the caller's */
    uint32_t n_piece;
    bool is_last;        /* of the pieces */
    unsigned char *kept; /* NULL, or the caller's to give back: framed__frame_done() */
    uint32_t kept_size;
};

enum framed_found {
    FRAMED_MORE, /* all bytes are taken, and no frame is whole */
    FRAMED_FRAME,
    FRAMED_BEGUN, /* an ANSWER, of which not all is there: framed__in_pieces() now, or it is gathered */
    FRAMED_PIECE  /* of a frame that comes in pieces */
};

/**
 * Most frames: nothing is kept, and all of the next one is there. framed__next() takes these too; this is short.
 *
 * @return false: it is not so, or no such frame may stand there.
 */
static inline bool framed__next_whole(
    const struct framed_reader *reader, const unsigned char **bytes, size_t *n, struct framed_frame *frame)
{
    if (reader->n_head || *n < FRAMED_HEAD)
        return false;
    frame->head = framed__get_head(*bytes);
    if (*n - FRAMED_HEAD < frame->head.n || !framed__may_stand(&frame->head, reader->allowed, reader->max_payload))
        return false;
    frame->payload = *bytes + FRAMED_HEAD;
    *bytes += FRAMED_HEAD + frame->head.n;
    *n -= FRAMED_HEAD + frame->head.n;
    return true;
}

/**
 * The next frame of these bytes.
 *
 * @param bytes, n  what came; both move on past what was taken.
 * @param why       gets what is wrong, in words.
 * @return enum framed_found; LINKPOOL_EINVAL: no such frame may stand there; LINKPOOL_ENOMEM. After an error
 *         the reader is of no more use.
 */
int framed__next(struct framed_reader *reader, const unsigned char **bytes, size_t *n, struct framed_frame *frame,
    char *why, size_t why_size);

/** The payload of the frame that has begun is handed out as it comes, and nothing of it is kept. */
static inline void framed__in_pieces(struct framed_reader *reader)
{
    reader->in_pieces = true;
}

/** Gives a frame's memory back. The reader may be gone. */
void framed__frame_done(const struct linkpool_env *env, struct framed_frame *frame);

/**
 * Where more of a large payload may be read to without a copy; framed__filled() says how much was, and framed__next(),
 * with no bytes, whether that made a frame.
 *
 * @return bytes; 0: so much is not missing, or memory ran out: read elsewhere, and framed__next() takes it from there.
 */
size_t framed__room(struct framed_reader *reader, unsigned char **at);
void framed__filled(struct framed_reader *reader, size_t n);

void framed__reader_free(struct framed_reader *reader);

#endif
