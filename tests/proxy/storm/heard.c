/* heard.c - llhttp's callbacks: nothing of another's answer passes, and nothing behind an answer. */
#include "tests/proxy/storm/heard.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "examples/common/text.h"

static const char *const field_names[] = {"x-backend", "x-id", "x-request-id", "set-cookie", "x-taken", "x-plan"};

static int is_wrong(struct heard *heard, const char *why)
{
    if (heard->wrong == NULL)
        heard->wrong = why;
    return HPE_USER;
}

static bool is_own(const struct heard *heard)
{
    return heard->field[HEARD_BACKEND][0] == '\0';
}

/* ---- the head ---- */

static int on_begin(llhttp_t *parser)
{
    struct heard *heard = parser->data;

    heard->name_n = heard->value_n = 0;
    memset(heard->field, 0, sizeof heard->field);
    return HPE_OK;
}

static int on_name(llhttp_t *parser, const char *at, size_t n)
{
    struct heard *heard = parser->data;

    heard->name_n = text_append(heard->name, heard->name_n, sizeof heard->name, at, n);
    return HPE_OK;
}

static int on_value(llhttp_t *parser, const char *at, size_t n)
{
    struct heard *heard = parser->data;

    heard->value_n = text_append(heard->value, heard->value_n, sizeof heard->value, at, n);
    return HPE_OK;
}

static int on_field_over(llhttp_t *parser)
{
    struct heard *heard = parser->data;

    for (int i = 0; i < HEARD_FIELDS; i++)
        if (heard->value_n > 0 && strcasecmp(heard->name, field_names[i]) == 0)
            memcpy(heard->field[i], heard->value, sizeof heard->value);
    heard->name_n = heard->value_n = 0;
    return HPE_OK;
}

/* Whose answer it is. What was taken of a request may be unknown to a backend that answers early. */
static int check_whose(struct heard *heard)
{
    const struct wish *wish = heard->wish;
    bool early = strncmp(heard->field[HEARD_PLAN], "early", 5) == 0 && strcmp(heard->field[HEARD_TAKEN], "early") == 0;
    char id[24], cookie[PLAN_COOKIE + 16];

    snprintf(id, sizeof id, "%" PRIu64, wish->id);
    snprintf(cookie, sizeof cookie, "c=%s; Path=/", wish->cookie);
    if (strcmp(heard->field[HEARD_ID], id) != 0)
        return is_wrong(heard, "another's_X-Id");
    if (strcmp(heard->field[HEARD_REQUEST_ID], id) != 0)
        return is_wrong(heard, "another's_X-Request-Id");
    if (strcmp(heard->field[HEARD_COOKIE], cookie) != 0)
        return is_wrong(heard, "another's_cookie");
    if (!early && strcmp(heard->field[HEARD_TAKEN], heard->sent) != 0)
        return is_wrong(heard, "another_body_was_taken");
    return HPE_OK;
}

static uint64_t whole_size(const struct heard *heard)
{
    return heard->line_n + plan_answer_size(heard->wish->id);
}

static int check_framing(struct heard *heard)
{
    const llhttp_t *parser = &heard->parser;

    if (heard->wish->minor == 0 && (parser->flags & F_CHUNKED) != 0)
        return is_wrong(heard, "chunked,_to_HTTP/1.0");
    if (!is_own(heard) && (parser->flags & F_CONTENT_LENGTH) != 0 && heard->status != 204 &&
        parser->content_length != whole_size(heard))
        return is_wrong(heard, "another_Content-Length");
    return HPE_OK;
}

/* An answer before the answer: the callbacks begin anew with the next. */
static int take_hint(struct heard *heard)
{
    if (heard->wish->minor == 0)
        return is_wrong(heard, "1xx,_to_HTTP/1.0");
    if (heard->parser.status_code == 100)
        heard->may_continue = true;
    return HPE_OK;
}

