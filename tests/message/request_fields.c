/* request_fields.c - each rule on what a request's fields say together, kept and broken. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tests/message/support.h"

#define HOST "Host: a\r\n\r\n"

#define EXPECT(samples) expect_samples(MESSAGE_REQUEST, samples, COUNT(samples))

Test(message_request, Host_is_given_once_and_is_a_host)
{
    static const struct sample samples[] = {
        {SAMPLE("GET / HTTP/1.1\r\n\r\n"), 400, "no Host on HTTP/1.1"},
        {SAMPLE("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"), 400, "Host given twice"},
        {SAMPLE("GET / HTTP/1.1\r\nhost: a\r\nHOST: b\r\n\r\n"), 400, "Host given twice"},
        {SAMPLE("GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n"), 400, "Host given twice"},
        {SAMPLE("GET / HTTP/1.1\r\nHost:\r\n\r\n"), 400, "Host is not a host with or without a port"},
        {SAMPLE("GET / HTTP/1.0\r\nHost: \r\n\r\n"), 400, "Host is not a host with or without a port"},
        {SAMPLE("GET / HTTP/1.1\r\nHost: a b\r\n\r\n"), 400, "Host is not a host with or without a port"},
        {SAMPLE("GET / HTTP/1.1\r\nHost: a/\r\n\r\n"), 400, "Host is not a host with or without a port"},
        {SAMPLE("GET / HTTP/1.1\r\nHost: a?b\r\n\r\n"), 400, "Host is not a host with or without a port"},
        {SAMPLE("GET / HTTP/1.1\r\nHost: u@a\r\n\r\n"), 400, "Host is not a host with or without a port"},
        {SAMPLE("GET / HTTP/1.1\r\nHost: a\\b\r\n\r\n"), 400, "Host is not a host with or without a port"},
        {SAMPLE("GET / HTTP/1.1\r\nHost: a:b\r\n\r\n"), 400, "Host is not a host with or without a port"},
        {SAMPLE("GET / HTTP/1.1\r\nHost: a:1:2\r\n\r\n"), 400, "Host is not a host with or without a port"},
        {SAMPLE("GET / HTTP/1.1\r\nHost: :80\r\n\r\n"), 400, "Host is not a host with or without a port"},
        {SAMPLE("GET / HTTP/1.1\r\nHost: []\r\n\r\n"), 400, "Host is not a host with or without a port"},
        {SAMPLE("GET / HTTP/1.1\r\nHost: [::1\r\n\r\n"), 400, "Host is not a host with or without a port"},
        {SAMPLE("GET / HTTP/1.1\r\nHost: [::1]a\r\n\r\n"), 400, "Host is not a host with or without a port"},
        {SAMPLE("GET / HTTP/1.1\r\nHost: [::1]:a\r\n\r\n"), 400, "Host is not a host with or without a port"},
        {SAMPLE("GET / HTTP/1.1\r\nHost: ::1\r\n\r\n"), 400, "Host is not a host with or without a port"},
        {SAMPLE("GET / HTTP/1.1\r\nHost: \200\r\n\r\n"), 400, "Host is not a host with or without a port"},
        {SAMPLE("GET / HTTP/1.1\r\nHost: a.b-c_d~e%20!$&'()*+,;=:80\r\n\r\n"), 0, NULL},
        {SAMPLE("GET / HTTP/1.1\r\nHost: a:\r\n\r\n"), 0, NULL},
        {SAMPLE("GET / HTTP/1.1\r\nHost: [2001:db8::1.2.3.4%25lo]:80\r\n\r\n"), 0, NULL},
        {SAMPLE("GET / HTTP/1.0\r\nHost: a\r\n\r\n"), 0, NULL},
    };

    EXPECT(samples);
}

Test(message_request, framing_is_one_length_or_chunked_and_never_in_doubt)
{
    static const struct sample samples[] = {
        {WITH("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"), 400,
            "Content-Length and Transfer-Encoding together"},
        {WITH("Transfer-Encoding: chunked\r\nContent-Length: 1\r\n"), 400,
            "Content-Length and Transfer-Encoding together"},
        {WITH("Transfer-Encoding: chunked\r\nContent-Length: 0\r\n"), 400,
            "Content-Length and Transfer-Encoding together"},
        {WITH("Content-Length: 1\r\nContent-Length: 1\r\n"), 400, "Content-Length given twice"},
        {WITH("Content-Length: 0\r\nContent-Length: 0\r\n"), 400, "Content-Length given twice"},
        {WITH("Content-Length: 1\r\ncontent-length: 2\r\n"), 400, "Content-Length given twice"},
        {WITH("Content-Length:\r\n"), 400, "Content-Length is not a number of 1 to 19 digits"},
        {WITH("Content-Length: \r\n"), 400, "Content-Length is not a number of 1 to 19 digits"},
        {WITH("Content-Length: +1\r\n"), 400, "Content-Length is not a number of 1 to 19 digits"},
        {WITH("Content-Length: -1\r\n"), 400, "Content-Length is not a number of 1 to 19 digits"},
        {WITH("Content-Length: 0x1\r\n"), 400, "Content-Length is not a number of 1 to 19 digits"},
        {WITH("Content-Length: 1a\r\n"), 400, "Content-Length is not a number of 1 to 19 digits"},
        {WITH("Content-Length: 1.0\r\n"), 400, "Content-Length is not a number of 1 to 19 digits"},
        {WITH("Content-Length: 1 1\r\n"), 400, "Content-Length is not a number of 1 to 19 digits"},
        {WITH("Content-Length: 1, 1\r\n"), 400, "Content-Length is not a number of 1 to 19 digits"},
        {WITH("Content-Length: 1,\r\n"), 400, "Content-Length is not a number of 1 to 19 digits"},
        {WITH("Content-Length: \"1\"\r\n"), 400, "Content-Length is not a number of 1 to 19 digits"},
        {WITH("Content-Length: 9223372036854775808\r\n"), 400, "Content-Length is above 2^63-1"},
        {WITH("Content-Length: 9999999999999999999\r\n"), 400, "Content-Length is above 2^63-1"},
        {WITH("Content-Length: 18446744073709551617\r\n"), 400, "Content-Length is not a number of 1 to 19 digits"},
        {WITH("Content-Length: 00000000000000000000\r\n"), 400, "Content-Length is not a number of 1 to 19 digits"},
        {WITH("Transfer-Encoding:\r\n"), 400, "Transfer-Encoding is not chunked alone"},
        {WITH("Transfer-Encoding: identity\r\n"), 400, "Transfer-Encoding is not chunked alone"},
        {WITH("Transfer-Encoding: gzip\r\n"), 400, "Transfer-Encoding is not chunked alone"},
        {WITH("Transfer-Encoding: gzip, chunked\r\n"), 400, "Transfer-Encoding is not chunked alone"},
        {WITH("Transfer-Encoding: chunked, gzip\r\n"), 400, "Transfer-Encoding is not chunked alone"},
        {WITH("Transfer-Encoding: chunked, chunked\r\n"), 400, "Transfer-Encoding is not chunked alone"},
        {WITH("Transfer-Encoding: chunked,\r\n"), 400, "Transfer-Encoding is not chunked alone"},
        {WITH("Transfer-Encoding: ,chunked\r\n"), 400, "Transfer-Encoding is not chunked alone"},
        {WITH("Transfer-Encoding: chunked;a=b\r\n"), 400, "Transfer-Encoding is not chunked alone"},
        {WITH("Transfer-Encoding: chunkedx\r\n"), 400, "Transfer-Encoding is not chunked alone"},
        {WITH("Transfer-Encoding: xchunked\r\n"), 400, "Transfer-Encoding is not chunked alone"},
        {WITH("Transfer-Encoding: \"chunked\"\r\n"), 400, "Transfer-Encoding is not chunked alone"},
        {WITH("Transfer-Encoding: chunk\xc5\xbf\r\n"), 400, "Transfer-Encoding is not chunked alone"},
        {WITH("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 400, "Transfer-Encoding given twice"},
        {WITH("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n"), 400, "Transfer-Encoding given twice"},
        {SAMPLE("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400, "Transfer-Encoding on HTTP/1.0"},
        {SAMPLE("TRACE / HTTP/1.1\r\nContent-Length: 1\r\n" HOST), 400, "TRACE with a body"},
        {SAMPLE("TRACE / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" HOST), 400, "TRACE with a body"},
        {SAMPLE("TRACE / HTTP/1.1\r\nContent-Length: 0\r\n" HOST), 0, NULL},
        {SAMPLE("TRACE / HTTP/1.1\r\n" HOST), 0, NULL},
    };

    EXPECT(samples);
}

static void expect_framing(const char *bytes, size_t n, enum framing framing, uint64_t length)
{
    struct message message;
    struct head head;
    size_t head_n;

    message_begin(&message, MESSAGE_REQUEST);
    cr_assert(eq(int, message_scan(&message, bytes, n, 65536, &head_n), MESSAGE_WHOLE));
    cr_assert(
        eq(int, message_head(&message, bytes, head_n, &head), MESSAGE_WHOLE), "%s: %s", bytes, message.fault.text);
    cr_expect(eq(int, head.framing, framing), "%s", bytes);
    cr_expect(eq(u64, head.length, length), "%s", bytes);
    cr_expect(eq(int, head.has_length, framing == FRAMING_LENGTH), "%s", bytes);
    cr_expect(
        eq(int, message.whole, framing == FRAMING_NONE || (framing == FRAMING_LENGTH && length == 0)), "%s", bytes);
}

Test(message_request, framing_is_what_the_fields_say)
{
    expect_framing(WITH(""), FRAMING_NONE, 0);
    expect_framing(WITH("Content-Length: 0\r\n"), FRAMING_LENGTH, 0);
    expect_framing(WITH("Content-Length: 1\r\n"), FRAMING_LENGTH, 1);
    expect_framing(WITH("CONTENT-LENGTH:   12  \r\n"), FRAMING_LENGTH, 12);
    expect_framing(WITH("Content-Length: 0000000000000000007\r\n"), FRAMING_LENGTH, 7);
    expect_framing(WITH("Content-Length: 9223372036854775807\r\n"), FRAMING_LENGTH, INT64_MAX);
    expect_framing(WITH("Transfer-Encoding: chunked\r\n"), FRAMING_CHUNKED, 0);
    expect_framing(WITH("transfer-ENCODING:CHUNKED \r\n"), FRAMING_CHUNKED, 0);
    expect_framing(SAMPLE("GET / HTTP/1.1\r\nContent-Length: 3\r\n" HOST), FRAMING_LENGTH, 3);
    expect_framing(
        SAMPLE("GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: a\r\nContent-Length: 3\r\n" HOST), FRAMING_LENGTH, 3);
}

#define TOKENS_8 "a,b,c,d,e,f,g,h,"
#define TOKENS   TOKENS_8 TOKENS_8 TOKENS_8 TOKENS_8 TOKENS_8 TOKENS_8 TOKENS_8 TOKENS_8 /* 64 */

