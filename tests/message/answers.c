/* answers.c - each rule on an answer's head, kept and broken, and where its body ends. */
#include <string.h>

#include "tests/message/support.h"

#define EXPECT(samples) expect_samples(MESSAGE_ANSWER, samples, COUNT(samples))

Test(message_answer, the_status_line_has_a_version_and_three_digits)
{
    static const struct sample samples[] = {
        {SAMPLE("HTTP/1.1 200 OK\r\n\r\n"), 0, NULL},
        {SAMPLE("HTTP/1.0 200 OK\r\n\r\n"), 0, NULL},
        {SAMPLE("HTTP/1.1 200 \r\n\r\n"), 0, NULL},
        {SAMPLE("HTTP/1.1 200\r\n\r\n"), 0, NULL},
        {SAMPLE("HTTP/1.1 200  two  blanks\r\n\r\n"), 0, NULL},
        {SAMPLE("HTTP/1.1 200 \303\251\t!\r\n\r\n"), 0, NULL},
        {SAMPLE("HTTP/1.2 200 OK\r\n\r\n"), 502, "the answer is neither HTTP/1.0 nor HTTP/1.1"},
        {SAMPLE("HTTP/2.0 200 OK\r\n\r\n"), 502, "the answer is neither HTTP/1.0 nor HTTP/1.1"},
        {SAMPLE("HTTP/0.9 200 OK\r\n\r\n"), 502, "the answer is neither HTTP/1.0 nor HTTP/1.1"},
        {SAMPLE("http/1.1 200 OK\r\n\r\n"), 502, "the answer does not begin with a version"},
        {SAMPLE("HTTP/1.1\r\n\r\n"), 502, "the answer does not begin with a version"},
        {SAMPLE("HTTP/1.1\t200 OK\r\n\r\n"), 502, "the answer does not begin with a version"},
        {SAMPLE("ICY 200 OK\r\n\r\n"), 502, "the answer does not begin with a version"},
        {SAMPLE(" HTTP/1.1 200 OK\r\n\r\n"), 502, "the answer does not begin with a version"},
        {SAMPLE("HTTP/1.1  200 OK\r\n\r\n"), 502, "the answer's status is not of three digits"},
        {SAMPLE("HTTP/1.1 \r\n\r\n"), 502, "the answer's status is not of three digits"},
        {SAMPLE("HTTP/1.1 20\r\n\r\n"), 502, "the answer's status is not of three digits"},
        {SAMPLE("HTTP/1.1 20x OK\r\n\r\n"), 502, "the answer's status is not of three digits"},
        {SAMPLE("HTTP/1.1 +20 OK\r\n\r\n"), 502, "the answer's status is not of three digits"},
        {SAMPLE("HTTP/1.1 2000 OK\r\n\r\n"), 502, "the answer's status is not followed by a blank"},
        {SAMPLE("HTTP/1.1 200OK\r\n\r\n"), 502, "the answer's status is not followed by a blank"},
        {SAMPLE("HTTP/1.1 200\tOK\r\n\r\n"), 502, "the answer's status is not followed by a blank"},
        {SAMPLE("HTTP/1.1 099 OK\r\n\r\n"), 502, "the answer's status is not from 100 to 599"},
        {SAMPLE("HTTP/1.1 000 OK\r\n\r\n"), 502, "the answer's status is not from 100 to 599"},
        {SAMPLE("HTTP/1.1 600 OK\r\n\r\n"), 502, "the answer's status is not from 100 to 599"},
        {SAMPLE("HTTP/1.1 999 OK\r\n\r\n"), 502, "the answer's status is not from 100 to 599"},
        {SAMPLE("HTTP/1.1 599 OK\r\n\r\n"), 0, NULL},
        {SAMPLE("\r\nHTTP/1.1 200 OK\r\n\r\n"), 502, "an empty line before the answer"},
    };

    EXPECT(samples);
    cr_assert(eq(str, text_of(take(MESSAGE_ANSWER, SAMPLE("HTTP/1.1 200  a b \r\n\r\n"))->head.reason), " a b "));
    cr_assert(eq(str, text_of(take(MESSAGE_ANSWER, SAMPLE("HTTP/1.1 200\r\n\r\n"))->head.reason), ""));
    cr_assert(eq(uint, take(MESSAGE_ANSWER, SAMPLE("HTTP/1.1 457 \r\n\r\n"))->head.status, 457));
}

