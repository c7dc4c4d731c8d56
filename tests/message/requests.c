/* requests.c - each rule on a request's lines, kept and broken: their bytes, the method, the version, the target. */
#include <string.h>

#include "tests/message/support.h"

#define HOST "Host: a\r\n\r\n"

#define EXPECT(samples) expect_samples(MESSAGE_REQUEST, samples, COUNT(samples))

Test(message_request, lines_end_in_CR_LF_and_hold_no_control_bytes)
{
    static const struct sample samples[] = {
        {SAMPLE("GET / HTTP/1.1\nHost: a\r\n\r\n"), 400, "a bare LF"},
        {SAMPLE("GET / HTTP/1.1\r\nHost: a\n\r\n"), 400, "a bare LF"},
        {SAMPLE("GET / HTTP/1.1\r\nHost: a\r\n\n"), 400, "a bare LF"},
        {SAMPLE("\nGET / HTTP/1.1\r\n" HOST), 400, "a bare LF"},
        {SAMPLE("GET / HTTP/1.1\r\nHost: a\r\nA: b\rc\r\n\r\n"), 400, "a bare CR"},
        {SAMPLE("GET / HTTP/1.1\r\nHost: a\r\nA: b\r\r\n\r\n"), 400, "a bare CR"},
        {SAMPLE("GET / HTTP/1.1\r\r\n" HOST), 400, "a bare CR"},
        {SAMPLE("\rGET / HTTP/1.1\r\n" HOST), 400, "a bare CR"},
        {SAMPLE("GET /\r HTTP/1.1\r\n" HOST), 400, "a bare CR"},
        {SAMPLE("GET /\0 HTTP/1.1\r\n" HOST), 400, "a NUL"},
        {WITH("A: b\0c\r\n"), 400, "a NUL"},
        {WITH("A\0: b\r\n"), 400, "a NUL"},
        {WITH("A: b\001c\r\n"), 400, "a control byte"},
        {WITH("A: a longer value with it at its end\013\r\n"), 400, "a control byte"},
        {WITH("A: b\177c\r\n"), 400, "a control byte"},
        {WITH("A: b\tc\r\n"), 0, NULL},
        {WITH("A: \200\377\r\n"), 0, NULL},
    };

    EXPECT(samples);
}

Test(message_request, every_control_byte_but_HTAB_is_refused_wherever_it_is_in_a_value)
{
    char request[] = "GET / HTTP/1.1\r\nHost: a\r\nA: 0123456789abcdefghi\r\n\r\n";
    char *value = strstr(request, "0123");

    for (size_t at = 1; at < 19; at++)
        for (int byte = 0; byte < 256; byte++) {
            char before = value[at];
            bool may = (byte >= ' ' && byte != 0x7f) || byte == '\t';
            struct outcome outcome;

            value[at] = (char)byte;
            outcome_take(&outcome, MESSAGE_REQUEST, request, sizeof request - 1, 65536, &(struct cuts){0});
            cr_assert(eq(int, outcome.end, may ? MESSAGE_WHOLE : MESSAGE_BAD), "byte %d at %zu", byte, at);
            outcome_free(&outcome);
            value[at] = before;
        }
}

Test(message_request, one_empty_line_may_come_first)
{
    static const struct sample samples[] = {
        {SAMPLE("\r\nGET / HTTP/1.1\r\n" HOST), 0, NULL},
        {SAMPLE("\r\n\r\nGET / HTTP/1.1\r\n" HOST), 400, "more than one empty line before the request"},
    };

    EXPECT(samples);
    cr_assert(eq(sz, take(MESSAGE_REQUEST, SAMPLE("\r\nGET / HTTP/1.1\r\n" HOST))->used, 29));
}

