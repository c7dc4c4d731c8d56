/* scan.c - a head's end, and what is refused before it is there: as soon as the line is whole, or a bound reached. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/message/support.h"

#define GET "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

/* Gives one byte more each time, in a block of just that size. @return with how many the step was not MORE. */
static size_t scan(
    struct message *message, enum message_kind kind, const char *bytes, size_t n, size_t max, enum message_step *step)
{
    size_t have = 0, head_n = 0;

    message_begin(message, kind);
    do {
        char *copy = malloc(++have);

        memcpy(copy, bytes, have);
        *step = message_scan(message, copy, have, max, &head_n);
        free(copy);
    } while (*step == MESSAGE_MORE && have < n);
    cr_assert(eq(sz, *step == MESSAGE_WHOLE ? head_n : have, have));
    return have;
}

Test(message_scan, a_head_ends_with_its_blank_line)
{
    struct message message;
    enum message_step step;
    size_t head_n;

    cr_assert(eq(sz, scan(&message, MESSAGE_REQUEST, GET "x", sizeof GET, 65536, &step), sizeof GET - 1));
    cr_assert(eq(int, step, MESSAGE_WHOLE));
    message_begin(&message, MESSAGE_REQUEST);
    cr_assert(eq(int, message_scan(&message, GET GET, 2 * (sizeof GET - 1), 65536, &head_n), MESSAGE_WHOLE));
    cr_assert(eq(sz, head_n, sizeof GET - 1));
    message_begin(&message, MESSAGE_ANSWER);
    cr_assert(eq(int, message_scan(&message, "HTTP/1.1 200 OK\r\n\r\n\r\n\r\n", 23, 65536, &head_n), MESSAGE_WHOLE));
    cr_assert(eq(sz, head_n, 19));
}

Test(message_scan, no_bytes_are_no_head)
{
    struct message message;
    size_t head_n;

    message_begin(&message, MESSAGE_REQUEST);
    cr_assert(eq(int, message_scan(&message, "", 0, 65536, &head_n), MESSAGE_MORE));
}

static void expect_refused_after(const char *bytes, size_t n, size_t max, size_t after, unsigned status)
{
    struct message message;
    enum message_step step;

    cr_expect(eq(sz, scan(&message, MESSAGE_REQUEST, bytes, n, max, &step), after), "%.40s", bytes);
    cr_expect(eq(int, step, MESSAGE_BAD), "%.40s", bytes);
    cr_expect(eq(uint, message.fault.status, status), "%.40s", bytes);
}

Test(message_scan, a_bad_line_is_refused_when_it_is_whole)
{
    expect_refused_after(SAMPLE("GET / HTTP/1.1\nHost: a\r\n\r\n"), 65536, 15, 400);
    expect_refused_after(SAMPLE("GET /\001 HTTP/1.1\r\nHost: a\r\n\r\n"), 65536, 17, 400);
    expect_refused_after(SAMPLE("GET / HTTP/1.1\r\nA : a\r\nHost: a\r\n\r\n"), 65536, 23, 400);
    expect_refused_after(SAMPLE("GET / HTTP/1.1\r\nA: a\r\n b\r\nHost: a\r\n\r\n"), 65536, 26, 400);
    expect_refused_after(SAMPLE("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"), 65536, 4, 400);
    expect_refused_after(SAMPLE("\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"), 65536, 1, 400);
}

Test(message_scan, a_head_of_max_bytes_is_the_longest)
{
    for (size_t max = sizeof GET - 2; max <= sizeof GET; max++) {
        struct message message;
        enum message_step step;
        size_t have = scan(&message, MESSAGE_REQUEST, GET, sizeof GET - 1, max, &step);

        cr_assert(eq(int, step, max >= sizeof GET - 1 ? MESSAGE_WHOLE : MESSAGE_BAD));
        cr_assert(eq(sz, have, max >= sizeof GET - 1 ? sizeof GET - 1 : max));
        cr_assert(eq(uint, message.fault.status, max >= sizeof GET - 1 ? 0 : 431));
    }
}

Test(message_scan, a_head_that_fills_max_without_its_end_is_refused_at_once)
{
    static char request[2000];
    int n = sprintf(request, "GET / HTTP/1.1\r\nA: ");

    memset(request + n, 'x', sizeof request - (size_t)n);
    expect_refused_after(request, sizeof request, 1024, 1024, 431);
}

Test(message_scan, an_answer_s_head_that_is_too_large_is_a_502)
{
    struct message message;
    enum message_step step;

    scan(&message, MESSAGE_ANSWER, SAMPLE("HTTP/1.1 200 OK\r\nA: b\r\n\r\n"), 20, &step);
    cr_assert(eq(int, step, MESSAGE_BAD));
    cr_assert(eq(uint, message.fault.status, 502));
    cr_assert(eq(str, (char *)message.fault.text, "the head is too large"));
}

Test(message_scan, a_request_line_without_an_end_is_refused_as_too_long)
{
    static char request[9000];

    memset(request, 'x', sizeof request);
    memcpy(request, "GET /", 5);
    expect_refused_after(request, sizeof request, 65536, 8192 + 64, 414);
    expect_refused_after(request, sizeof request, 8192 + 64, 8192 + 64, 414);
    expect_refused_after(request, sizeof request, 8192 + 63, 8192 + 63, 431);
    expect_refused_after(request, sizeof request, 1024, 1024, 431);
    memcpy(request, "\r\nGET /", 7);
    expect_refused_after(request, sizeof request, 65536, 2 + 8192 + 64, 414);
    memcpy(request + 8192 + 65, "\r\n", 2);
    expect_refused_after(request, sizeof request, 65536, 2 + 8192 + 64, 414);
}

Test(message_scan, an_answer_s_line_is_bounded_by_the_head_alone)
{
    static char answer[12000];
    struct message message;
    size_t head_n;

    memset(answer, 'x', sizeof answer);
    memcpy(answer, "HTTP/1.1 200 ", 13);
    memcpy(answer + sizeof answer - 4, "\r\n\r\n", 4);
    message_begin(&message, MESSAGE_ANSWER);
    cr_assert(eq(int, message_scan(&message, answer, sizeof answer, 65536, &head_n), MESSAGE_WHOLE));
}

Test(message_scan, messages_behind_one_another_are_told_apart)
{
    static const char both[] =
        "\r\nPOST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc\r\nGET /2 HTTP/1.1\r\nHost: b\r\n\r\n";
    struct outcome *first = take(MESSAGE_REQUEST, SAMPLE(both)), *second;
    size_t used = first->used;

    cr_assert(eq(str, text_of(first->head.target), "/1"));
    cr_assert(eq(str, first->body.at, "abc"));
    second = take(MESSAGE_REQUEST, both + used, sizeof both - 1 - used);
    cr_assert(eq(int, second->end, MESSAGE_WHOLE));
    cr_assert(eq(str, text_of(second->head.target), "/2"));
    cr_assert(eq(sz, used + second->used, sizeof both - 1));
}
