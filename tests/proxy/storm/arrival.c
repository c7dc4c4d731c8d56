/* arrival.c - llhttp's callbacks: fields are kept, bodies are compared with the place they come from. */
#include "tests/proxy/storm/arrival.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "examples/common/options.h"
#include "examples/common/text.h"

static const char *const field_names[] = {"x-request-id", "cookie", "x-forwarded-for", "expect"};
static const char path[] = "/s?id=";

void journal_say(const struct journal *journal, unsigned connection, const char *format, ...)
{
    char line[512];
    va_list arguments;
    int n = snprintf(line, sizeof line, "%.6f %d %u ", plan_now(), (int)getpid(), connection);

    va_start(arguments, format);
    n += vsnprintf(line + n, sizeof line - (size_t)n - 1, format, arguments);
    va_end(arguments);
    if (n > (int)sizeof line - 2)
        n = (int)sizeof line - 2;
    line[n++] = '\n';
    if (write(journal->fd, line, (size_t)n) != n)
        die("--log: %s: %s", journal->path, strerror(errno));
}

void arrival_is_wrong(struct arrival *arrival, const char *why)
{
    if (!arrival->wrong)
        journal_say(
            arrival->journal, arrival->connection, "WRONG %" PRIu64 " %s", arrival->headed ? arrival->wish.id : 0, why);
    arrival->wrong = true;
}

/* The id in the target, as far as it has come. */
static const char *id_in_target(const struct arrival *arrival)
{
    return strncmp(arrival->url, path, sizeof path - 1) == 0 ? arrival->url + sizeof path - 1 : "-";
}

/* ---- the head ---- */

static int on_begin(llhttp_t *parser)
{
    struct arrival *arrival = parser->data;

    arrival->url_n = arrival->name_n = arrival->value_n = 0;
    arrival->url[0] = '\0';
    memset(arrival->field, 0, sizeof arrival->field);
    arrival->begun = true;
    arrival->headed = arrival->whole = arrival->wrong = false;
    digest_begin(&arrival->digest);
    return HPE_OK;
}

static int on_url(llhttp_t *parser, const char *at, size_t n)
{
    struct arrival *arrival = parser->data;

    arrival->url_n = text_append(arrival->url, arrival->url_n, sizeof arrival->url, at, n);
    return HPE_OK;
}

static int on_name(llhttp_t *parser, const char *at, size_t n)
{
    struct arrival *arrival = parser->data;

    arrival->name_n = text_append(arrival->name, arrival->name_n, sizeof arrival->name, at, n);
    return HPE_OK;
}

static int on_value(llhttp_t *parser, const char *at, size_t n)
{
    struct arrival *arrival = parser->data;

    arrival->value_n = text_append(arrival->value, arrival->value_n, sizeof arrival->value, at, n);
    return HPE_OK;
}

static int on_field_over(llhttp_t *parser)
{
    struct arrival *arrival = parser->data;

    for (int i = 0; i < ARRIVAL_FIELDS; i++)
        if (arrival->value_n > 0 && strcasecmp(arrival->name, field_names[i]) == 0)
            memcpy(arrival->field[i], arrival->value, sizeof arrival->value);
    arrival->name_n = arrival->value_n = 0;
    return HPE_OK;
}

/* All of a head belongs to one request. */
static void check_head(struct arrival *arrival, const char *id, unsigned method)
{
    static const unsigned methods[] = {HTTP_GET, HTTP_HEAD, HTTP_POST, HTTP_PUT};
    const struct wish *wish = &arrival->wish;
    const char *cookie = arrival->field[ARRIVAL_COOKIE];

    if (strcmp(arrival->field[ARRIVAL_ID], id) != 0)
        arrival_is_wrong(arrival, "X-Request-Id");
    if (strncmp(cookie, "c=", 2) != 0 || strcmp(cookie + 2, wish->cookie) != 0)
        arrival_is_wrong(arrival, "Cookie");
    if (strcmp(arrival->field[ARRIVAL_FORWARDED], "127.0.0.1") != 0)
        arrival_is_wrong(arrival, "X-Forwarded-For");
    if (method != methods[wish->method])
        arrival_is_wrong(arrival, "method");
    if ((arrival->field[ARRIVAL_EXPECT][0] != '\0') != wish->expect)
        arrival_is_wrong(arrival, "Expect");
}

static int on_head(llhttp_t *parser)
{
    struct arrival *arrival = parser->data;
    const char *id = id_in_target(arrival);

    plan_wish(strtoull(id, NULL, 10), &arrival->wish);
    plan_act(&arrival->wish, arrival->backend, &arrival->act);
    arrival->headed = true;
    journal_say(arrival->journal, arrival->connection, "head %s %s %s %s %u", id,
        llhttp_method_name((llhttp_method_t)parser->method), plan_behaviour_name(arrival->act.behaviour),
        plan_framing_name(arrival->act.framing), arrival->act.status);
    check_head(arrival, id, parser->method);
    return HPE_OK;
}

/* ---- the body ---- */

static int on_body(llhttp_t *parser, const char *at, size_t n)
{
    struct arrival *arrival = parser->data;
    const struct wish *wish = &arrival->wish;
    size_t place = arrival->digest.bytes;

    if (place + n > wish->body)
        arrival_is_wrong(arrival, "longer than what was sent");
    else if (memcmp(at, plan_request_bytes(wish->id) + place, n) != 0)
        arrival_is_wrong(arrival, "another body than was sent");
    digest_add(&arrival->digest, at, n);
    return HPE_OK;
}

static int on_whole(llhttp_t *parser)
{
    struct arrival *arrival = parser->data;

    arrival->whole = true;
    arrival->begun = false;
    if (arrival->digest.bytes != arrival->wish.body)
        arrival_is_wrong(arrival, "shorter than what was sent");
    if (arrival->wish.has_body && !arrival->wrong)
        journal_say(arrival->journal, arrival->connection, "whole %" PRIu64, arrival->wish.id);
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_message_begin = on_begin,
    .on_url = on_url,
    .on_header_field = on_name,
    .on_header_value = on_value,
    .on_header_value_complete = on_field_over,
    .on_headers_complete = on_head,
    .on_body = on_body,
    .on_message_complete = on_whole,
};

/* ---- for connections ---- */

void arrival_begin(struct arrival *arrival, const struct journal *journal, unsigned connection, unsigned backend)
{
    arrival->journal = journal;
    arrival->connection = connection;
    arrival->backend = backend;
    llhttp_init(&arrival->parser, HTTP_REQUEST, &settings);
    arrival->parser.data = arrival;
}

bool arrival_take(struct arrival *arrival, const char *bytes, size_t n, size_t *used)
{
    llhttp_errno_t error = llhttp_execute(&arrival->parser, bytes, n);

    *used = n;
    if (error == HPE_PAUSED) {
        *used = (size_t)(llhttp_get_error_pos(&arrival->parser) - bytes);
        llhttp_resume(&arrival->parser);
        return true;
    }
    if (error != HPE_OK)
        arrival_is_wrong(arrival, llhttp_errno_name(error));
    return error == HPE_OK;
}

void arrival_end(const struct arrival *arrival)
{
    if (arrival->begun && !arrival->headed)
        journal_say(arrival->journal, arrival->connection, "part %s", id_in_target(arrival));
    else if (arrival->begun)
        journal_say(arrival->journal, arrival->connection, "broken_off %" PRIu64, arrival->wish.id);
}
