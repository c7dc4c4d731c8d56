/* framed_reader.c - the reader of frames alone: bytes in, frames out, memory as they come. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link/framed_reader.h"
#include "linkpool/error.h"
#include "linkpool/testing.h"
#include "tests/fakes/framed_stage.h"

enum {
    ALL = 0x7fe,
    MIB = 1 << 20
};

static struct testing *t;
static struct framed_reader reader;
static char why[96];

static void begin(void)
{
    t = testing_new(1);
    reader = (struct framed_reader){.env = testing_env(t), .max_payload = MIB, .allowed = ALL};
}

static void end(void)
{
    framed__reader_free(&reader);
    cr_assert(eq(sz, testing_blocks(t), 0));
    cr_assert(eq(uint, testing_misuses(t), 0));
    testing_free(t);
}

static int next(const unsigned char **bytes, size_t *n, struct framed_frame *frame)
{
    return framed__next(&reader, bytes, n, frame, why, sizeof why);
}

/* A frame whose payload is framed_fill()'s; the number of its bytes. */
static size_t make(unsigned char *at, uint8_t type, uint32_t id, size_t n)
{
    framed__put_head(at, type, id, n);
    framed_fill(at + FRAMED_HEAD, n);
    return FRAMED_HEAD + n;
}

static void expect(const struct framed_frame *frame, uint8_t type, uint32_t id, size_t n)
{
    unsigned char *payload = malloc(n + 1);

    framed_fill(payload, n);
    cr_assert(eq(int, frame->head.type, type));
    cr_assert(eq(u32, frame->head.id, id));
    cr_assert(eq(u32, frame->head.n, n));
    cr_assert(eq(int, memcmp(frame->payload, payload, n), 0));
    free(payload);
}

Test(framed_reader, frames_that_are_whole_are_handed_out_where_they_lie)
{
    unsigned char bytes[256];
    const unsigned char *at = bytes;
    struct framed_frame frame;
    size_t n;

    begin();
    n = make(bytes, FRAMED_ANSWER, 7, 100);
    n += make(bytes + n, FRAMED_PING, 0, 8);
    n += make(bytes + n, FRAMED_ANSWER, 8, 0);
    cr_assert(eq(int, next(&at, &n, &frame), FRAMED_FRAME));
    expect(&frame, FRAMED_ANSWER, 7, 100);
    cr_assert(eq(ptr, (void *)frame.payload, bytes + FRAMED_HEAD));
    cr_assert(eq(int, next(&at, &n, &frame), FRAMED_FRAME));
    expect(&frame, FRAMED_PING, 0, 8);
    cr_assert(eq(int, next(&at, &n, &frame), FRAMED_FRAME));
    expect(&frame, FRAMED_ANSWER, 8, 0);
    cr_assert(eq(int, next(&at, &n, &frame), FRAMED_MORE));
    cr_assert(eq(u64, testing_allocations(t), 0));
    end();
}

/* Three frames, in pieces of a and then b bytes by turns. */
static void cut(size_t a, size_t b)
{
    static const struct {
        uint8_t type;
        uint32_t id;
        size_t n;
    } frames[] = {{FRAMED_ANSWER, 1, 33}, {FRAMED_LIMIT, 0, 4}, {FRAMED_ANSWER, 2, 0}, {FRAMED_ERROR, 3, 21}};
    unsigned char bytes[256];
    size_t all = 0, found = 0;
    struct framed_frame frame;

    begin();
    for (unsigned i = 0; i < 4; i++)
        all += make(bytes + all, frames[i].type, frames[i].id, frames[i].n);
    for (size_t from = 0, step = a; from < all; from += step, step = step == a ? b : a) {
        unsigned char piece[256]; /* of its own, so that reading past it is seen */
        const unsigned char *at = piece;
        size_t n = all - from < step ? all - from : step;
        memcpy(piece, bytes + from, n);
        while (next(&at, &n, &frame) == FRAMED_FRAME) {
            expect(&frame, frames[found].type, frames[found].id, frames[found].n);
            framed__frame_done(reader.env, &frame);
            found++;
        }
        cr_assert(eq(sz, n, 0));
    }
    cr_assert(eq(sz, found, 4));
    end();
}