Test(message_request, Connection_is_a_list_of_at_most_64_tokens)
{
    static const struct sample samples[] = {
        {WITH("Connection: a b\r\n"), 400, "Connection is not a list of tokens"},
        {WITH("Connection: a;b\r\n"), 400, "Connection is not a list of tokens"},
        {WITH("Connection: close, \"a\"\r\n"), 400, "Connection is not a list of tokens"},
        {WITH("Connection: (a)\r\n"), 400, "Connection is not a list of tokens"},
        {WITH("Connection: close\r\nConnection: a=b\r\n"), 400, "Connection is not a list of tokens"},
        {WITH("Connection: \200\r\n"), 400, "Connection is not a list of tokens"},
        {WITH("Connection: " TOKENS "x\r\n"), 400, "too many tokens in Connection"},
        {WITH("Connection: " TOKENS "\r\nConnection: x\r\n"), 400, "too many tokens in Connection"},
        {WITH("Connection: " TOKENS "\r\n"), 0, NULL},
        {WITH("Connection: ,, a ,\t, b\t,\r\n"), 0, NULL},
        {WITH("Connection:\r\n"), 0, NULL},
    };

    EXPECT(samples);
}

static void expect_keep_alive(const char *bytes, size_t n, bool keep_alive)
{
    cr_expect(eq(int, take(MESSAGE_REQUEST, bytes, n)->end, MESSAGE_WHOLE), "%s", bytes);
    cr_expect(eq(int, take(MESSAGE_REQUEST, bytes, n)->head.keep_alive, keep_alive), "%s", bytes);
}

