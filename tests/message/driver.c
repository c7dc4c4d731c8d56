/* driver.c - see driver.h. */
#include "tests/message/driver.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/lbproxy/message/compose.h"
#include "examples/lbproxy/message/start.h"

#define CLIENT     "192.0.2.7"
#define AUTHORITY  "dialled.example:80"
#define REQUEST_ID "0123456789abcdef0123456789abcdef"

_Noreturn void must(const char *what, const char *file, int line)
{
    fprintf(stderr, "%s:%d: %s does not hold\n", file, line, what);
    abort();
}

static char *exact(const char *at, size_t n)
{
    char *copy = malloc(n > 0 ? n : 1);

    MUST(copy != NULL);
    memcpy(copy, at, n);
    return copy;
}

static void append(struct bytes *bytes, const char *at, size_t n)
{
    bytes->at = realloc(bytes->at, bytes->n + n + 1);
    MUST(bytes->at != NULL);
    if (n > 0)
        memcpy(bytes->at + bytes->n, at, n);
    bytes->n += n;
    bytes->at[bytes->n] = '\0';
}

/* ---- taking a message ---- */

static size_t next_cut(const struct cuts *cuts, size_t have, size_t n)
{
    size_t next = n;

    for (size_t i = cuts->n; i-- > 0 && cuts->at[i] > have;)
        if (cuts->at[i] < next)
            next = cuts->at[i];
    if (cuts->every > 0 && (have / cuts->every + 1) * cuts->every < next)
        next = (have / cuts->every + 1) * cuts->every;
    return next;
}

static enum message_step take_head(
    struct outcome *outcome, struct message *message, const char *bytes, size_t have, size_t max, size_t *used)
{
    char *copy = exact(bytes, have);
    size_t head_n = 0;
    enum message_step step = message_scan(message, copy, have, max, &head_n);

    if (step == MESSAGE_WHOLE) {
        MUST(head_n <= have && head_n <= max);
        outcome->head_bytes = (struct bytes){exact(bytes, head_n), head_n};
        step = message_head(message, outcome->head_bytes.at, head_n, &outcome->head);
        outcome->has_head = step == MESSAGE_WHOLE;
        *used = head_n;
    }
    free(copy);
    return step;
}

static void keep_body(struct outcome *outcome, const struct parts *parts)
{
    size_t n = 0;

    MUST(parts->n <= PARTS_MAX);
    for (int i = 0; i < parts->n; i++) {
        append(&outcome->body, parts->iov[2 + i].iov_base, parts->iov[2 + i].iov_len);
        n += parts->iov[2 + i].iov_len;
    }
    MUST(n == parts->bytes);
}

static enum message_step take_body(
    struct outcome *outcome, struct message *message, const char *bytes, size_t n, size_t *taken)
{
    char *copy = exact(bytes, n);
    enum message_step step = MESSAGE_MORE;
    struct parts parts;
    size_t used;

    for (*taken = 0; step == MESSAGE_MORE && *taken < n; *taken += used) {
        parts_begin(&parts);
        step = message_body(message, copy + *taken, n - *taken, &used, &parts);
        keep_body(outcome, &parts);
        MUST(used <= n - *taken);
        MUST(step != MESSAGE_MORE || used == n - *taken || parts.n == PARTS_MAX);
    }
    free(copy);
    return step;
}

static void finish(struct outcome *outcome, struct message *message, enum message_step step)
{
    if (step == MESSAGE_MORE && outcome->has_head)
        step = message->whole ? MESSAGE_WHOLE : message_close(message);
    outcome->end = step;
    outcome->fault = message->fault;
    MUST((step == MESSAGE_BAD) == (message->fault.text != NULL));
    MUST(step != MESSAGE_BAD || outcome->kind == MESSAGE_REQUEST || message->fault.status == 502);
    MUST(message->trailer_n <= MESSAGE_MAX_TRAILER);
    if (step == MESSAGE_WHOLE)
        append(&outcome->trailer, message->trailer, message->trailer_n);
    message_end(message);
    message_end(message);
}

void outcome_take(
    struct outcome *outcome, enum message_kind kind, const char *bytes, size_t n, size_t max, const struct cuts *cuts)
{
    struct message message;
    enum message_step step = MESSAGE_MORE;
    size_t have = 0, used = 0, taken = 0;