Test(framed_reader, a_stream_may_be_cut_anywhere)
{
    for (size_t a = 1; a <= 110; a++)
        for (size_t b = 1; b <= 110; b += 9)
            cut(a, b);
}

Test(framed_reader, what_is_announced_and_does_not_come_costs_little)
{
    unsigned char bytes[FRAMED_HEAD + 10], *room;
    const unsigned char *at = bytes;
    size_t n = sizeof bytes;
    struct framed_frame frame;

    begin();
    size_t before = testing_bytes(t);
    make(bytes, FRAMED_ANSWER, 1, 10);
    framed__put32(bytes, MIB);
    cr_assert(eq(int, next(&at, &n, &frame), FRAMED_MORE));
    cr_assert(le(sz, testing_bytes(t) - before, 4096));
    cr_assert(eq(sz, framed__room(&reader, &room), 4096 - 10));
    cr_assert(le(sz, testing_bytes(t) - before, 4096));
    end();
}

Test(framed_reader, memory_follows_what_has_come)
{
    unsigned char head[FRAMED_HEAD], *room, *payload = malloc(MIB);
    const unsigned char *at = head;
    size_t n = sizeof head, got = 0, reads = 0;
    struct framed_frame frame;

    begin();
    size_t before = testing_bytes(t);
    framed_fill(payload, MIB);
    framed__put_head(head, FRAMED_ANSWER, 9, MIB);
    cr_assert(eq(int, next(&at, &n, &frame), FRAMED_MORE));
    cr_assert(eq(sz, testing_bytes(t), before)); /* a header alone: nothing */
    while (got < MIB) {
        size_t much = framed__room(&reader, &room), some = much > 5000 ? 5000 : much;
        if (!much) { /* the rest is read elsewhere */
            at = payload + got;
            n = MIB - got;
            cr_assert(eq(int, next(&at, &n, &frame), FRAMED_FRAME));
            break;
        }
        memcpy(room, payload + got, some);
        framed__filled(&reader, some);
        got += some;
        reads++;
        n = 0;
        cr_assert(eq(int, next(&at, &n, &frame), FRAMED_MORE));
        cr_assert(le(sz, testing_bytes(t) - before, 2 * got + 4096));
    }
    cr_assert(lt(sz, 200, reads));
    expect(&frame, FRAMED_ANSWER, 9, MIB);
    cr_assert(eq(u32, frame.kept_size, MIB));
    framed__frame_done(reader.env, &frame);
    cr_assert(eq(sz, testing_bytes(t), before));
    free(payload);
    end();
}

Test(framed_reader, a_frame_can_end_where_it_was_read_to)
{
    unsigned char bytes[FRAMED_HEAD + 4095], *room, all[20000];
    const unsigned char *at = bytes;
    size_t n = sizeof bytes, got = 4095;
    struct framed_frame frame;

    begin();
    framed_fill(all, sizeof all);
    make(bytes, FRAMED_ANSWER, 1, 4095);
    framed__put32(bytes, sizeof all + 1000);
    cr_assert(eq(int, next(&at, &n, &frame), FRAMED_MORE));
    n = framed__room(&reader, &room);
    cr_assert(eq(sz, n, 1)); /* 4096 are there */
    *room = all[got++];
    framed__filled(&reader, 1);
    n = framed__room(&reader, &room);
    cr_assert(eq(sz, n, 4096));
    memcpy(room, all + got, n);
    framed__filled(&reader, n);
    got += n;
    cr_assert(eq(sz, framed__room(&reader, &room), 0)); /* not much is missing */
    end();
}

