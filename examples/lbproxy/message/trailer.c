/* trailer.c - the fields after a chunked body: collected, for their parts may come in several reads, and judged when
 * whole. The guard has looked at each byte before. */
#include <stdlib.h>
#include <string.h>

#include "examples/lbproxy/message/chars.h"
#include "examples/lbproxy/message/fields.h"
#include "examples/lbproxy/message/internal.h"

static const struct fault no_memory = {503, "out of memory"};
static const struct fault too_large = {400, "the trailer is too large"};
static const struct fault forbidden = {400, "a field that may not be in a trailer"};

/* The guard has bounded all fields together as they are written here: there is room, or the two differ. */
static void put(struct message *message, size_t offset, const char *at, size_t n)
{
    if (message->trailer == NULL)
        message->trailer = malloc(MESSAGE_MAX_TRAILER);
    if (message->trailer == NULL)
        message__refuse(message, no_memory);
    else if (message->trailer_n + offset + n > MESSAGE_MAX_TRAILER)
        message__refuse(message, too_large);
    else if (n > 0)
        memcpy(message->trailer + message->trailer_n + offset, at, n);
}

void trailer__name(struct message *message, const char *at, size_t n)
{
    put(message, message->trailer_name_n, at, n);
    message->trailer_name_n += n;
}

void trailer__value(struct message *message, const char *at, size_t n)
{
    put(message, message->trailer_name_n + 2 + message->trailer_value_n, at, n);
    message->trailer_value_n += n;
}

/* Those that the proxy writes itself; of requests also names with '_', as in the head. */
static bool is_left_out(const struct message *message, struct text name, enum field_name known)
{
    return message->drops_trailer || field_is_kept(known) ||
           (name.n > 12 && text_is((struct text){name.at, 12}, "x-forwarded-")) ||
           (message->kind == MESSAGE_REQUEST && memchr(name.at, '_', name.n) != NULL);
}

/* What frames, routes or is for one connection alone comes too late in a trailer. */
const struct fault *trailer__over(struct message *message)
{
    struct text name = {message->trailer + message->trailer_n, message->trailer_name_n}, value;
    enum field_name known;

    if (message->fault.text != NULL)
        return &message->fault;
    known = field_find(name);
    if (field_is_hop(known) || known == FIELD_CONTENT_LENGTH || known == FIELD_HOST)
        return &forbidden;
    put(message, name.n, ": ", 2);
    value = text_trim((struct text){name.at + name.n + 2, message->trailer_value_n});
    put(message, name.n + 2 + value.n, "\r\n", 2);
    if (!is_left_out(message, name, known))
        message->trailer_n += name.n + 2 + value.n + 2;
    message->trailer_name_n = message->trailer_value_n = 0;
    return NULL;
}
