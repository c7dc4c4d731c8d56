/* message.c - llhttp's callbacks, and who looks at the bytes before and after it.
 *
 * A head is given to llhttp in one piece, once each line has been judged (scan.c); its spans are the fields. Of a
 * chunked body llhttp gets what the guard has passed, without the extensions. Where the two see different messages,
 * the message is refused. */
#include "examples/lbproxy/message/message.h"

#include <stdlib.h>
#include <string.h>

#include "examples/lbproxy/message/fields.h"
#include "examples/lbproxy/message/internal.h"
#include "examples/lbproxy/message/rules.h"
#include "examples/lbproxy/message/start.h"

static const struct fault differ = {400, "two readers of the message do not see the same"};
static const struct fault many_fields = {431, "too many fields"};
static const struct fault length_twice = {400, "Content-Length given twice"};
static const struct fault length_and_encoding = {400, "Content-Length and Transfer-Encoding together"};
static const struct fault odd_length = {400, "Content-Length is not a number of 1 to 19 digits"};
static const struct fault encoding_twice = {400, "Transfer-Encoding given twice"};
static const struct fault odd_encoding = {400, "Transfer-Encoding is not chunked alone"};
static const struct fault trailer_framing = {400, "a field that may not be in a trailer"};
static const struct fault cut = {400, "the peer closed before the message's end"};

enum message_step message__refuse(struct message *message, struct fault fault)
{
    if (message->fault.text == NULL) {
        message->fault = fault;
        if (message->kind != MESSAGE_REQUEST)
            message->fault.status = 502;
    }
    return MESSAGE_BAD;
}

/* For a callback: llhttp stops there. */
static int refuse(struct message *message, const struct fault *fault)
{
    message__refuse(message, *fault);
    return -1;
}

static struct message *of(llhttp_t *parser)
{
    return parser->data;
}

/* ---- fields ---- */

static int on_name(llhttp_t *parser, const char *at, size_t n)
{
    struct message *message = of(parser);

    if (message->head == NULL)
        trailer__name(message, at, n);
    else
        message->name = (struct text){at, n};
    return 0;
}

static int on_value(llhttp_t *parser, const char *at, size_t n)
{
    struct message *message = of(parser);

    if (message->head == NULL)
        trailer__value(message, at, n);
    else if (n > 0 && message->value.at == NULL)
        message->value = (struct text){at, n};
    else if (n > 0)
        message->value.n = (size_t)(at + n - message->value.at);
    return 0;
}

/* The value is what stands between the name's colon and the line's end, blanks before it left out. */
static bool is_whole_line(struct text name, struct text value)
{
    const char *at = name.at + name.n;

    if (*at++ != ':')
        return false;
    while (*at == ' ' || *at == '\t')
        at++;
    return at == value.at && value.at[value.n] == '\r';
}

/* An empty value has had no span, or one that lies behind its line. */
static int on_value_over(llhttp_t *parser)
{
    struct message *message = of(parser);
    struct text name = message->name, value = message->value;
    const struct fault *fault;

    if (message->head == NULL) {
        fault = trailer__over(message);
        return fault == NULL ? 0 : refuse(message, fault);
    }
    if (value.at == NULL)
        value.at = strchr(name.at, '\r');
    if (!is_whole_line(name, value))
        return refuse(message, &differ);
    message->name = message->value = (struct text){0};
    return head_add(message->head, name, value) ? 0 : refuse(message, &many_fields);
}

/* ---- the head ---- */

/* llhttp's view of the start line and of the framing is ours, or the message is refused. */
static bool is_same(const struct message *message, const llhttp_t *parser)
{
    const struct head *head = message->head;
    bool request = message->kind == MESSAGE_REQUEST;

    return parser->http_major == 1 && parser->http_minor == head->minor && head->n_fields == message->lines &&
           (request ? parser->method == (uint8_t)head->method : parser->status_code == head->status) &&
           head->chunked == ((parser->flags & F_CHUNKED) != 0) &&
           (head->chunked || parser->content_length == head->length);
}

static int on_fields_over(llhttp_t *parser)
{
    struct message *message = of(parser);
    struct head *head = message->head;
    const struct fault *fault;

    if (head == NULL) /* no trailer is a head */
        return refuse(message, &differ);
    fault = message->kind == MESSAGE_REQUEST ? rules_request(head)
                                             : rules_answer(head, message->kind == MESSAGE_ANSWER_TO_HEAD);
    if (fault == NULL && !is_same(message, parser))
        fault = &differ;
    if (fault != NULL)
        return refuse(message, fault);
    parser->upgrade = 0; /* a tunnel begins where the caller says; until then it is HTTP */
    return head->framing == FRAMING_NONE && message->kind != MESSAGE_REQUEST; /* 1: no body */
}

static int on_whole(llhttp_t *parser)
{
    of(parser)->whole = true;
    return HPE_PAUSED;
}

static int on_body(llhttp_t *parser, const char *at, size_t n)
{
    struct message *message = of(parser);

    return message->parts != NULL && parts_add(message->parts, at, n) ? 0 : refuse(message, &differ);
}

static const llhttp_settings_t settings = {
    .on_header_field = on_name,
    .on_header_value = on_value,
    .on_header_value_complete = on_value_over,
    .on_headers_complete = on_fields_over,
    .on_body = on_body,
    .on_message_complete = on_whole,
};

void message_begin(struct message *message, enum message_kind kind)
{
    memset(message, 0, sizeof *message);
    message->kind = kind;
    llhttp_init(&message->parser, kind == MESSAGE_REQUEST ? HTTP_REQUEST : HTTP_RESPONSE, &settings);
}