    memset(outcome, 0, sizeof *outcome);
    outcome->kind = kind;
    append(&outcome->body, "", 0);
    append(&outcome->trailer, "", 0);
    message_begin(&message, kind);
    while (step == MESSAGE_MORE && have < n) {
        have = next_cut(cuts, have, n);
        if (!outcome->has_head)
            step = take_head(outcome, &message, bytes, have, max, &used);
        if (outcome->has_head && !message.whole) {
            step = take_body(outcome, &message, bytes + used, have - used, &taken);
            used += taken;
        }
    }
    outcome->used = used;
    finish(outcome, &message, step);
}

void outcome_free(struct outcome *outcome)
{
    free(outcome->head_bytes.at);
    free(outcome->body.at);
    free(outcome->trailer.at);
}

/* ---- showing it ---- */

static int width(struct text text)
{
    return (int)text.n;
}

static void show_head(FILE *out, const struct outcome *outcome)
{
    const struct head *head = &outcome->head;

    fprintf(out, "1.%u", head->minor);
    if (outcome->kind == MESSAGE_REQUEST)
        fprintf(out, " %s target=%.*s host=%.*s", llhttp_method_name(head->method), width(head->target),
            head->target.at, width(head->host), head->host.at);
    else
        fprintf(out, " %u reason=%.*s", head->status, width(head->reason), head->reason.at);
    fprintf(out, "%s%s%s%s%s framing=%d length=%" PRIu64 "\n", head->has_length ? " has_length" : "",
        head->chunked ? " chunked" : "", head->keep_alive ? " keep_alive" : "",
        head->expects_continue ? " expects_continue" : "", head->upgrade ? " upgrade" : "", (int)head->framing,
        head->length);
    for (unsigned i = 0; i < head->n_fields; i++)
        fprintf(out, "%s%.*s: %.*s\n", head->fields[i].hop ? "(hop) " : "", width(head->fields[i].name),
            head->fields[i].name.at, width(head->fields[i].value), head->fields[i].value.at);
}

void outcome_show(const struct outcome *outcome, struct bytes *text)
{
    FILE *out;

    *text = (struct bytes){0};
    out = open_memstream(&text->at, &text->n);
    MUST(out != NULL);
    if (outcome->end == MESSAGE_BAD)
        fprintf(out, "bad %u %s\n", outcome->fault.status, outcome->fault.text);
    else
        fprintf(out, outcome->end == MESSAGE_WHOLE ? "whole\n" : "more\n");
    if (outcome->has_head)
        show_head(out, outcome);
    fprintf(out, "body %zu:", outcome->body.n);
    fwrite(outcome->body.at, 1, outcome->body.n, out);
    fprintf(out, "\ntrailer %zu:", outcome->trailer.n);
    fwrite(outcome->trailer.at, 1, outcome->trailer.n, out);
    fclose(out);
}

/* ---- composing it ---- */

static size_t compose_head(const struct outcome *outcome, unsigned minor, char *out, size_t room, enum framing *framing)
{
    const struct request_terms request = {CLIENT, AUTHORITY, REQUEST_ID};
    const struct answer_terms answer = {minor, false, compose_framing(&outcome->head, minor)};

    *framing = outcome->kind == MESSAGE_REQUEST ? outcome->head.framing : answer.framing;
    if (outcome->kind == MESSAGE_REQUEST)
        return compose_request(out, room, &outcome->head, &request);
    return compose_answer(out, room, &outcome->head, &answer);
}

/* The body in two pieces, and written in two steps, cut at some place. */
static void compose_body(
    const struct outcome *outcome, enum framing framing, const struct bytes *head, struct bytes *wire)
{
    struct parts parts;
    size_t half = outcome->body.n / 2, skip;

    parts_begin(&parts);
    MUST(parts_add(&parts, outcome->body.at, half));
    MUST(parts_add(&parts, outcome->body.at + half, outcome->body.n - half));
    MUST(parts.n <= 1);
    if (framing == FRAMING_CHUNKED)
        parts_chunk(&parts, true, outcome->trailer.at, outcome->trailer.n);
    else
        parts_plain(&parts);
    parts_put_first(&parts, head->at, head->n);
    while ((skip = parts_left(&parts)) > 0) {
        MUST(parts.first < parts.last);
        skip = skip % 7 + 1 < skip ? skip % 7 + 1 : skip;
        for (size_t taken = 0, i = (size_t)parts.first; taken < skip; i++) {
            size_t n = parts.iov[i].iov_len < skip - taken ? parts.iov[i].iov_len : skip - taken;

            append(wire, parts.iov[i].iov_base, n);
            taken += n;
        }
        parts_skip(&parts, skip);
    }
}