Test(message_request, a_connection_is_kept_by_its_version_and_Connection)
{
    expect_keep_alive(WITH(""), true);
    expect_keep_alive(WITH("Connection: close\r\n"), false);
    expect_keep_alive(WITH("Connection: Close\r\n"), false);
    expect_keep_alive(WITH("Connection: a, CLOSE ,b\r\n"), false);
    expect_keep_alive(WITH("Connection: keep-alive\r\n"), true);
    expect_keep_alive(WITH("Connection: keep-alive\r\nConnection: close\r\n"), false);
    expect_keep_alive(WITH("Connection: closed\r\n"), true);
    expect_keep_alive(SAMPLE("GET / HTTP/1.0\r\n\r\n"), false);
    expect_keep_alive(SAMPLE("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"), true);
    expect_keep_alive(SAMPLE("GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n"), false);
    expect_keep_alive(SAMPLE("GET / HTTP/1.0\r\nKeep-Alive: 5\r\n\r\n"), false);
    expect_keep_alive(SAMPLE("GET / HTTP/1.0\r\nProxy-Connection: keep-alive\r\n\r\n"), false);
}

Test(message_request, Expect_is_100_continue_and_counts_on_1_1)
{
    static const struct sample samples[] = {
        {WITH("Expect: other\r\n"), 417, "Expect is not 100-continue"},
        {WITH("Expect:\r\n"), 417, "Expect is not 100-continue"},
        {WITH("Expect: 100-continue, other\r\n"), 417, "Expect is not 100-continue"},
        {WITH("Expect: 100-continue\r\nExpect: other\r\n"), 417, "Expect is not 100-continue"},
        {WITH("Expect: other\r\nExpect: 100-continue\r\n"), 417, "Expect is not 100-continue"},
        {SAMPLE("GET / HTTP/1.0\r\nExpect: other\r\n\r\n"), 417, "Expect is not 100-continue"},
    };

    EXPECT(samples);
    cr_assert(take(MESSAGE_REQUEST, WITH("Expect: 100-continue\r\n"))->head.expects_continue);
    cr_assert(take(MESSAGE_REQUEST, WITH("expect: 100-CONTINUE\r\n"))->head.expects_continue);
    cr_assert(not(take(MESSAGE_REQUEST, WITH("A: 100-continue\r\n"))->head.expects_continue));
    cr_assert(
        not(take(MESSAGE_REQUEST, SAMPLE("GET / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n"))->head.expects_continue));
}

