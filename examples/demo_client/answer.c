/* answer.c - llhttp's callbacks: they keep two headers and a line of the body, and pause at each answer's end. */
#include "examples/demo_client/answer.h"

#include <string.h>
#include <strings.h>

#include "examples/common/text.h"

static int on_begin(llhttp_t *parser)
{
    struct answer *answer = parser->data;

    answer->name_n = answer->value_n = answer->line_n = 0;
    answer->id[0] = answer->line[0] = '\0';
    answer->body = 0;
    answer->names_backend = false;
    return HPE_OK;
}

static int on_name(llhttp_t *parser, const char *at, size_t n)
{
    struct answer *answer = parser->data;

    answer->name_n = text_append(answer->name, answer->name_n, sizeof answer->name, at, n);
    return HPE_OK;
}

static int on_value(llhttp_t *parser, const char *at, size_t n)
{
    struct answer *answer = parser->data;

    answer->value_n = text_append(answer->value, answer->value_n, sizeof answer->value, at, n);
    return HPE_OK;
}

static int on_header_over(llhttp_t *parser)
{
    struct answer *answer = parser->data;

    if (answer->value_n > 0 && strcasecmp(answer->name, "x-backend") == 0) {
        memcpy(answer->backend, answer->value, sizeof answer->backend);
        answer->names_backend = true;
    }
    if (answer->value_n > 0 && strcasecmp(answer->name, "x-request-id") == 0)
        memcpy(answer->id, answer->value, sizeof answer->id);
    answer->name_n = answer->value_n = 0;
    return HPE_OK;
}

static int on_body(llhttp_t *parser, const char *at, size_t n)
{
    struct answer *answer = parser->data;

    if (answer->body == answer->line_n) /* what is kept is all so far */
        answer->line_n = text_append(answer->line, answer->line_n, sizeof answer->line, at, n);
    answer->body += n;
    return HPE_OK;
}

static int on_whole(llhttp_t *parser)
{
    struct answer *answer = parser->data;

    if (!answer->names_backend)
        answer->backend[0] = '\0';
    answer->line[strcspn(answer->line, "\r\n")] = '\0';
    answer->status = parser->status_code;
    answer->keep_alive = llhttp_should_keep_alive(parser) != 0;
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_message_begin = on_begin,
    .on_header_field = on_name,
    .on_header_value = on_value,
    .on_header_value_complete = on_header_over,
    .on_body = on_body,
    .on_message_complete = on_whole,
};

void answer_init(struct answer *answer)
{
    memset(answer, 0, sizeof *answer);
    llhttp_init(&answer->parser, HTTP_RESPONSE, &settings);
    answer->parser.data = answer;
}

static enum answer_step refuse(struct answer *answer, const char *fault)
{
    answer->fault = fault;
    return ANSWER_BAD;
}

enum answer_step answer_parse(struct answer *answer, const char *bytes, size_t n)
{
    llhttp_errno_t error = llhttp_execute(&answer->parser, bytes, n);

    if (error == HPE_OK)
        return ANSWER_MORE;
    if (error != HPE_PAUSED)
        return refuse(answer, llhttp_errno_name(error));
    if (llhttp_get_error_pos(&answer->parser) != bytes + n)
        return refuse(answer, "bytes after the answer");
    llhttp_resume(&answer->parser);
    return ANSWER_WHOLE;
}
