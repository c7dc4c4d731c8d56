/* parts.c - pieces on their way out: what is written, whatever the pieces, and wherever writing stops. */
#include <stdio.h>
#include <string.h>

#include "tests/message/support.h"

static const char text[] = "abcdefghijklmnopqrstuvwxyz";

/* All that is to be written. */
static char *shown(const struct parts *parts)
{
    static char out[8192];
    size_t n = 0;

    for (int i = parts->first; i < parts->last; i++) {
        memcpy(out + n, parts->iov[i].iov_base, parts->iov[i].iov_len);
        n += parts->iov[i].iov_len;
    }
    out[n] = '\0';
    cr_assert(eq(sz, parts_left(parts), n));
    return out;
}

Test(message_parts, pieces_that_touch_become_one)
{
    struct parts parts;

    parts_begin(&parts);
    cr_assert(parts_add(&parts, text, 2));
    cr_assert(parts_add(&parts, text + 2, 3));
    cr_assert(parts_add(&parts, text + 5, 0));
    cr_assert(eq(int, parts.n, 1));
    cr_assert(parts_add(&parts, text + 6, 1));
    cr_assert(parts_add(&parts, text, 1));
    cr_assert(eq(int, parts.n, 3));
    cr_assert(eq(sz, parts.bytes, 7));
    parts_plain(&parts);
    cr_assert(eq(str, shown(&parts), "abcdega"));
}

Test(message_parts, sixty_pieces_fit)
{
    static char bytes[3 * PARTS_MAX + 3];
    struct parts parts;

    memset(bytes, 'x', sizeof bytes);
    parts_begin(&parts);
    for (size_t i = 0; i < PARTS_MAX; i++)
        cr_assert(parts_add(&parts, bytes + 3 * i, 2));
    cr_assert(not(parts_add(&parts, bytes + 3 * PARTS_MAX, 1)));
    cr_assert(parts_add(&parts, bytes + 3 * PARTS_MAX - 1, 1)); /* it touches the last */
    cr_assert(eq(sz, parts.bytes, 2 * PARTS_MAX + 1));
    parts_chunk(&parts, true, "A: b\r\n", 6);
    parts_put_first(&parts, "head", 4);
    cr_assert(le(sz, (size_t)parts.last, sizeof parts.iov / sizeof parts.iov[0]));
    cr_assert(eq(sz, parts_left(&parts), 4 + 4 + 2 * PARTS_MAX + 1 + 2 + 3 + 6 + 2));
}

Test(message_parts, a_piece_is_not_joined_to_what_was_put_first_before)
{
    struct parts parts;

    parts_begin(&parts);
    parts_plain(&parts);
    parts_put_first(&parts, text, 2);
    cr_assert(eq(str, shown(&parts), "ab"));
    parts_begin(&parts);
    cr_assert(parts_add(&parts, text + 2, 2));
    cr_assert(eq(int, parts.n, 1));
    parts_plain(&parts);
    cr_assert(eq(str, shown(&parts), "cd"));
}

static void expect_chunk(size_t pieces, bool last, const char *trailer, const char *expected)
{
    struct parts parts;

    parts_begin(&parts);
    for (size_t i = 0; i < pieces; i++)
        parts_add(&parts, text + 3 * i, 2);
    parts_chunk(&parts, last, trailer, strlen(trailer));
    cr_expect(eq(str, shown(&parts), (char *)expected));
    parts_put_first(&parts, "head ", 0);
    cr_expect(eq(str, shown(&parts), (char *)expected));
    parts_put_first(&parts, "head ", 5);
    cr_expect(zero(int, strncmp(shown(&parts), "head ", 5)));
    cr_expect(eq(str, shown(&parts) + 5, (char *)expected));
}

Test(message_parts, a_chunk_has_its_size_and_its_end)
{
    expect_chunk(0, false, "", "");
    expect_chunk(0, true, "", "0\r\n\r\n");
    expect_chunk(0, true, "A: b\r\n", "0\r\nA: b\r\n\r\n");
    expect_chunk(1, false, "", "2\r\nab\r\n");
    expect_chunk(2, false, "", "4\r\nabde\r\n");
    expect_chunk(8, false, "", "10\r\nabdeghjkmnpqstvw\r\n");
    expect_chunk(2, true, "", "4\r\nabde\r\n0\r\n\r\n");
    expect_chunk(2, true, "A: b\r\n", "4\r\nabde\r\n0\r\nA: b\r\n\r\n");
    expect_chunk(2, false, "A: b\r\n", "4\r\nabde\r\n");
}

Test(message_parts, a_size_line_is_hex_as_sprintf_writes_it)
{
    static char bytes[0x12345];

    for (size_t n = 1; n < sizeof bytes; n = n * 2 + n % 3) {
        char line[24];
        struct parts parts;

        parts_begin(&parts);
        parts_add(&parts, bytes, n);
        parts_chunk(&parts, false, NULL, 0);
        cr_assert(eq(sz, parts.iov[parts.first].iov_len, (size_t)sprintf(line, "%zx\r\n", n)));
        cr_assert(zero(int, memcmp(parts.iov[parts.first].iov_base, line, strlen(line))));
    }
}

static struct parts *some_parts(void)
{
    static struct parts parts;

    parts_begin(&parts);
    parts_add(&parts, text, 2);
    parts_add(&parts, text + 3, 5);
    parts_chunk(&parts, true, "A: b\r\n", 6);
    parts_put_first(&parts, "head", 4);
    return &parts;
}

Test(message_parts, writing_may_stop_after_any_byte_and_go_on)
{
    struct parts *parts = some_parts();
    char all[256];
    size_t n = strlen(strcpy(all, shown(parts)));

    cr_assert(eq(str, all, "head7\r\nabdefgh\r\n0\r\nA: b\r\n\r\n"));
    for (size_t first = 0; first <= n; first++)
        for (size_t second = 0; second <= n - first; second++) {
            parts = some_parts();
            parts_skip(parts, first);
            cr_assert(eq(str, shown(parts), all + first));
            parts_skip(parts, second);
            cr_assert(eq(str, shown(parts), all + first + second));
            cr_assert(eq(int, parts_left(parts) == 0, parts->first == parts->last));
        }
}

Test(message_parts, nothing_is_left_of_none)
{
    struct parts parts;

    parts_begin(&parts);
    cr_assert(zero(sz, parts_left(&parts)));
    parts_plain(&parts);
    cr_assert(zero(sz, parts_left(&parts)));
    parts_skip(&parts, 0);
    parts_put_first(&parts, "head", 4);
    cr_assert(eq(str, shown(&parts), "head"));
    parts_skip(&parts, 4);
    cr_assert(zero(sz, parts_left(&parts)));
}
