/* framed_server.c - see framed_server.h. Written from the manual page, not from the client's code. */
#include "tests/fakes/framed_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEAD = 12,
    MIB = 1024 * 1024,
    LARGEST_ID = 0x7fffffff
};

enum type {
    HELLO = 1,
    HELLO_ACK,
    LIMIT,
    REQUEST,
    ANSWER,
    ERROR,
    CANCEL,
    PING,
    PONG,
    GOAWAY
};

struct framed_session {
    const struct framed_calls *calls;
    void *data;
    unsigned char *in; /* what has come and is not used yet */
    size_t n_in, size;
    uint32_t takes, last_id, accepted;
    bool introduced, open, leaving;
    char fault[80];
};

static uint32_t get(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void set(unsigned char *at, uint32_t value)
{
    for (int i = 3; i >= 0; i--, value >>= 8)
        at[i] = (unsigned char)value;
}

struct framed_session *framed_session_new(const struct framed_calls *calls, void *data)
{
    struct framed_session *session = calloc(1, sizeof *session);

    if (session != NULL) {
        session->calls = calls;
        session->data = data;
        session->accepted = UINT32_MAX;
    }
    return session;
}

void framed_session_free(struct framed_session *session)
{
    if (session != NULL)
        free(session->in);
    free(session);
}

void *framed_session_data(const struct framed_session *session)
{
    return session->data;
}

bool framed_session_is_open(const struct framed_session *session)
{
    return session->open;
}

uint32_t framed_session_last_id(const struct framed_session *session)
{
    return session->last_id;
}

uint32_t framed_session_takes(const struct framed_session *session)
{
    return session->takes;
}

const char *framed_session_fault(const struct framed_session *session)
{
    return session->fault;
}

/* ---- what is said ---- */

void framed_session_frame(struct framed_session *session, uint32_t n, uint8_t type, uint8_t flags, uint16_t reserved,
    uint32_t id, const void *payload, size_t has)
{
    unsigned char small[HEAD + 1100], *frame = has <= 1100 ? small : malloc(HEAD + has);

    if (frame == NULL)
        return;
    set(frame, n);
    set(frame + 4, (uint32_t)type << 24 | (uint32_t)flags << 16 | reserved);
    set(frame + 8, id);
    if (has > 0)
        memcpy(frame + HEAD, payload, has);
    session->calls->say(session, frame, HEAD + has);
    if (frame != small)
        free(frame);
}

static void frame(struct framed_session *session, enum type type, uint32_t id, const void *payload, size_t n)
{
    framed_session_frame(session, (uint32_t)n, (uint8_t)type, 0, 0, id, payload, n);
}

void framed_session_welcome(struct framed_session *session)
{
    unsigned char ack[12];

    set(ack, 1);
    set(ack + 4, session->calls->max_payload != 0 ? session->calls->max_payload : MIB);
    set(ack + 8, session->calls->channels);
    session->open = true;
    frame(session, HELLO_ACK, 0, ack, sizeof ack);
}

void framed_session_answer(struct framed_session *session, uint32_t id, const void *payload, size_t n)
{
    if (n > session->takes)
        framed_session_error(session, id, 3, "the answer is too large");
    else
        frame(session, ANSWER, id, payload, n);
}

/* Two numbers at most, and words. */
static void words(
    struct framed_session *session, enum type type, uint32_t id, const uint32_t *numbers, size_t n, const char *text)
{
    unsigned char payload[8 + 1024];
    size_t n_text = text != NULL ? strlen(text) : 0;

    if (n_text > 1024)
        n_text = 1024;
    for (size_t i = 0; i < n; i++)
        set(payload + 4 * i, numbers[i]);
    if (n_text > 0)
        memcpy(payload + 4 * n, text, n_text);
    frame(session, type, id, payload, 4 * n + n_text);
}

void framed_session_error(struct framed_session *session, uint32_t id, uint32_t code, const char *text)
{
    words(session, ERROR, id, &code, 1, text);
}

void framed_session_limit(struct framed_session *session, uint32_t channels)
{
    words(session, LIMIT, 0, &channels, 1, NULL);
}

void framed_session_ping(struct framed_session *session, const void *eight)
{
    frame(session, PING, 0, eight, 8);
}

void framed_session_goaway(struct framed_session *session, uint32_t last, uint32_t code, const char *text)
{
    uint32_t numbers[2] = {last, code};

    session->leaving = true;
    session->accepted = last;
    words(session, GOAWAY, 0, numbers, 2, text);
}

/* ---- what comes ---- */

static int fail(struct framed_session *session, const char *why)
{
    snprintf(session->fault, sizeof session->fault, "%s", why);
    framed_session_goaway(session, session->last_id, 4, why);
    return -1;
}

static int on_hello(struct framed_session *session, const unsigned char *payload, uint32_t n)
{
    const struct framed_calls *calls = session->calls;

    if (session->introduced)
        return fail(session, "HELLO twice");
    if (get(payload) != 1)
        return fail(session, "an unknown version");
    session->introduced = true;
    session->takes = get(payload + 4);
    if (calls->hello != NULL && !calls->hello(session, payload + 8, n - 8)) {
        snprintf(session->fault, sizeof session->fault, "an unwelcome client");
        framed_session_goaway(session, 0, 6, "not welcome");
        return -1;
    }
    if (!calls->silent)
        framed_session_welcome(session);
    return 0;
}

static int on_request(struct framed_session *session, uint32_t id, const unsigned char *payload, uint32_t n)
{
    if (id != session->last_id + 1)
        return fail(session, "a REQUEST out of turn");
    session->last_id = id;
    if (session->leaving && id > session->accepted)
        framed_session_error(session, id, 1, "leaving");
    else if (session->calls->request != NULL)
        session->calls->request(session, id, payload, n);
    return 0;
}

static int on_cancel(struct framed_session *session, uint32_t id)
{
    if (id > session->last_id)
        return fail(session, "CANCEL of no request");
    if (session->calls->cancel != NULL)
        session->calls->cancel(session, id);
    return 0;
}

static int on_frame(
    struct framed_session *session, enum type type, uint32_t id, const unsigned char *payload, uint32_t n)
{
    const struct framed_calls *calls = session->calls;

    switch (type) {
    case HELLO:
        return on_hello(session, payload, n);
    case REQUEST:
        return on_request(session, id, payload, n);
    case CANCEL:
        return on_cancel(session, id);
    case PING:
        frame(session, PONG, 0, payload, 8);
        return 0;
    case PONG:
        if (calls->pong != NULL)
            calls->pong(session, payload);
        return 0;
    default: /* GOAWAY */
        if (calls->goaway != NULL)
            calls->goaway(session, get(payload + 4), (const char *)payload + 8, n - 8);
        return 0;
    }
}

/* What is wrong with a header; NULL: nothing. */
static const char *fault_of(const struct framed_session *session, const unsigned char *head)
{
    uint32_t n = get(head), id = get(head + 8), most = session->calls->max_payload, least = 0;
    bool about_a_request = head[4] == REQUEST || head[4] == CANCEL;

    if (head[5] != 0 || head[6] != 0 || head[7] != 0)
        return "flags or reserved bits";
    if (about_a_request ? id == 0 || id > LARGEST_ID : id != 0)
        return "an id out of place";
    if (!session->open && head[4] != HELLO)
        return "no HELLO first";
    switch (head[4]) {
    case HELLO:
        least = 8, most = 8 + 4096;
        break;
    case REQUEST:
        most = most != 0 ? most : MIB;
        break;
    case CANCEL:
        most = 0;
        break;
    case PING:
    case PONG:
        least = most = 8;
        break;
    case GOAWAY:
        least = 8, most = 8 + 1024;
        break;
    default:
        return "a type of frame that clients do not send";
    }
    return n < least || n > most ? "a length that does not fit" : NULL;
}

static bool keep(struct framed_session *session, const void *bytes, size_t n)
{
    if (session->n_in + n > session->size) {
        size_t size = 2 * (session->n_in + n);
        unsigned char *in = realloc(session->in, size);
        if (in == NULL)
            return false;
        session->in = in;
        session->size = size;
    }
    if (n > 0)
        memcpy(session->in + session->n_in, bytes, n);
    session->n_in += n;
    return true;
}

int framed_session_take(struct framed_session *session, const void *bytes, size_t n)
{
    size_t used = 0;
    int status = 0;

    if (*session->fault != '\0')
        return -1;
    if (!keep(session, bytes, n))
        return fail(session, "no memory");
    while (status == 0 && session->n_in - used >= HEAD) {
        const unsigned char *head = session->in + used;
        const char *why = fault_of(session, head);
        if (why != NULL)
            return fail(session, why);
        if (session->n_in - used - HEAD < get(head))
            break;
        used += HEAD + get(head);
        status = on_frame(session, (enum type)head[4], get(head + 8), head + HEAD, get(head));
    }
    session->n_in -= used;
    if (session->n_in > 0)
        memmove(session->in, session->in + used, session->n_in);
    return status;
}
