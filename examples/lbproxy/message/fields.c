/* fields.c - names are found by their length, and then by one comparison. */
#include "examples/lbproxy/message/fields.h"

#include "examples/lbproxy/message/chars.h"

/* No token's byte but a letter changes into a letter, a digit 2 or a hyphen by this bit. */
static bool same(const char *name, const char *word, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((name[i] | 0x20) != word[i])
            return false;
    return true;
}

#define NAME(word, found)                                                                                              \
    do {                                                                                                               \
        if (same(name.at, word, sizeof(word) - 1))                                                                     \
            return found;                                                                                              \
    } while (0)

enum field_name field_find(struct text name)
{
    switch (name.n) {
    case 2:
        NAME("te", FIELD_TE);
        break;
    case 3:
        NAME("via", FIELD_VIA);
        break;
    case 4:
        NAME("host", FIELD_HOST);
        break;
    case 5:
        NAME("close", FIELD_CLOSE);
        break;
    case 6:
        NAME("expect", FIELD_EXPECT);
        break;
    case 7:
        NAME("upgrade", FIELD_UPGRADE);
        NAME("trailer", FIELD_TRAILER);
        break;
    case 10:
        NAME("connection", FIELD_CONNECTION);
        NAME("keep-alive", FIELD_KEEP_ALIVE);
        break;
    case 12:
        NAME("x-request-id", FIELD_X_REQUEST_ID);
        break;
    case 13:
        NAME("authorization", FIELD_AUTHORIZATION);
        break;
    case 14:
        NAME("content-length", FIELD_CONTENT_LENGTH);
        NAME("http2-settings", FIELD_HTTP2_SETTINGS);
        break;
    case 15:
        NAME("x-forwarded-for", FIELD_X_FORWARDED_FOR);
        break;
    case 16:
        NAME("proxy-connection", FIELD_PROXY_CONNECTION);
        NAME("www-authenticate", FIELD_WWW_AUTHENTICATE);
        break;
    case 17:
        NAME("transfer-encoding", FIELD_TRANSFER_ENCODING);
        NAME("x-forwarded-proto", FIELD_X_FORWARDED_PROTO);
        break;
    case 18:
        NAME("proxy-authenticate", FIELD_PROXY_AUTHENTICATE);
        break;
    case 19:
        NAME("proxy-authorization", FIELD_PROXY_AUTHORIZATION);
        break;
    default:
        break;
    }
    return FIELD_OTHER;
}

bool field_is_hop(enum field_name name)
{
    switch (name) {
    case FIELD_CLOSE:
    case FIELD_CONNECTION:
    case FIELD_HTTP2_SETTINGS:
    case FIELD_KEEP_ALIVE:
    case FIELD_PROXY_AUTHENTICATE:
    case FIELD_PROXY_AUTHORIZATION:
    case FIELD_PROXY_CONNECTION:
    case FIELD_TE:
    case FIELD_TRANSFER_ENCODING:
    case FIELD_UPGRADE:
        return true;
    default:
        return false;
    }
}

bool field_is_kept(enum field_name name)
{
    switch (name) {
    case FIELD_CONTENT_LENGTH:
    case FIELD_HOST:
    case FIELD_VIA:
    case FIELD_X_FORWARDED_FOR:
    case FIELD_X_FORWARDED_PROTO:
    case FIELD_X_REQUEST_ID:
        return true;
    default:
        return false;
    }
}

bool head_add(struct head *head, struct text name, struct text value)
{
    struct field *field = &head->fields[head->n_fields];

    if (head->n_fields == HEAD_MAX_FIELDS)
        return false;
    head->n_fields++;
    field->name = name;
    field->value = text_trim(value);
    field->known = field_find(name);
    field->hop = field_is_hop(field->known);
    return true;
}
