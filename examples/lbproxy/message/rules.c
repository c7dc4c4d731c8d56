/* rules.c - the rules of RFC 9110 and 9112 on fields, where each doubt is a fault: two readers of a message must never
 * see two messages. */
#include "examples/lbproxy/message/rules.h"

#include <string.h>

#include "examples/lbproxy/message/chars.h"
#include "examples/lbproxy/message/fields.h"
#include "examples/lbproxy/message/start.h"

static const struct fault two_lengths = {400, "Content-Length given twice"};
static const struct fault odd_length = {400, "Content-Length is not a number of 1 to 19 digits"};
static const struct fault large_length = {400, "Content-Length is above 2^63-1"};
static const struct fault two_encodings = {400, "Transfer-Encoding given twice"};
static const struct fault odd_encoding = {400, "Transfer-Encoding is not chunked alone"};
static const struct fault old_encoding = {400, "Transfer-Encoding on HTTP/1.0"};
static const struct fault both = {400, "Content-Length and Transfer-Encoding together"};
static const struct fault two_hosts = {400, "Host given twice"};
static const struct fault no_host = {400, "no Host on HTTP/1.1"};
static const struct fault odd_host = {400, "Host is not a host with or without a port"};
static const struct fault other_host = {400, "Host differs from the target's host"};
static const struct fault odd_connection = {400, "Connection is not a list of tokens"};
static const struct fault many_options = {400, "too many tokens in Connection"};
static const struct fault odd_expect = {417, "Expect is not 100-continue"};
static const struct fault trace_body = {400, "TRACE with a body"};
static const struct fault body_where_none = {502, "a body is announced on a status that has none"};
static const struct fault odd_101 = {502, "101 without Connection: upgrade and one Upgrade field"};

/* What one pass over the fields has found. */
struct found {
    const struct field *length, *encoding, *host, *upgrade, *expect;
    unsigned lengths, encodings, hosts, upgrades, connections;
    unsigned options; /* tokens in Connection */
    bool close, keep_alive, upgrade_option;
    bool odd_expect;
};

/* Schemes that log a connection in, not a request (RFC 4559, section 6): who has its link next would be that user. */
static bool logs_connection_in(struct text scheme)
{
    return text_is(scheme, "ntlm") || text_is(scheme, "negotiate");
}

static struct text first_word(struct text value)
{
    return (struct text){value.at, chars_span(value.at, value.n, CHAR_TOKEN)};
}

/* Offers may stand behind one another, between parameters: any word counts. */
static bool offers_login(struct text value)
{
    for (size_t n; value.n > 0; value = (struct text){value.at + n, value.n - n}) {
        struct text word = first_word(value);

        if (logs_connection_in(word))
            return true;
        n = word.n > 0 ? word.n : 1;
    }
    return false;
}

static void find(struct head *head, struct found *found)
{
    for (const struct field *field = head->fields; field < head->fields + head->n_fields; field++)
        switch (field->known) {
        case FIELD_CONTENT_LENGTH:
            found->length = field;
            found->lengths++;
            break;
        case FIELD_TRANSFER_ENCODING:
            found->encoding = field;
            found->encodings++;
            break;
        case FIELD_HOST:
            found->host = field;
            found->hosts++;
            break;
        case FIELD_UPGRADE:
            found->upgrade = field;
            found->upgrades++;
            break;
        case FIELD_CONNECTION:
            found->connections++;
            break;
        case FIELD_AUTHORIZATION:
            head->identity = head->identity || logs_connection_in(first_word(field->value));
            break;
        case FIELD_WWW_AUTHENTICATE:
            head->identity = head->identity || offers_login(field->value);
            break;
        case FIELD_EXPECT:
            found->expect = field;
            found->odd_expect = found->odd_expect || !text_is(field->value, "100-continue");
            break;
        default:
            break;
        }
}

/* ---- framing ---- */

static const struct fault *read_length(struct text text, uint64_t *length)
{
    uint64_t value = 0;

    if (text.n == 0 || text.n > 19 || chars_span(text.at, text.n, CHAR_DIGIT) != text.n)
        return &odd_length;
    for (size_t i = 0; i < text.n; i++) /* 19 digits are below 2^64 */
        value = value * 10 + (uint64_t)(text.at[i] - '0');
    if (value > INT64_MAX)
        return &large_length;
    *length = value;
    return NULL;
}

static const struct fault *judge_framing(struct head *head, const struct found *found)
{
    if (found->lengths > 0 && found->encodings > 0)
        return &both;
    if (found->lengths > 1)
        return &two_lengths;
    if (found->encodings > 1)
        return &two_encodings;
    if (found->encodings == 1 && head->minor == 0)
        return &old_encoding;
    if (found->encodings == 1 && !text_is(found->encoding->value, "chunked"))
        return &odd_encoding;
    head->has_length = found->lengths == 1;
    head->chunked = found->encodings == 1;
    head->framing = head->chunked ? FRAMING_CHUNKED : head->has_length ? FRAMING_LENGTH : FRAMING_NONE;
    return head->has_length ? read_length(found->length->value, &head->length) : NULL;
}

static bool has_body(const struct head *head)
{
    return head->chunked || head->length > 0;
}

/* ---- Connection ---- */