Test(message_answer, lines_and_fields_are_as_strict_as_a_request_s)
{
    static const struct sample samples[] = {
        {SAMPLE("HTTP/1.1 200 OK\n\r\n"), 502, "a bare LF"},
        {ANSWER("200 OK", "A: b\n"), 502, "a bare LF"},
        {ANSWER("200 OK", "A: b\rc\r\n"), 502, "a bare CR"},
        {ANSWER("200 O\rK", ""), 502, "a bare CR"},
        {ANSWER("200 O\0K", ""), 502, "a NUL"},
        {ANSWER("200 OK", "A: \177\r\n"), 502, "a control byte"},
        {ANSWER("200 OK", "A: b\r\n c\r\n"), 502, "a folded line"},
        {ANSWER("200 OK", " A: b\r\n"), 502, "a folded line"},
        {ANSWER("200 OK", "A : b\r\n"), 502, "a blank before a field's colon"},
        {ANSWER("200 OK", ": b\r\n"), 502, "a field without a name"},
        {ANSWER("200 OK", "A\r\n"), 502, "a field without a colon"},
        {ANSWER("200 OK", "A@: b\r\n"), 502, "a byte that may not be in a field's name"},
        {ANSWER("200 OK", "Connection: a b\r\n"), 502, "Connection is not a list of tokens"},
    };

    EXPECT(samples);
}

