/* compose.c - a head is written from its parsed fields: what is for one connection alone is left out, and framing and
 * the proxy's own fields are written anew, once. */
#include "examples/lbproxy/message/compose.h"

#include "examples/lbproxy/message/chars.h"
#include "examples/lbproxy/message/start.h"
#include "examples/lbproxy/message/writer.h"

static void put_framing(struct writer *writer, const struct head *head, enum framing framing)
{
    if (framing == FRAMING_CHUNKED) {
        PUT(writer, "Transfer-Encoding: chunked\r\n");
    } else if (framing != FRAMING_UNTIL_CLOSE && head->has_length) {
        PUT(writer, "Content-Length: ");
        put_number(writer, head->length);
        PUT(writer, "\r\n");
    }
}

/* The values of all fields of this name, each followed by ", ". */
static void put_joined(struct writer *writer, const struct head *head, enum field_name known)
{
    for (unsigned i = 0; i < head->n_fields; i++)
        if (head->fields[i].known == known && head->fields[i].value.n > 0) {
            put_text(writer, head->fields[i].value);
            PUT(writer, ", ");
        }
}

static void put_via(struct writer *writer, const struct head *head, bool given)
{
    PUT(writer, "Via: ");
    if (given)
        put_joined(writer, head, FIELD_VIA);
    if (head->minor == 0)
        PUT(writer, "1.0 lbproxy\r\n");
    else
        PUT(writer, "1.1 lbproxy\r\n");
}

static void put_upgrade(struct writer *writer, const struct head *head)
{
    PUT(writer, "Connection: upgrade\r\n");
    for (unsigned i = 0; i < head->n_fields; i++)
        if (head->fields[i].known == FIELD_UPGRADE)
            put_field(writer, head->fields[i].name, head->fields[i].value);
}

/* ---- requests ---- */

/* Fields that the proxy writes itself, as they were given. */
struct given {
    bool forwarded, via;
    unsigned ids;
    struct text id;
};

static void put_request_field(
    struct writer *writer, const struct head *head, const struct field *field, struct given *given)
{
    switch (field->known) {
    case FIELD_CONTENT_LENGTH:
    case FIELD_HOST:
    case FIELD_X_FORWARDED_PROTO:
        return;
    case FIELD_X_FORWARDED_FOR:
        given->forwarded = true;
        return;
    case FIELD_VIA:
        given->via = true;
        return;
    case FIELD_X_REQUEST_ID:
        given->ids++;
        given->id = field->value;
        return;
    case FIELD_EXPECT:
        if (!head->expects_continue)
            return;
        break;
    default:
        break;
    }
    put_field(writer, field->name, field->value);
}

static bool is_good_id(const struct given *given)
{
    if (given->ids != 1 || given->id.n < 1 || given->id.n > 128)
        return false;
    for (size_t i = 0; i < given->id.n; i++)
        if (given->id.at[i] <= ' ' || given->id.at[i] > '~')
            return false;
    return true;
}

static void put_string(struct writer *writer, const char *text)
{
    put(writer, text, strlen(text));
}

static void put_own_fields(
    struct writer *writer, const struct head *head, const struct request_terms *terms, const struct given *given)
{
    PUT(writer, "X-Forwarded-For: ");
    if (given->forwarded)
        put_joined(writer, head, FIELD_X_FORWARDED_FOR);
    put_string(writer, terms->client);
    PUT(writer, "\r\nX-Forwarded-Proto: http\r\nX-Request-Id: ");
    if (is_good_id(given))
        put_text(writer, given->id);
    else
        put_string(writer, terms->request_id);
    PUT(writer, "\r\n");
    put_via(writer, head, given->via);
}

static void put_request_line(struct writer *writer, const struct head *head, const char *authority)
{
    put_text(writer, start_method(head->method));
    if (head->target.at[0] == '?')
        PUT(writer, " /");
    else
        PUT(writer, " ");
    put_text(writer, head->target);
    PUT(writer, " HTTP/1.1\r\nHost: ");
    if (head->host.n > 0)
        put_text(writer, head->host);
    else
        put_string(writer, authority);
    PUT(writer, "\r\n");
}

size_t compose_request(char *out, size_t room, const struct head *head, const struct request_terms *terms)
{
    struct writer writer = writer_begin(out, room);
    struct given given = {0};

    put_request_line(&writer, head, terms->authority);
    for (const struct field *field = head->fields; field < head->fields + head->n_fields; field++)
        if (!field->hop)
            put_request_field(&writer, head, field, &given);
    put_framing(&writer, head, head->framing);
    if (head->upgrade)
        put_upgrade(&writer, head);
    put_own_fields(&writer, head, terms, &given);
    PUT(&writer, "\r\n");
    return writer_end(&writer);
}

/* ---- answers ---- */

enum framing compose_framing(const struct head *answer, unsigned client_minor)
{
    if (answer->framing == FRAMING_CHUNKED || answer->framing == FRAMING_UNTIL_CLOSE)
        return client_minor >= 1 ? FRAMING_CHUNKED : FRAMING_UNTIL_CLOSE;
    return answer->framing;
}

/* What a client may do after the answer; 1xx is no answer yet. */
static void put_connection(struct writer *writer, const struct head *head, const struct answer_terms *terms)
{
    if (head->status == 101)
        put_upgrade(writer, head);
    else if (head->status < 200)
        return;
    else if (terms->close || terms->framing == FRAMING_UNTIL_CLOSE)
        PUT(writer, "Connection: close\r\n");
    else if (terms->client_minor == 0)
        PUT(writer, "Connection: keep-alive\r\n");
}

size_t compose_answer(char *out, size_t room, const struct head *head, const struct answer_terms *terms)
{
    struct writer writer = writer_begin(out, room);
    bool via = false;

    PUT(&writer, "HTTP/1.1 ");
    put_number(&writer, head->status);
    PUT(&writer, " ");
    put_text(&writer, head->reason);
    PUT(&writer, "\r\n");
    for (const struct field *field = head->fields; field < head->fields + head->n_fields; field++) {
        if (field->known == FIELD_VIA)
            via = true;
        else if (!field->hop && field->known != FIELD_CONTENT_LENGTH)
            put_field(&writer, field->name, field->value);
    }
    put_framing(&writer, head, terms->framing);
    put_connection(&writer, head, terms);
    put_via(&writer, head, via);
    PUT(&writer, "\r\n");
    return writer_end(&writer);
}