static void expect_upgrade(const char *bytes, size_t n, bool upgrade)
{
    const struct outcome *outcome = take(MESSAGE_REQUEST, bytes, n);

    cr_expect(eq(int, outcome->end, MESSAGE_WHOLE), "%s: %s", bytes, outcome->fault.text);
    cr_expect(eq(int, outcome->head.upgrade, upgrade), "%s", bytes);
}

Test(message_request, an_upgrade_is_one_protocol_that_Connection_names)
{
    expect_upgrade(WITH("Connection: upgrade\r\nUpgrade: websocket\r\n"), true);
    expect_upgrade(WITH("Upgrade: a/1.0\r\nConnection: keep-alive, Upgrade\r\n"), true);
    expect_upgrade(WITH("Connection: upgrade\r\nUpgrade: a\r\nContent-Length: 0\r\n"), true);
    expect_upgrade(WITH("Connection: upgrade\r\nUpgrade: h2cx\r\n"), true);
    expect_upgrade(WITH("Upgrade: websocket\r\n"), false);
    expect_upgrade(WITH("Connection: upgrade\r\n"), false);
    expect_upgrade(WITH("Connection: upgrade\r\nUpgrade: a\r\nUpgrade: a\r\n"), false);
    expect_upgrade(WITH("Connection: upgrade\r\nUpgrade: a, b\r\n"), false);
    expect_upgrade(WITH("Connection: upgrade\r\nUpgrade: a/\r\n"), false);
    expect_upgrade(WITH("Connection: upgrade\r\nUpgrade:\r\n"), false);
    expect_upgrade(WITH("Connection: upgrade\r\nUpgrade: h2c\r\n"), false);
    expect_upgrade(WITH("Connection: upgrade\r\nUpgrade: H2C/1\r\n"), false);
    expect_upgrade(WITH("Connection: upgrade\r\nUpgrade: h2c, a\r\n"), false);
    expect_upgrade(WITH("Connection: upgrade\r\nUpgrade: a\r\nContent-Length: 1\r\n\r\nx"), false);
    expect_upgrade(
        SAMPLE("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: a\r\nTransfer-Encoding: chunked\r\n\r\n0"
               "\r\n\r\n"),
        false);
    expect_upgrade(SAMPLE("GET / HTTP/1.0\r\nConnection: upgrade\r\nUpgrade: a\r\n\r\n"), false);
}