Test(message_answer, framing_is_never_in_doubt)
{
    static const struct sample samples[] = {
        {ANSWER("200 OK", "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"), 502,
            "Content-Length and Transfer-Encoding together"},
        {ANSWER("200 OK", "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n"), 502,
            "Content-Length and Transfer-Encoding together"},
        {ANSWER("200 OK", "Content-Length: 1\r\nContent-Length: 1\r\n"), 502, "Content-Length given twice"},
        {ANSWER("200 OK", "Content-Length: 1, 1\r\n"), 502, "Content-Length is not a number of 1 to 19 digits"},
        {ANSWER("200 OK", "Content-Length: -1\r\n"), 502, "Content-Length is not a number of 1 to 19 digits"},
        {ANSWER("200 OK", "Content-Length: 9223372036854775808\r\n"), 502, "Content-Length is above 2^63-1"},
        {ANSWER("200 OK", "Transfer-Encoding: gzip\r\n"), 502, "Transfer-Encoding is not chunked alone"},
        {ANSWER("200 OK", "Transfer-Encoding: gzip, chunked\r\n"), 502, "Transfer-Encoding is not chunked alone"},
        {ANSWER("200 OK", "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n"), 502,
            "Transfer-Encoding given twice"},
        {SAMPLE("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 502,
            "Transfer-Encoding on HTTP/1.0"},
        {ANSWER("204 No Content", "Content-Length: 1\r\n"), 502, "a body is announced on a status that has none"},
        {ANSWER("204 No Content", "Transfer-Encoding: chunked\r\n"), 502,
            "a body is announced on a status that has none"},
        {ANSWER("100 Continue", "Content-Length: 1\r\n"), 502, "a body is announced on a status that has none"},
        {ANSWER("103 Hints", "Transfer-Encoding: chunked\r\n"), 502, "a body is announced on a status that has none"},
        {ANSWER("101 Up", "Connection: upgrade\r\nUpgrade: a\r\nContent-Length: 1\r\n"), 502,
            "a body is announced on a status that has none"},
        {ANSWER("204 No Content", "Content-Length: 0\r\n"), 0, NULL},
        {ANSWER("204 No Content", ""), 0, NULL},
        {ANSWER("100 Continue", "Content-Length: 0\r\n"), 0, NULL},
    };

    EXPECT(samples);
}

Test(message_answer, a_101_names_one_protocol)
{
    static const struct sample samples[] = {
        {ANSWER("101 Up", "Connection: upgrade\r\nUpgrade: websocket\r\n"), 0, NULL},
        {ANSWER("101 Up", ""), 502, "101 without Connection: upgrade and one Upgrade field"},
        {ANSWER("101 Up", "Upgrade: a\r\n"), 502, "101 without Connection: upgrade and one Upgrade field"},
        {ANSWER("101 Up", "Connection: upgrade\r\n"), 502, "101 without Connection: upgrade and one Upgrade field"},
        {ANSWER("101 Up", "Connection: upgrade\r\nUpgrade: a\r\nUpgrade: b\r\n"), 502,
            "101 without Connection: upgrade and one Upgrade field"},
        {ANSWER("101 Up", "Connection: upgrade\r\nUpgrade: h2c\r\n"), 502,
            "101 without Connection: upgrade and one Upgrade field"},
        {SAMPLE("HTTP/1.0 101 Up\r\nConnection: upgrade\r\nUpgrade: a\r\n\r\n"), 502,
            "101 without Connection: upgrade and one Upgrade field"},
    };

    EXPECT(samples);
}

/* What follows the message's own bytes is not used. */
static void expect_end(
    enum message_kind kind, const char *bytes, size_t n, enum framing framing, const char *body, size_t left)
{
    const struct outcome *outcome = take(kind, bytes, n);

    cr_assert(eq(int, outcome->end, MESSAGE_WHOLE), "%s: %s", bytes, outcome->fault.text);
    cr_expect(eq(int, outcome->head.framing, framing), "%s", bytes);
    cr_expect(eq(str, outcome->body.at, (char *)body), "%s", bytes);
    cr_expect(eq(sz, n - outcome->used, left), "%s", bytes);
}

#define NEXT "HTTP/1.1 204 \r\n\r\n"

Test(message_answer, a_body_ends_where_its_framing_says)
{
    const size_t next = sizeof NEXT - 1;

    expect_end(
        MESSAGE_ANSWER, SAMPLE("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab" NEXT), FRAMING_LENGTH, "ab", next);
    expect_end(MESSAGE_ANSWER, SAMPLE("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" NEXT), FRAMING_LENGTH, "", next);
    expect_end(MESSAGE_ANSWER, SAMPLE("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n" NEXT),
        FRAMING_CHUNKED, "ab", next);
    expect_end(MESSAGE_ANSWER, SAMPLE("HTTP/1.1 200 OK\r\n\r\n" NEXT), FRAMING_UNTIL_CLOSE, NEXT, 0);
    expect_end(MESSAGE_ANSWER, SAMPLE("HTTP/1.0 200 OK\r\n\r\n"), FRAMING_UNTIL_CLOSE, "", 0);
    expect_end(MESSAGE_ANSWER, SAMPLE("HTTP/1.1 204 \r\nContent-Length: 0\r\n\r\n" NEXT), FRAMING_NONE, "", next);
    expect_end(MESSAGE_ANSWER, SAMPLE("HTTP/1.1 304 \r\n\r\n" NEXT), FRAMING_NONE, "", next);
    expect_end(MESSAGE_ANSWER, SAMPLE("HTTP/1.1 304 \r\nContent-Length: 9\r\n\r\n" NEXT), FRAMING_NONE, "", next);
    expect_end(
        MESSAGE_ANSWER, SAMPLE("HTTP/1.1 304 \r\nTransfer-Encoding: chunked\r\n\r\n" NEXT), FRAMING_NONE, "", next);
    expect_end(MESSAGE_ANSWER, SAMPLE("HTTP/1.1 100 \r\n\r\n" NEXT), FRAMING_NONE, "", next);
    expect_end(MESSAGE_ANSWER, SAMPLE("HTTP/1.1 101 \r\nConnection: upgrade\r\nUpgrade: a\r\n\r\n" NEXT), FRAMING_NONE,
        "", next);
    expect_end(MESSAGE_ANSWER, SAMPLE("HTTP/1.1 205 \r\nContent-Length: 1\r\n\r\na" NEXT), FRAMING_LENGTH, "a", next);
}

Test(message_answer, an_answer_to_HEAD_has_no_body_whatever_it_says)
{
    const enum message_kind kind = MESSAGE_ANSWER_TO_HEAD;
    const size_t next = sizeof NEXT - 1;

    expect_end(kind, SAMPLE("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n" NEXT), FRAMING_NONE, "", next);
    cr_assert(eq(u64, take(kind, SAMPLE("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"))->head.length, 9));
    expect_end(kind, SAMPLE("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" NEXT), FRAMING_NONE, "", next);
    expect_end(kind, SAMPLE("HTTP/1.1 200 OK\r\n\r\n" NEXT), FRAMING_NONE, "", next);
    expect_end(kind, SAMPLE("HTTP/1.1 100 Continue\r\n\r\n" NEXT), FRAMING_NONE, "", next);
    cr_assert(
        eq(int, take(kind, SAMPLE("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"))->end,
            MESSAGE_BAD));
    cr_assert(eq(int, take(kind, SAMPLE("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"))->end, MESSAGE_BAD));
}

Test(message_answer, a_peer_that_closes_early_leaves_no_whole_message)
{
    static const struct sample samples[] = {
        {SAMPLE("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na"), 502, "the peer closed before the message's end"},
        {SAMPLE("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"), 502, "the peer closed before the message's end"},
        {SAMPLE("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), 502,
            "the peer closed before the message's end"},
        {SAMPLE("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n"), 502,
            "the peer closed before the message's end"},
        {SAMPLE("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r"), 502,
            "the peer closed before the message's end"},
    };

    EXPECT(samples);
}

Test(message_answer, closing_says_whether_the_message_was_whole)
{
    const char *bytes = "HTTP/1.1 200 OK\r\n\r\n";
    struct message message;
    struct head head;
    size_t head_n;

    message_begin(&message, MESSAGE_ANSWER);
    cr_assert(eq(int, message_close(&message), MESSAGE_BAD));
    message_end(&message);
    message_begin(&message, MESSAGE_ANSWER);
    cr_assert(eq(int, message_scan(&message, bytes, strlen(bytes), 65536, &head_n), MESSAGE_WHOLE));
    cr_assert(eq(int, message_head(&message, bytes, head_n, &head), MESSAGE_WHOLE));
    cr_assert(not(message.whole));
    cr_assert(eq(int, message_close(&message), MESSAGE_WHOLE));
    cr_assert(message.whole);
    cr_assert(eq(int, message_close(&message), MESSAGE_WHOLE));
    message_end(&message);
}

static void expect_keep_alive(const char *bytes, size_t n, bool keep_alive)
{
    cr_expect(eq(int, take(MESSAGE_ANSWER, bytes, n)->end, MESSAGE_WHOLE), "%s", bytes);
    cr_expect(eq(int, take(MESSAGE_ANSWER, bytes, n)->head.keep_alive, keep_alive), "%s", bytes);
}

Test(message_answer, a_link_can_be_kept_when_both_version_and_framing_allow)
{
    expect_keep_alive(ANSWER("204 No Content", ""), true);
    expect_keep_alive(ANSWER("204 No Content", "Connection: close\r\n"), false);
    expect_keep_alive(ANSWER("200 OK", "Content-Length: 0\r\n"), true);
    expect_keep_alive(ANSWER("200 OK", "Content-Length: 0\r\nConnection: x, close\r\n"), false);
    expect_keep_alive(ANSWER("200 OK", ""), false);
    expect_keep_alive(ANSWER("200 OK", "Connection: keep-alive\r\n"), false);
    expect_keep_alive(SAMPLE("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"), false);
    expect_keep_alive(SAMPLE("HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n"), true);
    expect_keep_alive(SAMPLE("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\n"), false);
}
