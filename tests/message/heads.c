/* heads.c - heads as they go out: what is written anew, what is left out, and that nothing is written past the room. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/lbproxy/message/chars.h"
#include "examples/lbproxy/message/compose.h"
#include "examples/lbproxy/message/fields.h"
#include "tests/message/support.h"

#define ID "0123456789abcdef0123456789abcdef"
#define ADDED                                                                                                          \
    "X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: http\r\nX-Request-Id: " ID "\r\nVia: 1.1 lbproxy\r\n\r\n"
#define ANSWERED "Via: 1.1 lbproxy\r\n\r\n"

static void expect_request(const char *bytes, size_t n, const char *expected)
{
    cr_expect(eq(str, composed(MESSAGE_REQUEST, bytes, n, 1), (char *)expected));
}

Test(message_compose, a_request_has_its_host_first_and_the_proxy_s_fields_last)
{
    expect_request(SAMPLE("GET /a?b HTTP/1.1\r\nA:1\r\nHOST: x:80\r\nB: 2 \r\n\r\n"),
        "GET /a?b HTTP/1.1\r\nHost: x:80\r\nA: 1\r\nB: 2\r\n" ADDED);
    expect_request(SAMPLE("GET http://X/a HTTP/1.1\r\nHost: x\r\n\r\n"), "GET /a HTTP/1.1\r\nHost: X\r\n" ADDED);
    expect_request(SAMPLE("GET http://x?a HTTP/1.1\r\nHost: x\r\n\r\n"), "GET /?a HTTP/1.1\r\nHost: x\r\n" ADDED);
    expect_request(SAMPLE("OPTIONS http://x HTTP/1.1\r\nHost: x\r\n\r\n"), "OPTIONS * HTTP/1.1\r\nHost: x\r\n" ADDED);
    expect_request(SAMPLE("M-SEARCH / HTTP/1.1\r\nHost: x\r\n\r\n"), "M-SEARCH / HTTP/1.1\r\nHost: x\r\n" ADDED);
}

Test(message_compose, a_1_0_request_becomes_1_1)
{
    expect_request(SAMPLE("GET / HTTP/1.0\r\nConnection: keep-alive\r\nExpect: 100-continue\r\n\r\n"),
        "GET / HTTP/1.1\r\nHost: dialled.example:80\r\n"
        "X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: http\r\nX-Request-Id: " ID "\r\nVia: 1.0 lbproxy\r\n\r\n");
    expect_request(SAMPLE("GET http://y/ HTTP/1.0\r\n\r\n"),
        "GET / HTTP/1.1\r\nHost: y\r\n"
        "X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: http\r\nX-Request-Id: " ID "\r\nVia: 1.0 lbproxy\r\n\r\n");
}

Test(message_compose, a_request_s_framing_is_written_once)
{
    expect_request(WITH("Content-Length: 03\r\n\r\nabc"), /* the blank line that WITH adds comes after the body */
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n" ADDED "abc");
    expect_request(WITH("content-length: 0\r\n"), "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n" ADDED);
    expect_request(CHUNKED("1;x\r\na\r\n2\r\nbc\r\n0\r\nT:1\r\n\r\n"),
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n" ADDED "3\r\nabc\r\n0\r\nT: 1\r\n\r\n");
}

Test(message_compose, what_was_forwarded_before_is_kept)
{
    expect_request(
        WITH("X-Forwarded-For: 1\r\nVia: 1.1 a\r\nX-Forwarded-For:\r\nx-forwarded-for: 2, 3\r\nVia: 1.0 b\r\n"
             "X-Forwarded-Proto: https\r\nX-Request-Id: ~!x\r\n"),
        "POST / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 1, 2, 3, 192.0.2.7\r\nX-Forwarded-Proto: http\r\n"
        "X-Request-Id: ~!x\r\nVia: 1.1 a, 1.0 b, 1.1 lbproxy\r\n\r\n");
}

#define X16  "xxxxxxxxxxxxxxxx"
#define X128 X16 X16 X16 X16 X16 X16 X16 X16