void message_end(struct message *message)
{
    free(message->trailer);
    message->trailer = NULL;
    message->trailer_n = 0;
}

static bool has_field(const struct head *head, enum field_name known)
{
    for (unsigned i = 0; i < head->n_fields; i++)
        if (head->fields[i].known == known)
            return true;
    return false;
}

/* What llhttp finds by itself, in our words where it matters. */
static struct fault explain(const struct message *message, llhttp_errno_t error)
{
    bool known = error == HPE_UNEXPECTED_CONTENT_LENGTH || error == HPE_INVALID_CONTENT_LENGTH ||
                 error == HPE_INVALID_TRANSFER_ENCODING;

    if (known && message->head == NULL)
        return trailer_framing;
    switch (error) {
    case HPE_UNEXPECTED_CONTENT_LENGTH:
        return (message->parser.flags & (F_TRANSFER_ENCODING | F_CHUNKED)) != 0 ? length_and_encoding : length_twice;
    case HPE_INVALID_CONTENT_LENGTH:
        return odd_length;
    case HPE_INVALID_TRANSFER_ENCODING:
        return has_field(message->head, FIELD_TRANSFER_ENCODING) ? encoding_twice : odd_encoding;
    default:
        return (struct fault){400, llhttp_get_error_reason(&message->parser)};
    }
}

/* Gives bytes to llhttp, and takes what it says: *used of them are the message's. */
static bool parse(struct message *message, const char *bytes, size_t n, size_t *used)
{
    llhttp_errno_t error;

    message->parser.data = message; /* it may have been moved */
    error = n > 0 ? llhttp_execute(&message->parser, bytes, n) : HPE_OK;
    *used = n;
    if (message->fault.text == NULL && error == HPE_PAUSED && message->whole)
        *used = (size_t)(llhttp_get_error_pos(&message->parser) - bytes);
    else if (message->fault.text == NULL && error != HPE_OK)
        message__refuse(message, explain(message, error));
    return message->fault.text == NULL;
}

static const struct fault *begin_head(struct message *message, struct text bytes, struct head *head)
{
    const char *end = memchr(bytes.at, '\r', bytes.n);
    struct text line = {bytes.at, (size_t)(end - bytes.at)};

    memset(head, 0, offsetof(struct head, fields));
    return message->kind == MESSAGE_REQUEST ? start_request(line, head) : start_answer(line, head);
}

enum message_step message_head(struct message *message, const char *bytes, size_t head_n, struct head *head)
{
    struct text rest = {bytes + message->start, head_n - message->start};
    const struct fault *fault = begin_head(message, rest, head);
    size_t used;
    bool good;

    if (fault != NULL)
        return message__refuse(message, *fault);
    message->head = head;
    good = parse(message, rest.at, rest.n, &used);
    message->head = NULL;
    if (!good)
        return MESSAGE_BAD;
    if (used != rest.n ||
        message->whole != (head->framing == FRAMING_NONE || (head->framing == FRAMING_LENGTH && head->length == 0)))
        return message__refuse(message, differ);
    message->drops_trailer = head->names_fields;
    guard_begin(&message->guard, head->framing == FRAMING_CHUNKED);
    return MESSAGE_WHOLE;
}

/* ---- the body ---- */

static bool take_data(struct message *message, const char *bytes, size_t n, size_t *used)
{
    struct guard *guard = &message->guard;
    size_t before = message->parts->bytes, part = n < guard->size ? n : (size_t)guard->size;

    if (!parse(message, bytes, part, used))
        return false;
    guard_data(guard, part);
    if (message->parts->bytes - before == part && *used == part && !message->whole)
        return true;
    message__refuse(message, differ);
    return false;
}

static bool take_framing(struct message *message, const char *bytes, size_t n, size_t *used)
{
    bool extension = message->guard.at == GUARD_EXTENSION;
    size_t looked, parsed;
    const char *odd = guard_look(&message->guard, bytes, n, &looked);

    *used = looked;
    if (!extension && !parse(message, bytes, looked, &parsed))
        return false;
    if (odd != NULL)
        message__refuse(message, (struct fault){400, odd});
    else if (message->whole != (message->guard.at == GUARD_END) || (!extension && parsed != looked))
        message__refuse(message, differ);
    return message->fault.text == NULL;
}

static void take_chunks(struct message *message, const char *bytes, size_t n, size_t *used)
{
    bool good = true;
    size_t taken;

    for (*used = 0; good && *used < n && !message->whole; *used += taken) {
        bool data = message->guard.at == GUARD_DATA;

        if (data && message->parts->n == PARTS_MAX)
            break;
        good = data ? take_data(message, bytes + *used, n - *used, &taken)
                    : take_framing(message, bytes + *used, n - *used, &taken);
    }
}

enum message_step message_body(struct message *message, const char *bytes, size_t n, size_t *used, struct parts *parts)
{
    *used = 0;
    message->parts = parts;
    if (message->fault.text == NULL && !message->whole && message->guard.at != GUARD_OFF)
        take_chunks(message, bytes, n, used);
    else if (message->fault.text == NULL && !message->whole)
        parse(message, bytes, n, used);
    message->parts = NULL;
    if (message->fault.text != NULL)
        return MESSAGE_BAD;
    return message->whole ? MESSAGE_WHOLE : MESSAGE_MORE;
}

enum message_step message_close(struct message *message)
{
    message->parser.data = message;
    if (message->fault.text == NULL && !message->whole)
        llhttp_finish(&message->parser);
    if (message->fault.text == NULL && message->whole)
        return MESSAGE_WHOLE;
    return message__refuse(message, cut);
}