Test(message_request, fields_have_a_token_a_colon_and_no_fold)
{
    static const struct sample samples[] = {
        {WITH(" A: b\r\n"), 400, "a folded line"},
        {WITH("A: b\r\n c\r\n"), 400, "a folded line"},
        {WITH("A: b\r\n\tc\r\n"), 400, "a folded line"},
        {WITH("A: b\r\n \r\n"), 400, "a folded line"},
        {SAMPLE("GET / HTTP/1.1\r\n Host: a\r\n\r\n"), 400, "a folded line"},
        {WITH(": b\r\n"), 400, "a field without a name"},
        {WITH("A : b\r\n"), 400, "a blank before a field's colon"},
        {WITH("A\t: b\r\n"), 400, "a blank before a field's colon"},
        {WITH("Content-Length : 1\r\n"), 400, "a blank before a field's colon"},
        {WITH("A\r\n"), 400, "a field without a colon"},
        {WITH("A b: c\r\n"), 400, "a blank before a field's colon"},
        {WITH("A(b): c\r\n"), 400, "a byte that may not be in a field's name"},
        {WITH("A/b: c\r\n"), 400, "a byte that may not be in a field's name"},
        {WITH("\"A\": c\r\n"), 400, "a byte that may not be in a field's name"},
        {WITH("\303\251: c\r\n"), 400, "a byte that may not be in a field's name"},
        {WITH("!#$%&'*+-.^_`|~09azAZ: c\r\n"), 0, NULL},
        {WITH("A:b\r\nC:\r\nD: \r\nE:\t f \t\r\nF: g:h\r\n"), 0, NULL},
    };

    EXPECT(samples);
}

Test(message_request, blanks_around_a_value_are_taken_off)
{
    const struct head *head = &take(MESSAGE_REQUEST, WITH("A:b\r\nC:\r\nD:  \r\nE:\t f g \t\r\n"))->head;

    cr_assert(eq(uint, head->n_fields, 5));
    cr_assert(eq(str, text_of(head->fields[1].value), "b"));
    cr_assert(eq(str, text_of(head->fields[2].value), ""));
    cr_assert(eq(str, text_of(head->fields[3].value), ""));
    cr_assert(eq(str, text_of(head->fields[4].value), "f g"));
    cr_assert(eq(str, text_of(head->fields[4].name), "E"));
}

Test(message_request, the_request_line_has_three_words_and_two_blanks)
{
    static const struct sample samples[] = {
        {SAMPLE("GET  / HTTP/1.1\r\n" HOST), 400, "a request line without a target"},
        {SAMPLE("GET / HTTP/1.1 \r\n" HOST), 400, "the request line does not end in a version"},
        {SAMPLE("GET /  HTTP/1.1\r\n" HOST), 400, "the request line does not end in a version"},
        {SAMPLE("GET / a HTTP/1.1\r\n" HOST), 400, "the request line does not end in a version"},
        {SAMPLE(" GET / HTTP/1.1\r\n" HOST), 400, "the request does not begin with a method"},
        {SAMPLE("GET\t/ HTTP/1.1\r\n" HOST), 400, "the request does not begin with a method"},
        {SAMPLE("G{T / HTTP/1.1\r\n" HOST), 400, "the request does not begin with a method"},
        {SAMPLE("GET\r\n" HOST), 400, "a request line without a target"},
        {SAMPLE("GET \r\n" HOST), 400, "a request line without a target"},
        {SAMPLE("GET /\t HTTP/1.1\r\n" HOST), 400, "a byte that may not be in a target"},
        {SAMPLE("GET / http/1.1\r\n" HOST), 400, "the request line does not end in a version"},
        {SAMPLE("GET / HTTP/1.10\r\n" HOST), 400, "the request line does not end in a version"},
        {SAMPLE("GET / HTTP/11\r\n" HOST), 400, "the request line does not end in a version"},
        {SAMPLE("GET / HTTP/2\r\n" HOST), 400, "the request line does not end in a version"},
        {SAMPLE("GET / RTSP/1.0\r\n" HOST), 400, "the request line does not end in a version"},
    };

    EXPECT(samples);
}

Test(message_request, versions_are_1_0_and_1_1)
{
    static const struct sample samples[] = {
        {SAMPLE("GET / HTTP/1.0\r\n\r\n"), 0, NULL},
        {SAMPLE("GET / HTTP/1.1\r\n" HOST), 0, NULL},
        {SAMPLE("GET / HTTP/1.2\r\n" HOST), 505, "only HTTP/1.0 and HTTP/1.1 are spoken here"},
        {SAMPLE("GET / HTTP/0.9\r\n" HOST), 505, "only HTTP/1.0 and HTTP/1.1 are spoken here"},
        {SAMPLE("GET / HTTP/2.0\r\n" HOST), 505, "only HTTP/1.0 and HTTP/1.1 are spoken here"},
        {SAMPLE("GET / HTTP/2.1\r\n" HOST), 505, "only HTTP/1.0 and HTTP/1.1 are spoken here"},
        {SAMPLE("GET /\r\n\r\n"), 505, "HTTP/0.9 is not spoken here"},
    };

    EXPECT(samples);
}