void outcome_compose(const struct outcome *outcome, unsigned minor, struct bytes *wire)
{
    size_t room = outcome->head_bytes.n + COMPOSE_ROOM;
    char *out = malloc(room);
    enum framing framing;
    struct bytes head = {out, compose_head(outcome, minor, out, room, &framing)};

    MUST(head.n > 0);
    *wire = (struct bytes){0};
    compose_body(outcome, framing, &head, wire);
    free(out);
}

/* ---- taking out what was added ---- */

/* "given, added" becomes "given"; "added" alone goes. */
static bool strip_value(struct head *head, enum field_name known, const char *added)
{
    size_t n = strlen(added);

    for (struct field *field = head->fields; field < head->fields + head->n_fields; field++) {
        struct text *value = &field->value;

        if (field->known != known)
            continue;
        if (value->n < n || memcmp(value->at + value->n - n, added, n) != 0)
            return false;
        value->n -= value->n > n ? n + 2 : n;
        if (value->n == 0)
            field->hop = true;
        return true;
    }
    return false;
}

bool outcome_strip(struct outcome *outcome, const struct outcome *from)
{
    bool stripped = strip_value(&outcome->head, FIELD_VIA, from->head.minor == 0 ? "1.0 lbproxy" : "1.1 lbproxy");

    if (outcome->kind == MESSAGE_REQUEST)
        stripped = strip_value(&outcome->head, FIELD_X_FORWARDED_FOR, CLIENT) && stripped;
    outcome->head.minor = from->head.minor;
    return stripped;
}

/* ---- comparing it ---- */

static bool same_text(struct text a, struct text b)
{
    return a.n == b.n && memcmp(a.at, b.at, a.n) == 0;
}

static bool same_bytes(const struct bytes *a, const struct bytes *b)
{
    return a->n == b->n && (a->n == 0 || memcmp(a->at, b->at, a->n) == 0);
}

/* Whether the field goes through as it is. */
static bool passes(const struct outcome *outcome, const struct field *field)
{
    bool request = outcome->kind == MESSAGE_REQUEST;

    switch (field->known) {
    case FIELD_CONTENT_LENGTH:
    case FIELD_VIA:
        return false;
    case FIELD_HOST:
    case FIELD_X_FORWARDED_FOR:
    case FIELD_X_FORWARDED_PROTO:
    case FIELD_X_REQUEST_ID:
        return !request && !field->hop;
    case FIELD_EXPECT:
        return (!request || outcome->head.expects_continue) && !field->hop;
    default:
        return !field->hop;
    }
}

static const struct field *next_passing(const struct outcome *outcome, const struct field *field)
{
    const struct field *end = outcome->head.fields + outcome->head.n_fields;

    while (field < end && !passes(outcome, field))
        field++;
    return field < end ? field : NULL;
}

static bool same_fields(const struct outcome *first, const struct outcome *second)
{
    const struct field *a = next_passing(first, first->head.fields), *b = next_passing(second, second->head.fields);

    while (a != NULL && b != NULL && same_text(a->name, b->name) && same_text(a->value, b->value)) {
        a = next_passing(first, a + 1);
        b = next_passing(second, b + 1);
    }
    return a == NULL && b == NULL;
}

static bool same_target(struct text a, struct text b)
{
    return same_text(a, b) || (a.at[0] == '?' && b.at[0] == '/' && same_text(a, (struct text){b.at + 1, b.n - 1}));
}

static bool same_request(const struct head *a, const struct head *b)
{
    const struct text authority = {AUTHORITY, sizeof AUTHORITY - 1};

    return a->method == b->method && same_target(a->target, b->target) &&
           same_text(a->host.n > 0 ? a->host : authority, b->host) && a->framing == b->framing &&
           a->has_length == b->has_length && a->chunked == b->chunked && a->expects_continue == b->expects_continue &&
           a->upgrade == b->upgrade;
}

bool outcome_means_same(const struct outcome *first, unsigned minor, const struct outcome *second)
{
    const struct head *a = &first->head, *b = &second->head;
    bool chunked = b->framing == FRAMING_CHUNKED;

    if (second->end != MESSAGE_WHOLE || !same_fields(first, second) || !same_bytes(&first->body, &second->body))
        return false;
    if (second->trailer.n != (chunked ? first->trailer.n : 0) ||
        (chunked && !same_bytes(&first->trailer, &second->trailer)))
        return false;
    if (a->has_length != b->has_length || a->length != b->length)
        return false;
    if (first->kind == MESSAGE_REQUEST)
        return same_request(a, b);
    return a->status == b->status && same_text(a->reason, b->reason) && b->framing == compose_framing(a, minor);
}
