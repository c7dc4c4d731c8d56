/* framed_writer.c - the writer of frames alone: in line, in part, taken back. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#include "link/framed_writer.h"
#include "linkpool/error.h"
#include "linkpool/testing.h"

static struct testing *t;
static struct link_blocks blocks;
static struct framed_writer writer;
static unsigned char wire[4096];
static size_t n_wire;
static struct {
    void *owner;
    uint32_t id;
} begun[64];
static unsigned n_begun;

static void begin(void)
{
    t = testing_new(1);
    writer = (struct framed_writer){.env = testing_env(t), .blocks = &blocks};
    n_wire = n_begun = 0;
}

static void end(void)
{
    framed__writer_free(&writer);
    link__blocks_free(&blocks, testing_env(t));
    cr_assert(eq(sz, writer.waiting, 0));
    cr_assert(eq(uint, writer.n_pongs, 0));
    cr_assert(eq(sz, testing_blocks(t), 0));
    cr_assert(eq(uint, testing_misuses(t), 0));
    testing_free(t);
}

static void on_begun(void *data, void *owner, uint32_t id)
{
    cr_assert(eq(ptr, data, &writer));
    begun[n_begun].owner = owner;
    begun[n_begun++].id = id;
}

/* Lets so many bytes go. */
static void go(size_t n)
{
    struct iovec parts[8];
    size_t left = n;

    for (int i = 0, n_parts = framed__gather(&writer, parts, 8); i < n_parts && left; i++) {
        size_t some = parts[i].iov_len < left ? parts[i].iov_len : left;
        memcpy(wire + n_wire, parts[i].iov_base, some);
        n_wire += some;
        left -= some;
    }
    cr_assert(eq(sz, left, 0));
    framed__took(&writer, n, on_begun, &writer);
}

static struct framed_out *put(uint8_t type, uint32_t id, const char *payload, void *owner)
{
    struct framed_out *out = framed__put(&writer,
        &(struct framed_message){.type = type, .id = id, .payload = payload, .n = strlen(payload), .owner = owner});

    cr_assert(ne(ptr, out, NULL));
    return out;
}

static void expect(size_t at, uint8_t type, uint32_t id, const char *payload)
{
    struct framed_head head = framed__get_head(wire + at);

    cr_assert(eq(int, head.type, type));
    cr_assert(eq(u32, head.id, id));
    cr_assert(eq(u32, head.n, strlen(payload)));
    cr_assert(eq(int, head.flags, 0));
    cr_assert(eq(int, head.reserved, 0));
    cr_assert(eq(int, memcmp(wire + at + FRAMED_HEAD, payload, head.n), 0));
}

Test(framed_writer, frames_go_in_order_in_pieces_of_any_size)
{
    for (size_t piece = 1; piece <= 40; piece++) {
        int one, two;
        begin();
        put(FRAMED_REQUEST, 0, "first", &one);
        put(FRAMED_PONG, 0, "12345678", NULL);
        put(FRAMED_REQUEST, 0, "", &two);
        put(FRAMED_CANCEL, 1, "", NULL);
        size_t all = 4 * FRAMED_HEAD + 13;
        cr_assert(eq(sz, writer.waiting, all));
        cr_assert(eq(uint, writer.n_pongs, 1));
        for (size_t gone = 0; gone < all; gone += piece)
            go(all - gone < piece ? all - gone : piece);
        cr_assert(eq(sz, writer.waiting, 0));
        expect(0, FRAMED_REQUEST, 1, "first");
        expect(17, FRAMED_PONG, 0, "12345678");
        expect(37, FRAMED_REQUEST, 2, "");
        expect(49, FRAMED_CANCEL, 1, "");
        cr_assert(eq(uint, n_begun, 2));
        cr_assert(eq(ptr, begun[0].owner, &one));
        cr_assert(eq(u32, begun[0].id, 1));
        cr_assert(eq(ptr, begun[1].owner, &two));
        cr_assert(eq(u32, begun[1].id, 2));
        end();
    }
}

Test(framed_writer, a_request_gets_its_number_with_its_first_byte)
{
    int one, two;

    begin();
    put(FRAMED_REQUEST, 0, "a", &one);
    put(FRAMED_REQUEST, 0, "b", &two);
    go(FRAMED_HEAD);
    cr_assert(eq(uint, n_begun, 1));
    go(1);
    cr_assert(eq(uint, n_begun, 1));
    cr_assert(eq(u32, writer.last_id, 1));
    go(1);
    cr_assert(eq(uint, n_begun, 2));
    cr_assert(eq(u32, writer.last_id, 2));
    end();
}