Test(framed_reader, a_kept_frame_outlives_its_reader)
{
    unsigned char bytes[64];
    const unsigned char *at = bytes;
    struct framed_frame frame;
    size_t all, n;

    begin();
    all = make(bytes, FRAMED_ANSWER, 1, 40);
    n = 20;
    cr_assert(eq(int, next(&at, &n, &frame), FRAMED_MORE));
    n = all - 20;
    cr_assert(eq(int, next(&at, &n, &frame), FRAMED_FRAME));
    framed__reader_free(&reader);
    cr_assert(eq(u32, frame.kept_size, 40)); /* no more than it needs */
    expect(&frame, FRAMED_ANSWER, 1, 40);
    framed__frame_done(reader.env, &frame);
    end();
}

Test(framed_reader, without_memory_it_says_so)
{
    unsigned char bytes[FRAMED_HEAD + 10], *room;
    const unsigned char *at = bytes;
    size_t n = sizeof bytes;
    struct framed_frame frame;

    begin();
    make(bytes, FRAMED_ANSWER, 1, 10);
    framed__put32(bytes, MIB);
    testing_fail_allocation(t, 1, false);
    cr_assert(eq(int, next(&at, &n, &frame), LINKPOOL_ENOMEM));
    end();
    begin();
    at = bytes;
    n = FRAMED_HEAD;
    cr_assert(eq(int, next(&at, &n, &frame), FRAMED_MORE));
    testing_fail_allocation(t, 1, false);
    cr_assert(eq(sz, framed__room(&reader, &room), 0));
    cr_assert(eq(sz, framed__room(&reader, &room), 4096)); /* the next time there is some */
    end();
}

/* ---- headers ---- */

static const struct {
    uint32_t n;
    uint8_t type, flags;
    uint16_t reserved;
    uint32_t id;
    const char *why; /* NULL: it may stand there */
} heads[] = {
    {8, FRAMED_HELLO, 0, 0, 0, NULL},
    {8 + 4096, FRAMED_HELLO, 0, 0, 0, NULL},
    {7, FRAMED_HELLO, 0, 0, 0, "HELLO of 7 bytes; it is from 8 to 4104"},
    {8 + 4097, FRAMED_HELLO, 0, 0, 0, "HELLO of 4105 bytes; it is from 8 to 4104"},
    {12, FRAMED_HELLO_ACK, 0, 0, 0, NULL},
    {11, FRAMED_HELLO_ACK, 0, 0, 0, "HELLO_ACK of 11 bytes; it is from 12 to 12"},
    {13, FRAMED_HELLO_ACK, 0, 0, 0, "HELLO_ACK of 13 bytes; it is from 12 to 12"},
    {4, FRAMED_LIMIT, 0, 0, 0, NULL},
    {3, FRAMED_LIMIT, 0, 0, 0, "LIMIT of 3 bytes; it is from 4 to 4"},
    {5, FRAMED_LIMIT, 0, 0, 0, "LIMIT of 5 bytes; it is from 4 to 4"},
    {0, FRAMED_REQUEST, 0, 0, 1, NULL},
    {MIB, FRAMED_REQUEST, 0, 0, FRAMED_MAX_ID, NULL},
    {MIB + 1, FRAMED_REQUEST, 0, 0, 1, "REQUEST of 1048577 bytes; it is from 0 to 1048576"},
    {UINT32_MAX, FRAMED_ANSWER, 0, 0, 1, "ANSWER of 4294967295 bytes; it is from 0 to 1048576"},
    {0, FRAMED_ANSWER, 0, 0, 0, "ANSWER with the id 0"},
    {0, FRAMED_ANSWER, 0, 0, FRAMED_MAX_ID + 1u, "ANSWER with the id 2147483648"},
    {4, FRAMED_ERROR, 0, 0, 1, NULL},
    {4 + 1024, FRAMED_ERROR, 0, 0, 1, NULL},
    {3, FRAMED_ERROR, 0, 0, 1, "ERROR of 3 bytes; it is from 4 to 1028"},
    {4 + 1025, FRAMED_ERROR, 0, 0, 1, "ERROR of 1029 bytes; it is from 4 to 1028"},
    {4, FRAMED_ERROR, 0, 0, 0, "ERROR with the id 0"},
    {0, FRAMED_CANCEL, 0, 0, 1, NULL},
    {1, FRAMED_CANCEL, 0, 0, 1, "CANCEL of 1 bytes; it is from 0 to 0"},
    {8, FRAMED_PING, 0, 0, 0, NULL},
    {9, FRAMED_PING, 0, 0, 0, "PING of 9 bytes; it is from 8 to 8"},
    {8, FRAMED_PING, 0, 0, 1, "PING with the id 1"},
    {8, FRAMED_PONG, 0, 0, 0, NULL},
    {7, FRAMED_PONG, 0, 0, 0, "PONG of 7 bytes; it is from 8 to 8"},
    {8 + 1024, FRAMED_GOAWAY, 0, 0, 0, NULL},
    {7, FRAMED_GOAWAY, 0, 0, 0, "GOAWAY of 7 bytes; it is from 8 to 1032"},
    {8 + 1025, FRAMED_GOAWAY, 0, 0, 0, "GOAWAY of 1033 bytes; it is from 8 to 1032"},
    {0, 0, 0, 0, 0, "a frame of unknown type 0"},
    {0, FRAMED_TYPES, 0, 0, 0, "a frame of unknown type 11"},
    {0, 255, 0, 0, 0, "a frame of unknown type 255"},
    {0, FRAMED_ANSWER, 1, 0, 1, "ANSWER with unknown flags 0x01"},
    {0, FRAMED_ANSWER, 128, 0, 1, "ANSWER with unknown flags 0x80"},
    {0, FRAMED_ANSWER, 0, 1, 1, "ANSWER with reserved bits 0x0001"},
    {0, FRAMED_ANSWER, 0, 0x8000, 1, "ANSWER with reserved bits 0x8000"},
};

