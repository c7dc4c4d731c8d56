/* oracle.c - see oracle.h. It shares no code with the parser but the fields that it has found. */
#include "tests/message/oracle.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static unsigned count(const struct head *head, const char *name)
{
    unsigned n = 0;

    for (unsigned i = 0; i < head->n_fields; i++)
        n += head->fields[i].name.n == strlen(name) &&
             strncasecmp(head->fields[i].name.at, name, head->fields[i].name.n) == 0;
    return n;
}

/* Each CR and LF of the head ends a line, no other byte is a control byte, and no line is folded. */
static void check_lines(const struct bytes *head, unsigned fields)
{
    unsigned lines = 0;

    for (size_t i = 0; i < head->n; i++) {
        unsigned char byte = (unsigned char)head->at[i], next = i + 1 < head->n ? (unsigned char)head->at[i + 1] : 'x';

        MUST(byte != 0x7f && (byte >= ' ' || byte == '\t' || byte == '\r' || byte == '\n'));
        MUST(byte != '\r' || next == '\n');
        MUST(byte != '\n' || (i > 0 && head->at[i - 1] == '\r'));
        MUST(byte != '\n' || (next != ' ' && next != '\t'));
        lines += byte == '\n';
    }
    MUST(lines == fields + 2 || (lines == fields + 3 && head->at[0] == '\r'));
}

static void check_fields(const struct head *head)
{
    for (unsigned i = 0; i < head->n_fields; i++) {
        struct text name = head->fields[i].name, value = head->fields[i].value;

        MUST(name.n > 0 && name.at[name.n] == ':');
        for (size_t at = 0; at < name.n; at++)
            MUST(isalnum((unsigned char)name.at[at]) ||
                 (name.at[at] != '\0' && strchr("!#$%&'*+-.^_`|~", name.at[at]) != NULL));
        MUST(value.n == 0 || !isspace((unsigned char)value.at[0]));
        MUST(value.n == 0 || !isspace((unsigned char)value.at[value.n - 1]));
    }
}

static void check_framing(const struct outcome *outcome)
{
    const struct head *head = &outcome->head;
    unsigned lengths = count(head, "content-length"), encodings = count(head, "transfer-encoding");
    bool none = outcome->kind != MESSAGE_REQUEST && (outcome->kind == MESSAGE_ANSWER_TO_HEAD || head->status < 200 ||
                                                        head->status == 204 || head->status == 304);

    MUST(lengths + encodings <= 1);
    MUST(encodings == 0 || head->minor == 1);
    if (none)
        MUST(head->framing == FRAMING_NONE);
    else if (encodings == 1)
        MUST(head->framing == FRAMING_CHUNKED);
    else if (lengths == 1)
        MUST(head->framing == FRAMING_LENGTH);
    else
        MUST(head->framing == (outcome->kind == MESSAGE_REQUEST ? FRAMING_NONE : FRAMING_UNTIL_CLOSE));
    for (unsigned i = 0; i < head->n_fields; i++) {
        struct text value = head->fields[i].value;

        if (head->fields[i].known == FIELD_TRANSFER_ENCODING)
            MUST(value.n == 7 && strncasecmp(value.at, "chunked", 7) == 0);
        for (size_t at = 0; head->fields[i].known == FIELD_CONTENT_LENGTH && at < value.n; at++)
            MUST(value.at[at] >= '0' && value.at[at] <= '9');
    }
}