static int on_head(llhttp_t *parser)
{
    struct heard *heard = parser->data;

    if (parser->status_code < 200)
        return take_hint(heard) == HPE_OK ? 0 : -1;
    heard->status = (unsigned)parser->status_code;
    if (!is_own(heard) && check_whose(heard) != HPE_OK)
        return -1;
    heard->line_n = plan_answer_line(heard->line, heard->wish->id, heard->wish->cookie, heard->field[HEARD_TAKEN]);
    if (check_framing(heard) != HPE_OK)
        return -1;
    return heard->wish->method == PLAN_HEAD; /* 1: no body follows */
}

/* ---- the body ---- */

/* One word of it: for the log. */
static void keep_text(struct heard *heard, const char *at, size_t n)
{
    heard->text_n = text_append(heard->text, heard->text_n, sizeof heard->text, at, n);
    for (char *c = heard->text; *c != '\0'; c++)
        if (*c <= ' ' || *c > '~')
            *c = '_';
}

static int check_line(struct heard *heard, const char *at, size_t n, size_t *used)
{
    size_t place = heard->bytes < heard->line_n ? (size_t)heard->bytes : heard->line_n;

    *used = heard->line_n - place < n ? heard->line_n - place : n;
    return memcmp(at, heard->line + place, *used) == 0 ? HPE_OK : is_wrong(heard, "another's_body:_its_line");
}

static int on_body(llhttp_t *parser, const char *at, size_t n)
{
    struct heard *heard = parser->data;
    size_t used, place;

    if (is_own(heard)) {
        keep_text(heard, at, n);
        heard->bytes += n;
        return HPE_OK;
    }
    if (heard->bytes + n > whole_size(heard))
        return is_wrong(heard, "a_body_too_long");
    if (check_line(heard, at, n, &used) != HPE_OK)
        return HPE_USER;
    place = heard->bytes > heard->line_n ? (size_t)heard->bytes - heard->line_n : 0;
    if (memcmp(at + used, plan_answer_bytes(heard->wish->id) + place, n - used) != 0)
        return is_wrong(heard, "another's_body");
    heard->bytes += n;
    return HPE_OK;
}

static int on_whole(llhttp_t *parser)
{
    struct heard *heard = parser->data;

    if (parser->status_code < 200)
        return HPE_OK;
    heard->whole = true;
    heard->keep_alive = llhttp_should_keep_alive(parser) != 0;
    heard->shorter =
        !is_own(heard) && heard->wish->method != PLAN_HEAD && heard->status != 204 && heard->bytes != whole_size(heard);
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_message_begin = on_begin,
    .on_header_field = on_name,
    .on_header_value = on_value,
    .on_header_value_complete = on_field_over,
    .on_headers_complete = on_head,
    .on_body = on_body,
    .on_message_complete = on_whole,
};

/* ---- for the client ---- */

void heard_begin(struct heard *heard, const struct wish *wish, const char *sent)
{
    memset(heard, 0, sizeof *heard);
    heard->wish = wish;
    snprintf(heard->sent, sizeof heard->sent, "%s", sent);
    llhttp_init(&heard->parser, HTTP_RESPONSE, &settings);
    heard->parser.data = heard;
}

enum heard_step heard_take(struct heard *heard, const char *bytes, size_t n)
{
    llhttp_errno_t error = llhttp_execute(&heard->parser, bytes, n);

    if (error == HPE_OK)
        return HEARD_MORE;
    if (error == HPE_PAUSED && llhttp_get_error_pos(&heard->parser) == bytes + n)
        return HEARD_WHOLE;
    is_wrong(heard, error == HPE_PAUSED ? "bytes_behind_the_answer" : llhttp_errno_name(error));
    return HEARD_WRONG;
}

enum heard_step heard_end(struct heard *heard)
{
    llhttp_errno_t error = llhttp_finish(&heard->parser);

    heard->by_end = heard->whole;
    if (heard->whole && (error == HPE_OK || error == HPE_PAUSED))
        return HEARD_WHOLE;
    return HEARD_MORE;
}