Test(framed_reader, a_header_is_checked_before_anything_of_its_payload_is_kept)
{
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        unsigned char head[FRAMED_HEAD];
        const unsigned char *at = head;
        size_t n = sizeof head;
        struct framed_frame frame;
        begin();
        framed__put_head(head, heads[i].type, heads[i].id, heads[i].n);
        head[5] = heads[i].flags;
        head[6] = (unsigned char)(heads[i].reserved >> 8);
        head[7] = (unsigned char)heads[i].reserved;
        int found = next(&at, &n, &frame);
        if (heads[i].why) {
            cr_assert(eq(int, found, LINKPOOL_EINVAL));
            cr_assert(eq(str, why, (char *)heads[i].why));
        } else {
            cr_assert(eq(int, found, heads[i].n ? FRAMED_MORE : FRAMED_FRAME));
        }
        cr_assert(eq(u64, testing_allocations(t), 0));
        end();
    }
}

Test(framed_reader, only_types_that_are_allowed_come_through)
{
    unsigned char bytes[64];
    struct framed_frame frame;

    for (uint8_t type = FRAMED_HELLO; type < FRAMED_TYPES; type++) {
        static const char *const names[] = {
            "", "HELLO", "HELLO_ACK", "LIMIT", "REQUEST", "ANSWER", "ERROR", "CANCEL", "PING", "PONG", "GOAWAY"};
        const unsigned char *at = bytes;
        size_t n = FRAMED_HEAD;
        char text[64];
        begin();
        reader.allowed &= ~FRAMED_BIT(type);
        make(bytes, type, 0, 8);
        snprintf(text, sizeof text, "%s out of place", names[type]);
        cr_assert(eq(int, next(&at, &n, &frame), LINKPOOL_EINVAL));
        cr_assert(eq(str, why, text));
        end();
    }
}
