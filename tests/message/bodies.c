/* bodies.c - chunked bodies and their trailers, good and bad, and bodies in more pieces than fit at once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/message/support.h"

#define EXPECT(samples) expect_samples(MESSAGE_REQUEST, samples, COUNT(samples))
#define END             "0\r\n\r\n"

#define EXTENSION_16  ";234567890abcdef"
#define EXTENSION_64  EXTENSION_16 EXTENSION_16 EXTENSION_16 EXTENSION_16
#define EXTENSION_256 EXTENSION_64 EXTENSION_64 EXTENSION_64 EXTENSION_64

Test(message_body, a_chunk_s_size_is_hex_digits_alone)
{
    static const struct sample samples[] = {
        {CHUNKED("1\r\na\r\n" END), 0, NULL},
        {CHUNKED("a\r\n0123456789\r\nA\r\n0123456789\r\n" END), 0, NULL},
        {CHUNKED("0000000000000001\r\na\r\n" END), 0, NULL},
        {CHUNKED("0000000000000000\r\n\r\n"), 0, NULL},
        {CHUNKED("00000000000000001\r\na\r\n" END), 400, "a chunk's size of more than 16 digits"},
        {CHUNKED("10000000000000000\r\na\r\n" END), 400, "a chunk's size of more than 16 digits"},
        {CHUNKED("ffffffffffffffff\r\na"), 400, "the peer closed before the message's end"},
        {CHUNKED("\r\na\r\n" END), 400, "a chunk's size does not begin with a hex digit"},
        {CHUNKED(";a\r\na\r\n" END), 400, "a chunk's size does not begin with a hex digit"},
        {CHUNKED("+1\r\na\r\n" END), 400, "a chunk's size does not begin with a hex digit"},
        {CHUNKED("-1\r\na\r\n" END), 400, "a chunk's size does not begin with a hex digit"},
        {CHUNKED(" 1\r\na\r\n" END), 400, "a chunk's size does not begin with a hex digit"},
        {CHUNKED("g\r\na\r\n" END), 400, "a chunk's size does not begin with a hex digit"},
        {CHUNKED("0x1\r\na\r\n" END), 400, "a byte that may not be in a chunk's size"},
        {CHUNKED("1 \r\na\r\n" END), 400, "a byte that may not be in a chunk's size"},
        {CHUNKED("1\t\r\na\r\n" END), 400, "a byte that may not be in a chunk's size"},
        {CHUNKED("1 ;a\r\na\r\n" END), 400, "a byte that may not be in a chunk's size"},
        {CHUNKED("1_0\r\na\r\n" END), 400, "a byte that may not be in a chunk's size"},
        {CHUNKED("1\0\r\na\r\n" END), 400, "a byte that may not be in a chunk's size"},
        {CHUNKED("1:\r\na\r\n" END), 400, "a byte that may not be in a chunk's size"},
        {CHUNKED("\0\r\na\r\n" END), 400, "a chunk's size does not begin with a hex digit"},
    };

    EXPECT(samples);
}

Test(message_body, each_hex_digit_counts_as_what_it_is)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    static char request[512];

    for (size_t i = 0; i < sizeof digits - 1; i++) {
        const struct outcome *outcome;
        char digit[] = {'1', digits[i], '\0'};
        int n = (int)strtol(digit, NULL, 16);

        sprintf(
            request, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n%s\r\n%0*d\r\n" END, digit, n, 0);
        outcome = take(MESSAGE_REQUEST, request, strlen(request));
        cr_assert(eq(int, outcome->end, MESSAGE_WHOLE), "%s", outcome->fault.text);
        cr_assert(eq(sz, outcome->body.n, (size_t)n));
    }
}

Test(message_body, lines_of_framing_end_in_CR_LF)
{
    static const struct sample samples[] = {
        {CHUNKED("1\na\r\n" END), 400, "a byte that may not be in a chunk's size"},
        {CHUNKED("1\r\r\na\r\n" END), 400, "a bare CR after a chunk's size"},
        {CHUNKED("1\ra\r\n" END), 400, "a bare CR after a chunk's size"},
        {CHUNKED("1\r\na\n" END), 400, "a chunk is longer than its size"},
        {CHUNKED("1\r\nab\r\n" END), 400, "a chunk is longer than its size"},
        {CHUNKED("1\r\na\r" END), 400, "a bare CR after a chunk"},
        {CHUNKED("2\r\na\r\n" END), 400, "a chunk is longer than its size"},
        {CHUNKED("0\n\r\n"), 400, "a byte that may not be in a chunk's size"},
        {CHUNKED("0\r\n\n"), 400, "a trailer line does not begin with a field's name"},
        {CHUNKED("0\r\n\ra"), 400, "a bare CR after the trailer"},
        {CHUNKED("0\r\nA: b\n\r\n"), 400, "a control byte in a trailer field"},
        {CHUNKED("0\r\nA: b\rc\r\n\r\n"), 400, "a bare CR in a trailer field"},
        {CHUNKED("0\r\nA: b\r\r\n\r\n"), 400, "a bare CR in a trailer field"},
    };

    EXPECT(samples);
}

Test(message_body, an_extension_is_bounded_and_dropped)
{
    static const struct sample samples[] = {
        {CHUNKED("1;\r\na\r\n" END), 0, NULL},
        {CHUNKED("1;a\r\na\r\n0;b\r\n\r\n"), 0, NULL},
        {CHUNKED("1;a=b;c=\"d e\"; f = g ;~\r\na\r\n" END), 0, NULL},
        {CHUNKED("1;" EXTENSION_256 "\r\na\r\n" END), 0, NULL},
        {CHUNKED("1;" EXTENSION_256 "x\r\na\r\n" END), 400, "a chunk's extension is too long"},
        {CHUNKED("1;a\tb\r\na\r\n" END), 400, "a byte that may not be in a chunk's extension"},
        {CHUNKED("1;a\nb\r\na\r\n" END), 400, "a byte that may not be in a chunk's extension"},
        {CHUNKED("1;a\n\r\na\r\n" END), 400, "a byte that may not be in a chunk's extension"},
        {CHUNKED("1;a\0\r\na\r\n" END), 400, "a byte that may not be in a chunk's extension"},
        {CHUNKED("1;a\177\r\na\r\n" END), 400, "a byte that may not be in a chunk's extension"},
        {CHUNKED("1;a\200\r\na\r\n" END), 400, "a byte that may not be in a chunk's extension"},
        {CHUNKED("1;a\rb\r\na\r\n" END), 400, "a bare CR after a chunk's size"},
    };

    EXPECT(samples);
    cr_assert(eq(str, take(MESSAGE_REQUEST, CHUNKED("2;5\r\nab\r\n1;\r\nc\r\n0;5\r\n\r\n"))->body.at, "abc"));
}

static void expect_trailer(const char *bytes, size_t n, const char *trailer)
{
    const struct outcome *outcome = take(MESSAGE_REQUEST, bytes, n);

    cr_assert(eq(int, outcome->end, MESSAGE_WHOLE), "%s: %s", bytes, outcome->fault.text);
    cr_expect(eq(str, outcome->trailer.at, (char *)trailer), "%s", bytes);
    cr_expect(eq(sz, outcome->used, n), "%s", bytes);
}

Test(message_body, trailer_fields_go_on_but_those_of_the_proxy)
{
    expect_trailer(CHUNKED(END), "");
    expect_trailer(CHUNKED("0\r\nA: b\r\n\r\n"), "A: b\r\n");
    expect_trailer(
        CHUNKED("1\r\na\r\n0;x\r\nA:b\r\nC:\t d e \t\r\nF:\r\nG: \r\n\r\n"), "A: b\r\nC: d e\r\nF: \r\nG: \r\n");
    expect_trailer(
        CHUNKED("0\r\nVia: a\r\nA: 1\r\nX-Forwarded-For: a\r\nX-Forwarded-Proto: a\r\nX-Forwarded-Host: a\r\n"
                "B: 2\r\nX-Request-Id: a\r\nC_D: a\r\nX-Forwarded-: a\r\nX-Forwarded: 3\r\n\r\n"),
        "A: 1\r\nB: 2\r\nX-Forwarded-: a\r\nX-Forwarded: 3\r\n");
    expect_trailer(
        CHUNKED("0\r\nTrailer: a\r\nExpect: b\r\nA: \200\r\n\r\n"), "Trailer: a\r\nExpect: b\r\nA: \200\r\n");
    cr_assert(eq(str,
        take(MESSAGE_ANSWER,
            SAMPLE("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA_B: c\r\nVia: d\r\n\r\n"))
            ->trailer.at,
        "A_B: c\r\n"));
}

#define NAMED(connection, trailer)                                                                                     \
    SAMPLE("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: " connection                       \
           "\r\n\r\n0\r\n" trailer "\r\n")

Test(message_body, a_trailer_is_left_out_where_Connection_names_fields)
{
    expect_trailer(NAMED("close", "A: b\r\n"), "A: b\r\n");
    expect_trailer(NAMED("keep-alive, Upgrade, ", "A: b\r\n"), "A: b\r\n");
    expect_trailer(NAMED("a", "A: b\r\n"), "");
    expect_trailer(NAMED("close, c", "A: b\r\n"), "");
}

Test(message_body, a_trailer_has_no_field_that_frames_routes_or_is_for_one_connection)
{
    static const struct sample samples[] = {
        {CHUNKED("0\r\nContent-Length: 1\r\n\r\n"), 400, "a field that may not be in a trailer"},
        {CHUNKED("0\r\nContent-Length: x\r\n\r\n"), 400, "a field that may not be in a trailer"},
        {CHUNKED("0\r\nTransfer-Encoding: x\r\n\r\n"), 400, "a field that may not be in a trailer"},
        {CHUNKED("0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400, "a field that may not be in a trailer"},
        {CHUNKED("0\r\nHost: a\r\n\r\n"), 400, "a field that may not be in a trailer"},
        {CHUNKED("0\r\nHOST:\r\n\r\n"), 400, "a field that may not be in a trailer"},
        {CHUNKED("0\r\nA: b\r\nConnection: close\r\n\r\n"), 400, "a field that may not be in a trailer"},
        {CHUNKED("0\r\nClose: a\r\n\r\n"), 400, "a field that may not be in a trailer"},
        {CHUNKED("0\r\nKeep-Alive: a\r\n\r\n"), 400, "a field that may not be in a trailer"},
        {CHUNKED("0\r\nTE: a\r\n\r\n"), 400, "a field that may not be in a trailer"},
        {CHUNKED("0\r\nUpgrade: a\r\n\r\n"), 400, "a field that may not be in a trailer"},
        {CHUNKED("0\r\nProxy-Connection: a\r\n\r\n"), 400, "a field that may not be in a trailer"},
        {CHUNKED("0\r\nProxy-Authenticate: a\r\n\r\n"), 400, "a field that may not be in a trailer"},
        {CHUNKED("0\r\nProxy-Authorization: a\r\n\r\n"), 400, "a field that may not be in a trailer"},
        {CHUNKED("0\r\nHTTP2-Settings: a\r\n\r\n"), 400, "a field that may not be in a trailer"},
    };

    EXPECT(samples);
}

Test(message_body, trailer_lines_follow_the_rules_of_a_head_s)
{
    static const struct sample samples[] = {
        {CHUNKED("0\r\n A: b\r\n\r\n"), 400, "a trailer line does not begin with a field's name"},
        {CHUNKED("0\r\nA: b\r\n c\r\n\r\n"), 400, "a trailer line does not begin with a field's name"},
        {CHUNKED("0\r\nA: b\r\n\tc\r\n\r\n"), 400, "a trailer line does not begin with a field's name"},
        {CHUNKED("0\r\n: b\r\n\r\n"), 400, "a trailer line does not begin with a field's name"},
        {CHUNKED("0\r\nA : b\r\n\r\n"), 400, "a byte that may not be in a trailer field's name"},
        {CHUNKED("0\r\nA\r\n\r\n"), 400, "a byte that may not be in a trailer field's name"},
        {CHUNKED("0\r\nA(: b\r\n\r\n"), 400, "a byte that may not be in a trailer field's name"},
        {CHUNKED("0\r\nA: b\0\r\n\r\n"), 400, "a control byte in a trailer field"},
        {CHUNKED("0\r\nA: b\177\r\n\r\n"), 400, "a control byte in a trailer field"},
    };

    EXPECT(samples);
}

static void expect_trailer_bound(unsigned fields, size_t value, bool good)
{
    static char request[16384];
    size_t n = (size_t)sprintf(request, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n");
    struct outcome outcome;

    for (unsigned i = 0; i < fields; i++)
        n += (size_t)sprintf(request + n, "A:\r\n");
    n += (size_t)sprintf(request + n, "B:%0*d\r\n\r\n", (int)value, 0);
    for (size_t every = 0; every < 3; every++) {
        outcome_take(&outcome, MESSAGE_REQUEST, request, n, 65536, &(struct cuts){.every = every * 1001});
        cr_assert(eq(int, outcome.end, good ? MESSAGE_WHOLE : MESSAGE_BAD), "%u fields, then %zu", fields, value);
        cr_assert(eq(sz, outcome.trailer.n, good ? fields * 5 + value + 5 : 0));
        cr_assert(good || strcmp(outcome.fault.text, "the trailer is too large") == 0);
        outcome_free(&outcome);
    }
}

Test(message_body, a_trailer_as_it_goes_out_has_8192_bytes_at_most)
{
    expect_trailer_bound(0, 8187, true);
    expect_trailer_bound(0, 8188, false);
    expect_trailer_bound(0, 9000, false);
    expect_trailer_bound(1637, 2, true);
    expect_trailer_bound(1637, 3, false);
    expect_trailer_bound(2000, 1, false);
}

Test(message_body, more_chunks_than_parts_are_taken_in_steps)
{
    static char request[4096];

    for (unsigned chunks = 58; chunks <= 183; chunks++) {
        size_t head_n, n = (size_t)sprintf(request, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        struct outcome outcome;

        head_n = n;
        for (unsigned i = 0; i < chunks; i++)
            n += (size_t)sprintf(request + n, "2;x\r\n%02u\r\n", i % 100);
        n += (size_t)sprintf(request + n, END "GET");
        outcome_take(&outcome, MESSAGE_REQUEST, request, n, 65536, &(struct cuts){0});
        cr_assert(eq(int, outcome.end, MESSAGE_WHOLE));
        cr_assert(eq(sz, outcome.used, n - 3));
        cr_assert(eq(sz, outcome.body.n, 2 * chunks));
        for (unsigned i = 0; i < chunks; i++)
            cr_assert(outcome.body.at[2 * i] == (char)('0' + i % 100 / 10));
        cr_assert(lt(sz, head_n, outcome.used));
        outcome_free(&outcome);
    }
}

Test(message_body, parts_that_are_full_stop_before_the_next_piece)
{
    const char *head_bytes = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    static char body[2048];
    struct message message;
    struct parts parts;
    struct head head;
    size_t head_n, used;

    for (unsigned i = 0; i < 61; i++)
        strcat(body, "1\r\na\r\n");
    strcat(body, END);
    message_begin(&message, MESSAGE_ANSWER);
    cr_assert(eq(int, message_scan(&message, head_bytes, strlen(head_bytes), 65536, &head_n), MESSAGE_WHOLE));
    cr_assert(eq(int, message_head(&message, head_bytes, head_n, &head), MESSAGE_WHOLE));
    parts_begin(&parts);
    cr_assert(eq(int, message_body(&message, body, strlen(body), &used, &parts), MESSAGE_MORE));
    cr_assert(eq(int, parts.n, PARTS_MAX));
    cr_assert(eq(sz, used, 60 * 6 + 3)); /* the next chunk's size line is taken, its data is not */
    parts_begin(&parts);
    cr_assert(eq(int, message_body(&message, body + used, strlen(body) - used, &used, &parts), MESSAGE_WHOLE));
    cr_assert(eq(int, parts.n, 1));
    cr_assert(eq(sz, used, 3 + 5));
    parts_begin(&parts);
    cr_assert(eq(int, message_body(&message, "x", 1, &used, &parts), MESSAGE_WHOLE));
    cr_assert(zero(sz, used));
    message_end(&message);
}

