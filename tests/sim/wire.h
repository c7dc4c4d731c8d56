/* wire.h - what goes over the wire in a game: frames of 16 bytes that say whose they are.
 *
 * A peer answers each frame with the same one in a small letter. What it says unasked is the single byte UNASKED,
 * which no frame begins with, so that a holder that meets it in the middle of anything goes on. */
#ifndef LINKPOOL_TESTS_SIM_WIRE_H
#define LINKPOOL_TESTS_SIM_WIRE_H

#include <stdint.h>
#include <string.h>

#include "linkpool/protocol.h"

enum {
    FRAME = 16,
    NO_KEY = 0xffff,
    UNASKED = '!',
    ALIVE_ASKED = '?', /* a probe of KIND_PINGED, and */
    ALIVE = '.'        /* its answer */
};

enum protocol_kind {
    KIND_RAW,
    KIND_ONE_WAY,
    KIND_SESSION, /* a handshake, and cleaning at each return */
    KIND_STREAM,  /* several channels a link */
    KIND_PINGED,  /* raw, and asked while nobody has it */
    KIND_FRAMED,  /* the library's own */
    KINDS
};

static inline int kind_is_shared(int kind)
{
    return kind == KIND_STREAM || kind == KIND_FRAMED;
}

/* D: answered. X: answered, and an extra one 'e' at once behind it. O: one way. H, S: the hello of a session and of
 * streams, answered by 'w' whose arg is 0 (no) or the room. R: clean, answered by 'r'. M: of the stream `arg`.
 * K: that stream is over. From the peer: n: the room is `arg`. g: leaving; what is above `arg` was not begun.
 * z: the stream `arg` is over, not begun where `key` is 1. Framed: M and its answer m are a holder's own, C begins the
 * request of a call, of `arg` bytes, and c its answer. */
struct frame {
    uint8_t letter, mark;
    uint16_t key;
    uint32_t serial, arg, sum;
};
_Static_assert(sizeof(struct frame) == FRAME, "a frame");

static inline uint32_t frame_sum(const struct frame *f)
{
    return (f->letter * 31u + f->key) * 0x9E3779B1u ^ f->serial * 0x85EBCA6Bu ^ f->arg * 0xC2B2AE35u;
}
static inline struct frame frame_of(char letter, unsigned key, uint32_t serial, uint32_t arg)
{
    struct frame f = {(uint8_t)letter, 0x5a, (uint16_t)key, serial, arg, 0};

    f.sum = frame_sum(&f);
    return f;
}
static inline struct frame frame_read(const void *bytes)
{
    struct frame f;

    memcpy(&f, bytes, FRAME);
    return f;
}
static inline int frame_is_whole(const struct frame *f)
{
    return f->mark == 0x5a && f->sum == frame_sum(f);
}

struct sim;
/** The protocols of a game; they last as long as it does. */
const struct protocol *sim__protocol(struct sim *s, int kind);

#endif