static bool logs_in(enum message_kind kind, const char *bytes, size_t n)
{
    const struct outcome *outcome = take(kind, bytes, n);

    cr_assert(eq(int, outcome->end, MESSAGE_WHOLE), "%s: %s", bytes, outcome->fault.text);
    return outcome->head.identity;
}

Test(message_request, NTLM_and_Negotiate_log_a_connection_in)
{
    cr_assert(logs_in(MESSAGE_REQUEST, WITH("Authorization: NTLM abc\r\n")));
    cr_assert(logs_in(MESSAGE_REQUEST, WITH("authorization: negotiate\r\nAuthorization: Basic abc\r\n")));
    cr_assert(not(logs_in(MESSAGE_REQUEST, WITH("Authorization: Basic NTLM\r\n"))));
    cr_assert(not(logs_in(MESSAGE_REQUEST, WITH("Authorization: NTLMx abc\r\nAuthorization:\r\n"))));
    cr_assert(not(logs_in(MESSAGE_REQUEST, WITH("A: NTLM abc\r\n"))));
    cr_assert(
        logs_in(MESSAGE_ANSWER, ANSWER("401 No", "Content-Length: 0\r\nWWW-Authenticate: Basic\r\nWWW-Authenticate: "
                                                 "Negotiate abc\r\n")));
    cr_assert(
        not(logs_in(MESSAGE_ANSWER, ANSWER("401 No", "Content-Length: 0\r\nWWW-Authenticate: Basic realm=x\r\n"))));
}

Test(message_request, a_login_is_seen_behind_other_offers)
{
    cr_assert(logs_in(
        MESSAGE_ANSWER, ANSWER("401 No", "Content-Length: 0\r\nWWW-Authenticate: Basic realm=\"x\", NTLM\r\n")));
    cr_assert(logs_in(
        MESSAGE_ANSWER, ANSWER("401 No", "Content-Length: 0\r\nWWW-Authenticate: Basic realm=x,negotiate abc==\r\n")));
    cr_assert(not(logs_in(MESSAGE_ANSWER,
        ANSWER("401 No", "Content-Length: 0\r\nWWW-Authenticate: Digest realm=\"x\", qop=auth-ntlm\r\n"))));
    cr_assert(not(logs_in(MESSAGE_REQUEST, WITH("Authorization: Digest username=ntlm\r\n"))));
}

/* The names of the fields that go on, with a blank after each. */
static char *passed(const char *bytes, size_t n)
{
    static char names[1024];
    const struct head *head = &take(MESSAGE_REQUEST, bytes, n)->head;

    names[0] = '\0';
    for (unsigned i = 0; i < head->n_fields; i++)
        if (!head->fields[i].hop) {
            strcat(names, text_of(head->fields[i].name));
            strcat(names, " ");
        }
    return names;
}