static void mark_hop(struct head *head, struct text option)
{
    for (struct field *field = head->fields; field < head->fields + head->n_fields; field++)
        if (!field->hop && field->name.n == option.n && !field_is_kept(field->known) && text_same(field->name, option))
            field->hop = true;
}

static const struct fault *take_option(struct head *head, struct found *found, struct text option)
{
    if (option.n == 0) /* an empty member of a list is none */
        return NULL;
    if (chars_span(option.at, option.n, CHAR_TOKEN) != option.n)
        return &odd_connection;
    if (++found->options > HEAD_MAX_OPTIONS)
        return &many_options;
    if (text_is(option, "close"))
        found->close = true;
    else if (text_is(option, "keep-alive"))
        found->keep_alive = true;
    else if (text_is(option, "upgrade"))
        found->upgrade_option = true;
    else
        head->names_fields = true;
    mark_hop(head, option);
    return NULL;
}

static const struct fault *take_options(struct head *head, struct found *found, struct text list)
{
    const struct fault *fault = NULL;

    while (fault == NULL && list.n > 0) {
        const char *comma = memchr(list.at, ',', list.n);
        size_t n = comma != NULL ? (size_t)(comma - list.at) : list.n;

        fault = take_option(head, found, text_trim((struct text){list.at, n}));
        n += comma != NULL;
        list = (struct text){list.at + n, list.n - n};
    }
    return fault;
}

static const struct fault *judge_connection(struct head *head, struct found *found)
{
    const struct fault *fault = NULL;

    for (unsigned i = 0; found->connections > 0 && i < head->n_fields && fault == NULL; i++)
        if (head->fields[i].known == FIELD_CONNECTION)
            fault = take_options(head, found, head->fields[i].value);
    head->keep_alive = !found->close && (head->minor == 1 || found->keep_alive);
    return fault;
}

/* One protocol, with or without a version, but not HTTP/2: a tunnel would carry requests past the proxy. */
static bool is_protocol(struct text text)
{
    size_t n = chars_span(text.at, text.n, CHAR_TOKEN);

    if (n == 0 || text_is((struct text){text.at, n}, "h2c"))
        return false;
    return n == text.n || (text.at[n] == '/' && n + 1 < text.n &&
                              chars_span(text.at + n + 1, text.n - n - 1, CHAR_TOKEN) == text.n - n - 1);
}

static bool may_upgrade(const struct head *head, const struct found *found)
{
    return found->upgrade_option && found->upgrades == 1 && head->minor == 1 && is_protocol(found->upgrade->value) &&
           !has_body(head);
}

/* ---- requests ---- */

static const struct fault *judge_host(struct head *head, const struct found *found)
{
    if (found->hosts > 1)
        return &two_hosts;
    if (found->hosts == 0)
        return head->minor == 1 ? &no_host : NULL;
    if (!start_is_authority(found->host->value))
        return &odd_host;
    if (head->host.n > 0 && !text_same(head->host, found->host->value))
        return &other_host;
    if (head->host.n == 0)
        head->host = found->host->value;
    return NULL;
}

/* Names with '_' are dropped: gateways behind make "a-b" and "a_b" one. */
static void drop_underscores(struct head *head)
{
    for (struct field *field = head->fields; field < head->fields + head->n_fields; field++)
        if (field->known == FIELD_OTHER && memchr(field->name.at, '_', field->name.n) != NULL)
            field->hop = true;
}

const struct fault *rules_request(struct head *head)
{
    struct found found = {0};
    const struct fault *fault;

    find(head, &found);
    fault = judge_framing(head, &found);
    if (fault == NULL)
        fault = judge_host(head, &found);
    if (fault == NULL)
        fault = judge_connection(head, &found);
    if (fault != NULL)
        return fault;
    if (head->method == HTTP_TRACE && has_body(head))
        return &trace_body;
    if (found.odd_expect)
        return &odd_expect;
    head->expects_continue = found.expect != NULL && !found.expect->hop && head->minor == 1;
    head->upgrade = may_upgrade(head, &found);
    drop_underscores(head);
    return NULL;
}

/* ---- answers ---- */

/* By its status an answer has no body, whatever its fields say, or must say. */
static const struct fault *judge_body(struct head *head, bool to_head)
{
    if (head->status < 200 || head->status == 204) {
        if (has_body(head))
            return &body_where_none;
        head->has_length = false; /* it was 0, and is not passed on */
        head->framing = FRAMING_NONE;
    } else if (to_head || head->status == 304) {
        head->framing = FRAMING_NONE;
    } else if (head->framing == FRAMING_NONE) {
        head->framing = FRAMING_UNTIL_CLOSE;
        head->keep_alive = false;
    }
    return NULL;
}

const struct fault *rules_answer(struct head *head, bool to_head)
{
    struct found found = {0};
    const struct fault *fault;

    find(head, &found);
    fault = judge_framing(head, &found);
    if (fault == NULL)
        fault = judge_connection(head, &found);
    if (fault == NULL)
        fault = judge_body(head, to_head);
    if (fault != NULL)
        return fault;
    head->upgrade = may_upgrade(head, &found);
    return head->status == 101 && !head->upgrade ? &odd_101 : NULL;
}
