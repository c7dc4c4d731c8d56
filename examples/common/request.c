/* request.c - llhttp's callbacks: they collect the id, count the header's bytes and pause at each request's end. */
#include "examples/common/request.h"

#include <string.h>
#include <strings.h>

#include "examples/common/text.h"

static struct request *of(llhttp_t *parser)
{
    return parser->data;
}

/* One word, whatever a client sends: it goes to a log, a line each. */
static void take_id(struct request *request, const char *id, size_t n)
{
    text_append(request->id, 0, sizeof request->id, id, n);
    for (char *c = request->id; *c != '\0'; c++)
        if (*c < '!' || *c > '~')
            *c = '_';
}

static void find_id_in_url(struct request *request)
{
    const char *at = strchr(request->url, '?');

    for (; at != NULL; at = strchr(at + 1, '&'))
        if (strncmp(at + 1, "id=", 3) == 0) {
            take_id(request, at + 4, strcspn(at + 4, "&#"));
            return;
        }
}

static int count_header(struct request *request, size_t n)
{
    request->header_bytes += n;
    return request->header_bytes > REQUEST_MAX_HEADER ? HPE_USER : HPE_OK;
}

static int on_begin(llhttp_t *parser)
{
    struct request *request = of(parser);

    request->header_bytes = 0;
    request->name_n = request->value_n = request->url_n = 0;
    request->url[0] = request->id[0] = '\0';
    return HPE_OK;
}

static int on_url(llhttp_t *parser, const char *at, size_t n)
{
    struct request *request = of(parser);

    request->url_n = text_append(request->url, request->url_n, sizeof request->url, at, n);
    return count_header(request, n);
}

static int on_name(llhttp_t *parser, const char *at, size_t n)
{
    struct request *request = of(parser);

    request->name_n = text_append(request->name, request->name_n, sizeof request->name, at, n);
    return count_header(request, n);
}

static int on_value(llhttp_t *parser, const char *at, size_t n)
{
    struct request *request = of(parser);

    request->value_n = text_append(request->value, request->value_n, sizeof request->value, at, n);
    return count_header(request, n);
}

static int on_header_over(llhttp_t *parser)
{
    struct request *request = of(parser);

    if (request->name_n > 0 && strcasecmp(request->name, "x-request-id") == 0)
        take_id(request, request->value, request->value_n);
    request->name_n = request->value_n = 0;
    return count_header(request, 4); /* the colon, the blank and the line's end */
}

static int on_whole(llhttp_t *parser)
{
    struct request *request = of(parser);

    if (request->id[0] == '\0')
        find_id_in_url(request);
    request->keep_alive = llhttp_should_keep_alive(parser) != 0;
    request->is_head = parser->method == HTTP_HEAD;
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_message_begin = on_begin,
    .on_url = on_url,
    .on_header_field = on_name,
    .on_header_value = on_value,
    .on_header_value_complete = on_header_over,
    .on_message_complete = on_whole,
};

void request_init(struct request *request)
{
    memset(request, 0, sizeof *request);
    llhttp_init(&request->parser, HTTP_REQUEST, &settings);
    request->parser.data = request;
}

enum request_step request_parse(struct request *request, const char *bytes, size_t n, size_t *used)
{
    llhttp_errno_t error = llhttp_execute(&request->parser, bytes, n);

    *used = n;
    if (error == HPE_OK)
        return REQUEST_MORE;
    if (error == HPE_PAUSED) {
        *used = (size_t)(llhttp_get_error_pos(&request->parser) - bytes);
        llhttp_resume(&request->parser);
        return REQUEST_WHOLE;
    }
    request->keep_alive = false;
    request->refusal = request->header_bytes > REQUEST_MAX_HEADER ? "431 Request Header Fields Too Large"
                       : error == HPE_PAUSED_UPGRADE              ? "501 Not Implemented"
                                                                  : "400 Bad Request";
    return REQUEST_REFUSED;
}