Test(message_body, what_came_before_a_fault_is_told)
{
    cr_assert(eq(str, take(MESSAGE_REQUEST, CHUNKED("2\r\nab\r\n3\r\ncde\r\nx"))->body.at, "abcde"));
    cr_assert(eq(str, take(MESSAGE_REQUEST, CHUNKED("2\r\nabx"))->body.at, "ab"));
    cr_assert(eq(str, take(MESSAGE_REQUEST, CHUNKED("2\r\nab\r\n0x\r\n"))->body.at, "ab"));
}

Test(message_body, after_a_fault_nothing_is_taken)
{
    const char *request = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    struct message message;
    struct parts parts;
    struct head head;
    size_t head_n, used;

    message_begin(&message, MESSAGE_REQUEST);
    cr_assert(eq(int, message_scan(&message, request, strlen(request), 65536, &head_n), MESSAGE_WHOLE));
    cr_assert(eq(int, message_head(&message, request, head_n, &head), MESSAGE_WHOLE));
    parts_begin(&parts);
    cr_assert(eq(int, message_body(&message, "x", 1, &used, &parts), MESSAGE_BAD));
    cr_assert(eq(int, message_body(&message, "1\r\na\r\n", 6, &used, &parts), MESSAGE_BAD));
    cr_assert(zero(int, parts.n));
    cr_assert(eq(int, message_close(&message), MESSAGE_BAD));
    cr_assert(eq(str, (char *)message.fault.text, "a chunk's size does not begin with a hex digit"));
    cr_assert(eq(int, message_scan(&message, request, strlen(request), 65536, &head_n), MESSAGE_BAD));
    message_end(&message);
}