Test(message_compose, a_request_id_is_kept_when_it_is_one_good_word)
{
    static const char *const refused[] = {"", "a b", "a\tb", "\303\251", X128 "x"};

    cr_assert(ne(ptr,
        strstr(composed(MESSAGE_REQUEST, WITH("X-Request-Id: " X128 "\r\n"), 1), "X-Request-Id: " X128 "\r\n"), NULL));
    cr_assert(ne(ptr, strstr(composed(MESSAGE_REQUEST, WITH("X-Request-Id: a\r\n"), 1), "X-Request-Id: a\r\n"), NULL));
    for (size_t i = 0; i < COUNT(refused); i++) {
        char request[512];

        sprintf(request, "GET / HTTP/1.1\r\nHost: a\r\nX-Request-Id: %s\r\n\r\n", refused[i]);
        cr_assert(
            ne(ptr, strstr(composed(MESSAGE_REQUEST, request, strlen(request), 1), "X-Request-Id: " ID "\r\n"), NULL));
    }
    expect_request(WITH("X-Request-Id: a\r\nX-Request-Id: a\r\n"), "POST / HTTP/1.1\r\nHost: a\r\n" ADDED);
}

Test(message_compose, what_is_for_one_connection_alone_is_left_out)
{
    expect_request(
        WITH("Connection: close, x\r\nX: 1\r\nKeep-Alive: 1\r\nProxy-Connection: 1\r\nProxy-Authorization: 1\r\n"
             "Proxy-Authenticate: 1\r\nTE: trailers\r\nHTTP2-Settings: 1\r\nUpgrade: h2c\r\nA_b: 1\r\nC: 2\r\n"),
        "POST / HTTP/1.1\r\nHost: a\r\nC: 2\r\n" ADDED);
}

Test(message_compose, expect_and_upgrade_go_on_where_they_count)
{
    expect_request(WITH("Expect: 100-continue\r\n"), "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n" ADDED);
    expect_request(WITH("Connection: Upgrade, x\r\nUpgrade: WebSocket\r\n"),
        "POST / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: WebSocket\r\n" ADDED);
}

static void expect_answer(enum message_kind kind, const char *bytes, size_t n, unsigned minor, const char *expected)
{
    cr_expect(eq(str, composed(kind, bytes, n, minor), (char *)expected));
}