Test(framed_writer, one_that_is_taken_back_leaves_no_gap)
{
    int owners[3];

    begin();
    put(FRAMED_REQUEST, 0, "a", &owners[0]);
    struct framed_out *b = put(FRAMED_REQUEST, 0, "b", &owners[1]);
    put(FRAMED_REQUEST, 0, "c", &owners[2]);
    go(5); /* all three were gathered, and had numbers in their headers */
    framed__take_back(&writer, b);
    cr_assert(eq(sz, writer.waiting, 2 * 13 - 5));
    go(2 * 13 - 5);
    expect(0, FRAMED_REQUEST, 1, "a");
    expect(13, FRAMED_REQUEST, 2, "c");
    cr_assert(eq(sz, n_wire, 26));
    end();
}

Test(framed_writer, all_of_which_nothing_has_gone_can_be_taken_back)
{
    int owner;

    begin();
    put(FRAMED_REQUEST, 0, "abc", &owner);
    put(FRAMED_PONG, 0, "12345678", NULL);
    put(FRAMED_REQUEST, 0, "d", &owner);
    go(1);
    framed__drop_unbegun(&writer);
    cr_assert(eq(sz, writer.waiting, 14));
    cr_assert(eq(uint, writer.n_pongs, 0));
    go(14);
    expect(0, FRAMED_REQUEST, 1, "abc");
    end();
}

Test(framed_writer, of_what_was_written_at_once_the_rest_is_kept)
{
    for (size_t gone = 1; gone <= 20; gone++) {
        struct framed_message message = {.type = FRAMED_REQUEST, .payload = "12345678", .n = 8};
        unsigned char head[FRAMED_HEAD];
        struct iovec parts[2];
        begin();
        writer.last_id = 6;
        cr_assert(eq(int, framed__direct(&writer, &message, head, parts), 2));
        cr_assert(eq(u32, message.id, 7));
        cr_assert(eq(u32, writer.last_id, 6)); /* nothing has gone yet */
        memcpy(wire, parts[0].iov_base, 12);
        memcpy(wire + 12, parts[1].iov_base, 8);
        n_wire = gone;
        cr_assert(eq(int, framed__sent(&writer, &message, head, gone), 0));
        cr_assert(eq(u32, writer.last_id, 7));
        cr_assert(eq(sz, writer.waiting, 20 - gone));
        memset(wire + gone, 0, 20 - gone);
        go(20 - gone);
        expect(0, FRAMED_REQUEST, 7, "12345678");
        cr_assert(eq(uint, n_begun, 0)); /* it had begun before */
        end();
    }
}

Test(framed_writer, an_empty_frame_is_one_part)
{
    struct framed_message message = {.type = FRAMED_CANCEL, .id = 3};
    unsigned char head[FRAMED_HEAD];
    struct iovec parts[2];

    begin();
    cr_assert(eq(int, framed__direct(&writer, &message, head, parts), 1));
    cr_assert(eq(int, framed__sent(&writer, &message, head, 5), 0));
    cr_assert(eq(sz, writer.waiting, 7));
    cr_assert(eq(u32, writer.last_id, 0));
    end();
}

Test(framed_writer, without_memory_it_says_so)
{
    struct framed_message message = {.type = FRAMED_REQUEST, .payload = "x", .n = 1};
    unsigned char head[FRAMED_HEAD];
    struct iovec parts[2];

    begin();
    testing_fail_allocation(t, 1, true);
    cr_assert(eq(ptr, framed__put(&writer, &message), NULL));
    framed__direct(&writer, &message, head, parts);
    cr_assert(eq(int, framed__sent(&writer, &message, head, 1), LINKPOOL_ENOMEM));
    cr_assert(eq(sz, writer.waiting, 0));
    end();
}

Test(framed_writer, no_more_parts_are_gathered_than_there_is_room_for_and_what_adjoins_needs_none)
{
    static char large[2000];
    struct iovec parts[3];

    begin();
    memset(large, 'l', sizeof large - 1);
    put(FRAMED_REQUEST, 0, large, NULL); /* these lie alone, */
    put(FRAMED_REQUEST, 0, large, NULL);
    put(FRAMED_REQUEST, 0, "a", NULL); /* and these side by side */
    put(FRAMED_REQUEST, 0, "b", NULL);
    put(FRAMED_REQUEST, 0, large, NULL);
    cr_assert(eq(int, framed__gather(&writer, parts, 3), 3));
    cr_assert(eq(sz, parts[0].iov_len, FRAMED_HEAD + sizeof large - 1));
    cr_assert(eq(sz, parts[2].iov_len, 2 * (FRAMED_HEAD + 1)));
    cr_assert(eq(int, framed__gather(&writer, parts, 2), 2));
    end();
}