/* Written anew by the proxy, whatever Connection says of them. */
static bool is_written_anew(struct text name)
{
    static const char *const names[] = {
        "host", "content-length", "via", "x-forwarded-for", "x-forwarded-proto", "x-request-id"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (name.n == strlen(names[i]) && strncasecmp(name.at, names[i], name.n) == 0)
            return true;
    return false;
}

/* No field goes on that is named as a whole word in this value of Connection. */
static void check_options(const struct head *head, struct text value)
{
    for (unsigned i = 0; i < head->n_fields; i++) {
        const struct field *field = &head->fields[i];

        for (size_t at = 0; !field->hop && !is_written_anew(field->name) && at + field->name.n <= value.n; at++)
            MUST(strncasecmp(value.at + at, field->name.at, field->name.n) != 0 ||
                 (at > 0 && strchr(" \t,", value.at[at - 1]) == NULL) ||
                 (at + field->name.n < value.n && strchr(" \t,", value.at[at + field->name.n]) == NULL));
    }
}

static void check_request(const struct head *head)
{
    unsigned hosts = count(head, "host");

    MUST(head->minor <= 1 && hosts <= 1 && hosts >= head->minor);
    MUST(head->host.n > 0 || hosts == 0);
    MUST(head->method != HTTP_CONNECT);
    MUST(head->target.n > 0 && strchr("/?*", head->target.at[0]) != NULL);
    for (size_t at = 0; at < head->target.n; at++)
        MUST(head->target.at[at] > ' ' && head->target.at[at] < 0x7f && head->target.at[at] != '#');
}

static void skip_line(const char **at, const char *end, const char *may)
{
    while (**at != '\r') {
        MUST((unsigned char)**at >= ' ' && **at != 0x7f && (may == NULL || strchr(may, **at) != NULL));
        MUST(++*at + 1 < end);
    }
    MUST((*at)[1] == '\n');
    *at += 2;
}

/* Reads the chunks again, and finds the same body, and the end at the same byte. */
static void check_chunks(const struct outcome *outcome, const char *at, const char *end)
{
    size_t body = 0, size;

    do {
        char *digits;

        MUST(isxdigit((unsigned char)*at) && (at[0] != '0' || tolower((unsigned char)at[1]) != 'x'));
        size = strtoull(at, &digits, 16);
        MUST(digits - at <= 16 && (*digits == '\r' || *digits == ';'));
        at = digits;
        skip_line(&at, end, NULL);
        MUST(at - digits <= 1 + 256 + 2);
        if (size == 0)
            break;
        MUST(size <= outcome->body.n - body && memcmp(outcome->body.at + body, at, size) == 0);
        body += size;
        at += size;
        MUST(*at == '\r');
        skip_line(&at, end, "");
    } while (true);
    MUST(body == outcome->body.n);
    while (*at != '\r') {
        const char *colon = memchr(at, ':', (size_t)(end - at)), *line = at;

        for (; *at != '\r'; at++)
            MUST((unsigned char)*at >= ' ' || *at == '\t');
        MUST(colon != NULL && colon > line && colon < at && *line != ' ' && *line != '\t');
        skip_line(&at, end, "");
    }
    MUST(at[1] == '\n' && at + 2 == end);
}

void oracle_check(const struct outcome *outcome, const char *bytes)
{
    const struct head *head = &outcome->head;
    size_t body = outcome->body.n;

    if (!outcome->has_head)
        return;
    check_lines(&outcome->head_bytes, head->n_fields);
    check_fields(head);
    check_framing(outcome);
    for (unsigned i = 0; i < head->n_fields; i++)
        if (head->fields[i].known == FIELD_CONNECTION)
            check_options(head, head->fields[i].value);
    if (outcome->kind == MESSAGE_REQUEST)
        check_request(head);
    if (outcome->end != MESSAGE_WHOLE)
        return;
    if (head->framing == FRAMING_CHUNKED)
        check_chunks(outcome, bytes + outcome->head_bytes.n, bytes + outcome->used);
    else
        MUST(outcome->used == outcome->head_bytes.n + body && outcome->trailer.n == 0);
    MUST(head->framing != FRAMING_LENGTH || head->length == body);
    MUST(head->framing != FRAMING_NONE || body == 0);
}

void oracle_check_composed(const struct outcome *composed)
{
    const struct head *head = &composed->head;
    bool request = composed->kind == MESSAGE_REQUEST;
    bool upgrade = head->upgrade && (request || head->status == 101);

    MUST(count(head, "connection") <= 1 && count(head, "via") == 1);
    MUST(!request || (count(head, "x-forwarded-for") == 1 && count(head, "x-forwarded-proto") == 1 &&
                         count(head, "x-request-id") == 1 && count(head, "connection") == upgrade));
    for (unsigned i = 0; i < head->n_fields; i++) {
        enum field_name known = head->fields[i].known;

        MUST(!head->fields[i].hop || known == FIELD_TRANSFER_ENCODING || known == FIELD_CONNECTION ||
             (upgrade && known == FIELD_UPGRADE));
    }
}