Test(message_compose, an_answer_goes_out_in_a_framing_that_its_client_knows)
{
    const enum message_kind kind = MESSAGE_ANSWER;

    expect_answer(kind, ANSWER("200 OK", "A:1\r\nContent-Length: 2\r\n\r\nab"), 1,
        "HTTP/1.1 200 OK\r\nA: 1\r\nContent-Length: 2\r\n" ANSWERED "ab");
    expect_answer(kind, ANSWER("200 OK", "Content-Length: 2\r\n\r\nab"), 0,
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n" ANSWERED "ab");
    expect_answer(kind, SAMPLE("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nT:1\r\n\r\n"), 1,
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" ANSWERED "2\r\nab\r\n0\r\nT: 1\r\n\r\n");
    expect_answer(kind, SAMPLE("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nT:1\r\n\r\n"), 0,
        "HTTP/1.1 200 OK\r\nConnection: close\r\n" ANSWERED "ab");
    expect_answer(kind, SAMPLE("HTTP/1.1 200 OK\r\n\r\nab"), 1,
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" ANSWERED "2\r\nab\r\n0\r\n\r\n");
    expect_answer(
        kind, SAMPLE("HTTP/1.0 200 \r\n\r\nab"), 0, "HTTP/1.1 200 \r\nConnection: close\r\nVia: 1.0 lbproxy\r\n\r\nab");
}

Test(message_compose, an_answer_without_a_body_says_so)
{
    expect_answer(
        MESSAGE_ANSWER, ANSWER("204 No Content", "Content-Length: 0\r\n"), 1, "HTTP/1.1 204 No Content\r\n" ANSWERED);
    expect_answer(MESSAGE_ANSWER, ANSWER("304 Not Modified", "Content-Length: 7\r\nETag: x\r\n"), 1,
        "HTTP/1.1 304 Not Modified\r\nETag: x\r\nContent-Length: 7\r\n" ANSWERED);
    expect_answer(MESSAGE_ANSWER, ANSWER("304 Not Modified", ""), 0,
        "HTTP/1.1 304 Not Modified\r\nConnection: keep-alive\r\n" ANSWERED);
    expect_answer(MESSAGE_ANSWER_TO_HEAD, ANSWER("200 OK", "Content-Length: 7\r\n"), 1,
        "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n" ANSWERED);
    expect_answer(
        MESSAGE_ANSWER_TO_HEAD, ANSWER("200 OK", "Transfer-Encoding: chunked\r\n"), 1, "HTTP/1.1 200 OK\r\n" ANSWERED);
    expect_answer(MESSAGE_ANSWER, ANSWER("103 Early Hints", "Link: x\r\nConnection: y\r\n"), 1,
        "HTTP/1.1 103 Early Hints\r\nLink: x\r\n" ANSWERED);
    expect_answer(MESSAGE_ANSWER, ANSWER("101 Up", "Upgrade: a\r\nConnection: Upgrade\r\n"), 1,
        "HTTP/1.1 101 Up\r\nConnection: upgrade\r\nUpgrade: a\r\n" ANSWERED);
}

Test(message_compose, an_answer_s_fields_for_the_link_alone_are_left_out)
{
    expect_answer(MESSAGE_ANSWER,
        ANSWER("204 No Content",
            "Connection: close, x\r\nX: 1\r\nKeep-Alive: 1\r\nProxy-Authenticate: 1\r\nUpgrade: h2c\r\n"
            "Via: 1.1 b\r\nTE: 1\r\nA_b: 2\r\nX-Request-Id: y\r\nTrailer: z\r\n"),
        1, "HTTP/1.1 204 No Content\r\nA_b: 2\r\nX-Request-Id: y\r\nTrailer: z\r\nVia: 1.1 b, 1.1 lbproxy\r\n\r\n");
}

Test(message_compose, a_field_that_Connection_close_would_name_is_left_out)
{
    expect_answer(MESSAGE_ANSWER, ANSWER("204 No Content", "Close: 1\r\nA: 2\r\n"), 1,
        "HTTP/1.1 204 No Content\r\nA: 2\r\n" ANSWERED);
}

Test(message_compose, an_answer_before_a_close_says_so)
{
    struct outcome *outcome = take(MESSAGE_ANSWER, ANSWER("204 No Content", ""));
    char out[256];

    for (unsigned minor = 0; minor <= 1; minor++) {
        size_t n =
            compose_answer(out, sizeof out - 1, &outcome->head, &(struct answer_terms){minor, true, FRAMING_NONE});

        out[n] = '\0';
        cr_assert(eq(str, out, "HTTP/1.1 204 No Content\r\nConnection: close\r\n" ANSWERED));
    }
}

Test(message_compose, framing_follows_the_answer_and_its_client)
{
    static const enum framing out[][2] = {
        [FRAMING_NONE] = {FRAMING_NONE, FRAMING_NONE},
        [FRAMING_LENGTH] = {FRAMING_LENGTH, FRAMING_LENGTH},
        [FRAMING_CHUNKED] = {FRAMING_UNTIL_CLOSE, FRAMING_CHUNKED},
        [FRAMING_UNTIL_CLOSE] = {FRAMING_UNTIL_CLOSE, FRAMING_CHUNKED},
    };

    for (unsigned framing = 0; framing < COUNT(out); framing++)
        for (unsigned minor = 0; minor <= 1; minor++)
            cr_assert(
                eq(int, compose_framing(&(struct head){.framing = (enum framing)framing}, minor), out[framing][minor]));
}

Test(message_compose, fields_behind_the_last_are_not_written)
{
    static struct head head;
    static char out[2048];

    head = take(MESSAGE_REQUEST, WITH("Connection: upgrade\r\nUpgrade: a\r\nVia: b\r\nX-Forwarded-For: c\r\n"))->head;
    for (unsigned i = 0; i < 3; i++) {
        head.fields[head.n_fields + i] = head.fields[2 + i]; /* left over from a larger one */
        head.fields[head.n_fields + i].value = (struct text){"left", 4};
    }
    for (unsigned first = 0; first < 3; first++) {
        size_t n = compose_request(out, sizeof out - 1, &head, &(struct request_terms){"192.0.2.7", "a", ID});

        out[n] = '\0';
        cr_assert(lt(sz, 0, n));
        cr_assert(eq(ptr, strstr(out, "left"), NULL));
        head.fields[head.n_fields] = head.fields[head.n_fields + 1];
        head.fields[head.n_fields + 1] = head.fields[head.n_fields + 2];
    }
}

/* ---- own answers ---- */

static char *own(const struct own_answer *answer)
{
    static char out[512];
    size_t n = compose_own(out, sizeof out - 1, answer);

    cr_assert(ne(sz, n, 0));
    out[n] = '\0';
    return out;
}

Test(message_own, an_answer_of_our_own_is_a_status_and_a_line)
{
    cr_assert(eq(str, own(&(struct own_answer){.status = 502, .line = "why", .client_minor = 1}),
        "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\nwhy\n"));
    cr_assert(eq(str, own(&(struct own_answer){.status = 503, .line = "", .client_minor = 0, .retry_after = 0.1}),
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: 1\r\nRetry-After: 1\r\n"
        "Connection: keep-alive\r\n\r\n\n"));
    cr_assert(eq(str,
        own(&(struct own_answer){.status = 405, .line = "no", .client_minor = 1, .close = true, .allow = "GET"}),
        "HTTP/1.1 405 Method Not Allowed\r\nContent-Type: text/plain\r\nContent-Length: 3\r\nAllow: GET\r\n"
        "Connection: close\r\n\r\nno\n"));
    cr_assert(eq(str, own(&(struct own_answer){.status = 504, .line = "why", .head = true, .close = true}),
        "HTTP/1.1 504 Gateway Timeout\r\nContent-Type: text/plain\r\nContent-Length: 4\r\nConnection: close\r\n\r\n"));
}

Test(message_own, each_status_that_is_told_has_its_reason)
{
    static const unsigned statuses[] = {200, 400, 404, 405, 408, 414, 417, 431, 500, 501, 502, 503, 504, 505};

    for (size_t i = 0; i < COUNT(statuses); i++) {
        const char *answer = own(&(struct own_answer){.status = statuses[i], .line = "x", .client_minor = 1});
        const struct outcome *outcome = take(MESSAGE_ANSWER, answer, strlen(answer));

        cr_assert(eq(int, outcome->end, MESSAGE_WHOLE));
        cr_assert(eq(uint, outcome->head.status, statuses[i]));
        cr_assert(lt(sz, 0, outcome->head.reason.n));
    }
    cr_assert(zero(int, strncmp(own(&(struct own_answer){.status = 299, .line = "x"}), "HTTP/1.1 299 \r\n", 15)));
}

Test(message_own, a_line_stays_one_line)
{
    cr_assert(eq(str, strstr(own(&(struct own_answer){.status = 502, .line = "a\r\nb\tc\177\200"}), "\r\n\r\n"),
        "\r\n\r\na  b c \200\n"));
}

static void expect_retry(double seconds, const char *said)
{
    const char *at =
        strstr(own(&(struct own_answer){.status = 503, .line = "x", .retry_after = seconds}), "Retry-After: ");

    if (said == NULL)
        cr_expect(eq(ptr, (void *)at, NULL));
    else
        cr_expect(zero(int, strncmp(at + 13, said, strlen(said))), "%g: %s", seconds, at);
}

Test(message_own, retry_after_is_in_whole_seconds_rounded_up)
{
    expect_retry(0, NULL);
    expect_retry(-1, NULL);
    expect_retry(NAN, NULL);
    expect_retry(0.001, "1\r\n");
    expect_retry(1, "1\r\n");
    expect_retry(1.0001, "2\r\n");
    expect_retry(119.5, "120\r\n");
    expect_retry(1e300, "1000000000\r\n");
    expect_retry(INFINITY, "1000000000\r\n");
}

/* ---- bounds ---- */

/* With any room below what is needed nothing is said to have been written, and nothing is past it. */
static void expect_bounded(size_t (*compose)(char *out, size_t room, const void *of), const void *of)
{
    char large[4096];
    size_t n = compose(large, sizeof large, of);

    cr_assert(lt(sz, 0, n));
    for (size_t room = 0; room <= n; room++) {
        char *out = malloc(room > 0 ? room : 1);

        cr_assert(eq(sz, compose(out, room, of), room == n ? n : 0));
        cr_assert(room < n || memcmp(out, large, n) == 0);
        free(out);
    }
}

static size_t bounded_request(char *out, size_t room, const void *of)
{
    return compose_request(out, room, of, &(struct request_terms){"192.0.2.7", "a", ID});
}

static size_t bounded_answer(char *out, size_t room, const void *of)
{
    return compose_answer(out, room, of, &(struct answer_terms){1, true, compose_framing(of, 1)});
}

static size_t bounded_own(char *out, size_t room, const void *of)
{
    return compose_own(out, room, of);
}

Test(message_compose, nothing_is_written_past_the_room)
{
    expect_bounded(
        bounded_request, &take(MESSAGE_REQUEST, WITH("A: b\r\nContent-Length: 0\r\nVia: c\r\nX-Forwarded-For: d\r\n"
                                                     "Connection: upgrade\r\nUpgrade: e\r\nX-Request-Id: f\r\n"))
                              ->head);
    expect_bounded(bounded_answer, &take(MESSAGE_ANSWER, ANSWER("200 OK", "A: b\r\nVia: c\r\n"))->head);
    expect_bounded(bounded_own,
        &(struct own_answer){.status = 503, .line = "why", .retry_after = 2, .allow = "GET", .close = true});
}

Test(message_compose, a_head_grows_by_less_than_COMPOSE_ROOM)
{
    static char request[16384], out[16384 + COMPOSE_ROOM];
    char text[COMPOSE_MAX_TEXT + 1];
    size_t n = (size_t)sprintf(request, "GET / HTTP/1.0\r\n");
    struct outcome outcome;

    memset(text, 'x', COMPOSE_MAX_TEXT);
    text[COMPOSE_MAX_TEXT] = '\0';
    for (int i = 0; i < HEAD_MAX_FIELDS; i++)
        n += (size_t)sprintf(request + n, "A:\r\n");
    n += (size_t)sprintf(request + n, "\r\n");
    outcome_take(&outcome, MESSAGE_REQUEST, request, n, 65536, &(struct cuts){0});
    cr_assert(eq(int, outcome.end, MESSAGE_WHOLE));
    cr_assert(
        lt(sz, n, compose_request(out, n + COMPOSE_ROOM, &outcome.head, &(struct request_terms){text, text, ID})));
    outcome_free(&outcome);
}

/* ---- fields ---- */

/* Each byte of the name in turn becomes each that a name may have: only the other case of its letter is the same. */
static void expect_name(const char *text, enum field_name known)
{
    size_t n = strlen(text);
    char name[32];

    cr_assert(eq(int, field_find((struct text){text, n}), known), "%s", text);
    for (size_t at = 0; at < n; at++) {
        strcpy(name, text);
        for (int byte = 0; byte < 256; byte++) {
            bool same = tolower(byte) == tolower((unsigned char)text[at]);

            name[at] = (char)byte;
            if ((chars[byte] & CHAR_TOKEN) != 0)
                cr_assert(eq(int, field_find((struct text){name, n}), same ? known : FIELD_OTHER), "%s", name);
        }
        cr_assert(ne(int, field_find((struct text){text, at}), known), "%s", text);
    }
}

Test(message_fields, names_are_known_in_any_case)
{
    static const struct {
        const char *name;
        enum field_name known;
    } names[] = {
        {"Authorization", FIELD_AUTHORIZATION},
        {"Close", FIELD_CLOSE},
        {"Connection", FIELD_CONNECTION},
        {"Content-Length", FIELD_CONTENT_LENGTH},
        {"Expect", FIELD_EXPECT},
        {"Host", FIELD_HOST},
        {"HTTP2-Settings", FIELD_HTTP2_SETTINGS},
        {"Keep-Alive", FIELD_KEEP_ALIVE},
        {"Proxy-Authenticate", FIELD_PROXY_AUTHENTICATE},
        {"Proxy-Authorization", FIELD_PROXY_AUTHORIZATION},
        {"Proxy-Connection", FIELD_PROXY_CONNECTION},
        {"TE", FIELD_TE},
        {"Trailer", FIELD_TRAILER},
        {"Transfer-Encoding", FIELD_TRANSFER_ENCODING},
        {"Upgrade", FIELD_UPGRADE},
        {"Via", FIELD_VIA},
        {"WWW-Authenticate", FIELD_WWW_AUTHENTICATE},
        {"X-Forwarded-For", FIELD_X_FORWARDED_FOR},
        {"X-Forwarded-Proto", FIELD_X_FORWARDED_PROTO},
        {"X-Request-Id", FIELD_X_REQUEST_ID},
    };

    cr_assert(eq(sz, COUNT(names), FIELD_X_REQUEST_ID)); /* each but FIELD_OTHER */
    for (size_t i = 0; i < COUNT(names); i++)
        expect_name(names[i].name, names[i].known);
}