Test(message_request, fields_for_one_connection_alone_do_not_go_on)
{
    cr_assert(eq(str,
        passed(WITH("Connection: close\r\nKeep-Alive: a\r\nProxy-Connection: a\r\nProxy-Authenticate: a\r\n"
                    "Proxy-Authorization: a\r\nTE: a\r\nUpgrade: a\r\nHTTP2-Settings: a\r\n"
                    "Transfer-Encoding: chunked\r\nClose: a\r\nA: b\r\n")),
        "Host A "));
    cr_assert(
        eq(str, passed(WITH("A: 1\r\nConnection: b, a\r\nB: 2\r\na: 3\r\nConnection: C\r\nc: 4\r\nD: 5\r\nAB: 6\r\n")),
            "Host D AB "));
    cr_assert(eq(str,
        passed(WITH("Close: 1\r\nConnection: close, Trailer, Expect\r\nTrailer: a\r\nExpect: 100-continue\r\n")),
        "Host "));
}

Test(message_request, Connection_names_fields_in_any_case_but_no_others)
{
    cr_assert(eq(str, passed(WITH("Connection: a^, azAZ, b`\r\nA~: 1\r\nAZaz: 2\r\nB^: 3\r\n")), "Host A~ B^ "));
}

Test(message_request, a_head_used_again_has_nothing_of_the_one_before)
{
    static const char *const requests[] = {
        "GET http://b/ HTTP/1.1\r\nHost: b\r\nVia: 1\r\nConnection: upgrade\r\nUpgrade: a\r\nContent-Length: 0\r\n"
        "X-Forwarded-For: 2\r\nExpect: 100-continue\r\n\r\n",
        "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"};
    static struct head used, fresh;
    struct message message;
    size_t head_n;

    for (size_t i = 0; i < 2; i++) {
        message_begin(&message, MESSAGE_REQUEST);
        message_scan(&message, requests[i], strlen(requests[i]), 65536, &head_n);
        cr_assert(eq(int, message_head(&message, requests[i], head_n, &used), MESSAGE_WHOLE));
    }
    message_begin(&message, MESSAGE_REQUEST);
    message_scan(&message, requests[1], strlen(requests[1]), 65536, &head_n);
    cr_assert(eq(int, message_head(&message, requests[1], head_n, &fresh), MESSAGE_WHOLE));
    cr_assert(zero(int, memcmp(&used, &fresh, offsetof(struct head, fields))));
}

Test(message_request, Connection_cannot_take_away_what_the_proxy_needs)
{
    cr_assert(eq(str,
        passed(WITH("Connection: host, content-length, via, x-forwarded-for, x-forwarded-proto, x-request-id\r\n"
                    "Via: a\r\nX-Forwarded-For: a\r\nX-Forwarded-Proto: a\r\nX-Request-Id: a\r\n"
                    "Content-Length: 0\r\n")),
        "Host Via X-Forwarded-For X-Forwarded-Proto X-Request-Id Content-Length "));
}

Test(message_request, names_with_an_underscore_do_not_go_on)
{
    cr_assert(eq(str, passed(WITH("A_B: 1\r\n_: 2\r\nContent_Length: 5\r\nA-B: 3\r\nC_: 4\r\n")), "Host A-B "));
}

Test(message_request, has_256_fields_at_most)
{
    static char request[8192];

    for (unsigned n = 255; n <= 257; n++) {
        struct outcome outcome;
        size_t length = (size_t)sprintf(request, "GET / HTTP/1.1\r\nHost: a\r\n");

        for (unsigned i = 1; i < n; i++)
            length += (size_t)sprintf(request + length, "F%u: %u\r\n", i, i);
        length += (size_t)sprintf(request + length, "\r\n");
        outcome_take(&outcome, MESSAGE_REQUEST, request, length, 65536, &(struct cuts){.every = 7});
        cr_assert(eq(int, outcome.end, n <= 256 ? MESSAGE_WHOLE : MESSAGE_BAD));
        cr_assert(eq(uint, outcome.fault.status, n <= 256 ? 0 : 431));
        cr_assert(n > 256 || outcome.head.n_fields == n);
        outcome_free(&outcome);
    }
}