Test(message_request, methods_are_those_that_llhttp_knows_but_some)
{
    static const struct sample samples[] = {
        {SAMPLE("HEAD / HTTP/1.1\r\n" HOST), 0, NULL},
        {SAMPLE("M-SEARCH / HTTP/1.1\r\n" HOST), 0, NULL},
        {SAMPLE("get / HTTP/1.1\r\n" HOST), 501, "an unknown method"},
        {SAMPLE("GETT / HTTP/1.1\r\n" HOST), 501, "an unknown method"},
        {SAMPLE("GE / HTTP/1.1\r\n" HOST), 501, "an unknown method"},
        {SAMPLE("FOO / HTTP/9.9\r\n" HOST), 501, "an unknown method"},
        {SAMPLE("SOURCE / HTTP/1.1\r\n" HOST), 501, "an unknown method"},
        {SAMPLE("DESCRIBE / HTTP/1.1\r\n" HOST), 501, "an unknown method"},
        {SAMPLE("FLUSH / HTTP/1.1\r\n" HOST), 501, "an unknown method"},
        {SAMPLE("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 501, "an unknown method"},
        {SAMPLE("CONNECT a:443 HTTP/1.1\r\n" HOST), 405, "CONNECT is not served"},
        {SAMPLE("CONNECT / HTTP/1.1\r\n" HOST), 405, "CONNECT is not served"},
    };

    EXPECT(samples);
}

Test(message_request, each_method_is_parsed_as_itself)
{
#define TRY(number, name, word)                                                                                        \
    if (number != HTTP_CONNECT && number != HTTP_SOURCE) {                                                             \
        struct outcome *outcome = take(MESSAGE_REQUEST, SAMPLE(#word " / HTTP/1.1\r\n" HOST));                         \
                                                                                                                       \
        cr_assert(eq(int, outcome->end, MESSAGE_WHOLE), "%s: %s", #word, outcome->fault.text);                         \
        cr_assert(eq(int, outcome->head.method, number));                                                              \
    }
    HTTP_METHOD_MAP(TRY)
#undef TRY
}

Test(message_request, targets_are_paths_or_a_star_or_absolute)
{
    static const struct sample samples[] = {
        {SAMPLE("GET /a?b=c&d=%20;!'()*+,-._~:@[]{}|\\^`\"<>? HTTP/1.1\r\n" HOST), 0, NULL},
        {SAMPLE("GET // HTTP/1.1\r\n" HOST), 0, NULL},
        {SAMPLE("GET /#a HTTP/1.1\r\n" HOST), 400, "a fragment in the target"},
        {SAMPLE("GET # HTTP/1.1\r\n" HOST), 400, "a fragment in the target"},
        {SAMPLE("GET /\303\251 HTTP/1.1\r\n" HOST), 400, "a byte that may not be in a target"},
        {SAMPLE("GET a HTTP/1.1\r\n" HOST), 400, "the target is neither a path nor an http:// address"},
        {SAMPLE("GET a:80 HTTP/1.1\r\n" HOST), 400, "the target is neither a path nor an http:// address"},
        {SAMPLE("GET ?a HTTP/1.1\r\n" HOST), 400, "the target is neither a path nor an http:// address"},
        {SAMPLE("GET https://a/ HTTP/1.1\r\n" HOST), 400, "the target is neither a path nor an http:// address"},
        {SAMPLE("GET ftp://a/ HTTP/1.1\r\n" HOST), 400, "the target is neither a path nor an http:// address"},
        {SAMPLE("GET http:/a HTTP/1.1\r\n" HOST), 400, "the target is neither a path nor an http:// address"},
        {SAMPLE("GET http:// HTTP/1.1\r\n" HOST), 400, "the target is neither a path nor an http:// address"},
        {SAMPLE("GET * HTTP/1.1\r\n" HOST), 400, "the target * is for OPTIONS alone"},
        {SAMPLE("OPTIONS *a HTTP/1.1\r\n" HOST), 400, "the target is neither a path nor an http:// address"},
        {SAMPLE("OPTIONS * HTTP/1.1\r\n" HOST), 0, NULL},
        {SAMPLE("OPTIONS / HTTP/1.1\r\n" HOST), 0, NULL},
    };

    EXPECT(samples);
}

static void expect_target(const char *bytes, size_t n, const char *target, const char *host)
{
    const struct outcome *outcome = take(MESSAGE_REQUEST, bytes, n);

    cr_assert(eq(int, outcome->end, MESSAGE_WHOLE), "%s: %s", bytes, outcome->fault.text);
    cr_expect(eq(str, text_of(outcome->head.target), (char *)target), "%s", bytes);
    cr_expect(eq(str, text_of(outcome->head.host), (char *)host), "%s", bytes);
}

Test(message_request, an_absolute_target_is_parted_into_host_and_path)
{
    expect_target(SAMPLE("GET http://a/b?c HTTP/1.1\r\n" HOST), "/b?c", "a");
    expect_target(SAMPLE("GET HTTP://A:80/ HTTP/1.1\r\nHost: a:80\r\n\r\n"), "/", "A:80");
    expect_target(SAMPLE("GET http://a HTTP/1.1\r\n" HOST), "/", "a");
    expect_target(SAMPLE("GET http://a?b HTTP/1.1\r\n" HOST), "?b", "a");
    expect_target(SAMPLE("OPTIONS http://a HTTP/1.1\r\n" HOST), "*", "a");
    expect_target(SAMPLE("OPTIONS http://a/ HTTP/1.1\r\n" HOST), "/", "a");
    expect_target(SAMPLE("GET http://[::1]:8080/ HTTP/1.0\r\n\r\n"), "/", "[::1]:8080");
    expect_target(SAMPLE("GET /http://b/ HTTP/1.1\r\n" HOST), "/http://b/", "a");
    expect_target(SAMPLE("GET / HTTP/1.0\r\n\r\n"), "/", "");
}

Test(message_request, an_absolute_target_says_what_Host_says)
{
    static const struct sample samples[] = {
        {SAMPLE("GET http://b/ HTTP/1.1\r\n" HOST), 400, "Host differs from the target's host"},
        {SAMPLE("GET http://a:80/ HTTP/1.1\r\n" HOST), 400, "Host differs from the target's host"},
        {SAMPLE("GET http://b/ HTTP/1.0\r\n" HOST), 400, "Host differs from the target's host"},
        {SAMPLE("GET http://a/ HTTP/1.1\r\n\r\n"), 400, "no Host on HTTP/1.1"},
        {SAMPLE("GET http:///b HTTP/1.1\r\n" HOST), 400, "the target's host is none"},
        {SAMPLE("GET http://?b HTTP/1.1\r\n" HOST), 400, "the target's host is none"},
        {SAMPLE("GET http://u@a/ HTTP/1.1\r\n" HOST), 400, "the target's host is none"},
        {SAMPLE("GET http://a:b/ HTTP/1.1\r\n" HOST), 400, "the target's host is none"},
        {SAMPLE("GET http://a\\b/ HTTP/1.1\r\n" HOST), 400, "the target's host is none"},
    };

    EXPECT(samples);
}

Test(message_request, a_target_of_8192_bytes_is_the_longest)
{
    static char request[8192 + 64];

    for (size_t n = 8191; n <= 8193; n++) {
        struct outcome outcome;

        memcpy(request, "GET /", 5);
        memset(request + 5, 'x', n - 1);
        strcpy(request + 4 + n, " HTTP/1.1\r\n" HOST);
        outcome_take(&outcome, MESSAGE_REQUEST, request, strlen(request), 65536, &(struct cuts){.every = 1000});
        cr_assert(eq(int, outcome.end, n <= 8192 ? MESSAGE_WHOLE : MESSAGE_BAD));
        cr_assert(eq(uint, outcome.fault.status, n <= 8192 ? 0 : 414));
        outcome_free(&outcome);
    }
}
