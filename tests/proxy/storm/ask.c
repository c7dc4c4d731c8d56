/* ask.c - heads of many sizes, bodies by length or in chunks, some of it in small pieces. */
#include "tests/proxy/storm/ask.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "examples/common/options.h"

enum {
    HEAD_ROOM = 1024,
    CHUNK_ROOM = 16, /* of what frames a chunk */
    MAX_CHUNKS = 20,
    PIECEMEAL = 700 /* bytes that are sent in pieces, where they are */
};

void ask_init(struct ask *ask)
{
    ask->bytes = malloc(HEAD_ROOM + PLAN_MAX_BODY + (MAX_CHUNKS + 2) * CHUNK_ROOM);
    if (ask->bytes == NULL)
        die("out of memory");
}

static void add_chunk(struct ask *ask, const char *bytes, size_t n)
{
    ask->n += (size_t)snprintf(ask->bytes + ask->n, CHUNK_ROOM, "%zx\r\n", n);
    memcpy(ask->bytes + ask->n, bytes, n);
    memcpy(ask->bytes + ask->n + n, "\r\n", 2);
    ask->n += n + 2;
}

static void add_body(struct ask *ask)
{
    const struct wish *wish = ask->wish;
    const char *body = plan_request_bytes(wish->id);
    size_t each = wish->body / MAX_CHUNKS + 1 + wish->id % 8000;

    if (!wish->chunked) {
        memcpy(ask->bytes + ask->n, body, wish->body);
        ask->n += wish->body;
        return;
    }
    for (size_t done = 0; done < wish->body; done += each)
        add_chunk(ask, body + done, wish->body - done < each ? wish->body - done : each);
    add_chunk(ask, "", 0);
}

static void add_head(struct ask *ask)
{
    static const char filler[] =
        "nothing that matters, but heads are to be of many sizes, and so this is longer or shorter, as the number of "
        "the request has it, up to the end of this sentence.";
    const struct wish *wish = ask->wish;
    char framing[48] = "";

    if (wish->chunked)
        snprintf(framing, sizeof framing, "Transfer-Encoding: chunked\r\n");
    else if (wish->has_body)
        snprintf(framing, sizeof framing, "Content-Length: %zu\r\n", wish->body);
    ask->n = (size_t)snprintf(ask->bytes, HEAD_ROOM,
        "%s /s?id=%" PRIu64 " HTTP/1.%u\r\nHost: storm.test\r\nX-Request-Id: %" PRIu64
        "\r\nCookie: c=%s\r\nX-Filler: %.*s\r\n%s%s%s\r\n",
        plan_method_name(wish->method), wish->id, wish->minor, wish->id, wish->cookie, (int)(wish->id % sizeof filler),
        filler, framing, wish->expect ? "Expect: 100-continue\r\n" : "",
        wish->close        ? "Connection: close\r\n"
        : wish->minor == 0 ? "Connection: keep-alive\r\n"
                           : "");
    ask->head_n = ask->n;
}

void ask_compose(struct ask *ask, const struct wish *wish)
{
    struct digest digest;

    ask->wish = wish;
    ask->sent = 0;
    add_head(ask);
    add_body(ask);
    digest_begin(&digest);
    digest_add(&digest, plan_request_bytes(wish->id), wish->body);
    snprintf(ask->digest, sizeof ask->digest, "-");
    if (wish->has_body)
        digest_text(&digest, ask->digest);
}

size_t ask_until(const struct ask *ask, bool may_continue)
{
    if (ask->wish->expect && !may_continue)
        return ask->head_n;
    if (ask->wish->leaving == LEAVE_SENDING)
        return ask->head_n + (ask->n - ask->head_n) / 2;
    return ask->n;
}

ssize_t ask_send(struct ask *ask, int fd, size_t until)
{
    size_t part = until - ask->sent;
    ssize_t n;

    if (ask->wish->pieces != 0 && ask->sent < PIECEMEAL && ask->wish->pieces < part)
        part = ask->wish->pieces;
    n = send(fd, ask->bytes + ask->sent, part, MSG_NOSIGNAL);
    if (n > 0)
        ask->sent += (size_t)n;
    return n;
}

void ask_free(struct ask *ask)
{
    free(ask->bytes);
    ask->bytes = NULL;
}
