/* http_stream.c - bodies of any size that are on no disk, and both ends of HTTP/1.1 that send, take and check them as
 * fast as they can.
 *
 *     http_stream serve                                 answers GET /length/BYTES and GET /chunked/BYTES with so many
 *                                                       bytes, and PUT with how many came
 *     http_stream get|put ADDR length|chunked BYTES     asks for so many, or sends them
 *
 * Every byte is checked by its place in the body. Exit status 0: all of it held. */
#define _GNU_SOURCE /* memmem(), strcasestr() */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "examples/common/options.h"
#include "examples/common/sockets.h"

enum {
    PERIOD = 65521,   /* of the pattern: a prime, so that no buffer's size hides a lost or doubled piece */
    PIECE = 1 << 19,  /* bytes of a write, and of a chunk */
    HEAD_ROOM = 8192, /* of any head here */
    LINE_ROOM = 64
};

static char pattern[PERIOD + PIECE]; /* so that a piece may be had from any place */

static void fill_pattern(void)
{
    uint32_t draw = 1;

    for (size_t i = 0; i < PERIOD; i++) {
        draw = draw * 1664525u + 1013904223u; /* a linear congruential generator: any bytes that do not repeat */
        pattern[i] = (char)(draw >> 24);
    }
    for (size_t i = PERIOD; i < sizeof pattern; i++)
        pattern[i] = pattern[i - PERIOD];
}

/* ---- sending ---- */

static void send_all(int fd, struct iovec *parts, int n)
{
    while (n > 0) {
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = (size_t)n};
        ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);

        if (sent < 0)
            die("sending: %s", strerror(errno));
        for (; n > 0 && (size_t)sent >= parts->iov_len; parts++, n--)
            sent -= (ssize_t)parts->iov_len;
        if (n > 0) {
            parts->iov_base = (char *)parts->iov_base + sent;
            parts->iov_len -= (size_t)sent;
        }
    }
}

static void send_text(int fd, const char *text)
{
    send_all(fd, &(struct iovec){(char *)text, strlen(text)}, 1);
}

static void send_body(int fd, bool chunked, uint64_t bytes)
{
    char line[LINE_ROOM];

    for (uint64_t sent = 0; sent < bytes;) {
        size_t piece = bytes - sent < PIECE ? (size_t)(bytes - sent) : PIECE;
        struct iovec parts[3] = {{line, 0}, {pattern + sent % PERIOD, piece}, {"\r\n", 2}};

        if (chunked)
            parts[0].iov_len = (size_t)snprintf(line, sizeof line, "%zx\r\n", piece);
        send_all(fd, chunked ? parts : parts + 1, chunked ? 3 : 1);
        sent += piece;
    }
    if (chunked)
        send_text(fd, "0\r\n\r\n");
}

/* ---- taking ---- */

struct reader {
    int fd;
    size_t at, n; /* what is read and not taken */
    char bytes[PIECE];
};

/* Reads more behind what there is. Returns false at the end. */
static bool fill(struct reader *reader)
{
    ssize_t n;

    if (reader->at > 0)
        memmove(reader->bytes, reader->bytes + reader->at, reader->n - reader->at);
    reader->n -= reader->at;
    reader->at = 0;
    n = recv(reader->fd, reader->bytes + reader->n, sizeof reader->bytes - reader->n, 0);
    if (n < 0)
        die("receiving: %s", strerror(errno));
    reader->n += (size_t)n;
    return n > 0;
}

/* Takes up to and with the text `end`. Returns false where the connection ends before the first byte. */
static bool take_until(struct reader *reader, const char *end, char *out, size_t room)
{
    const char *found;

    while ((found = memmem(reader->bytes + reader->at, reader->n - reader->at, end, strlen(end))) == NULL) {
        if (reader->n - reader->at >= room)
            die("no end within %zu bytes", room);
        if (!fill(reader)) {
            if (reader->n == 0)
                return false;
            die("the connection has ended within a head");
        }
    }
    found += strlen(end);
    if ((size_t)(found - reader->bytes) - reader->at >= room)
        die("no end within %zu bytes", room);
    snprintf(out, room, "%.*s", (int)(found - reader->bytes - (ptrdiff_t)reader->at), reader->bytes + reader->at);
    reader->at = (size_t)(found - reader->bytes);
    return true;
}

/* Takes so many bytes of the body, which stand there after `got` others. */
static void take_bytes(struct reader *reader, uint64_t *got, uint64_t bytes)
{
    while (bytes > 0) {
        size_t piece = reader->n - reader->at;

        if (piece == 0) {
            if (!fill(reader))
                die("the connection has ended after %" PRIu64 " bytes", *got);
            continue;
        }
        if (piece > bytes)
            piece = (size_t)bytes;
        if (memcmp(reader->bytes + reader->at, pattern + *got % PERIOD, piece) != 0)
            die("another byte than was sent, after %" PRIu64, *got);
        reader->at += piece;
        *got += piece;
        bytes -= piece;
    }
}

static uint64_t take_chunks(struct reader *reader)
{
    char line[LINE_ROOM];
    uint64_t got = 0, size;

    do {
        if (!take_until(reader, "\r\n", line, sizeof line))
            die("the connection has ended after %" PRIu64 " bytes", got);
        size = strtoull(line, NULL, 16);
        take_bytes(reader, &got, size);
        if (!take_until(reader, "\r\n", line, sizeof line) || line[0] != '\r')
            die("no line's end behind a chunk, but '%s'", line);
    } while (size > 0);
    return got;
}

static const char *find_field(const char *head, const char *name)
{
    const char *found = strcasestr(head, name);

    return found == NULL ? NULL : found + strlen(name);
}

/* The body that a head announces; *chunked says how. */
static uint64_t take_body(struct reader *reader, const char *head, bool *chunked)
{
    const char *length = find_field(head, "\r\nContent-Length: ");
    uint64_t got = 0;

    *chunked = find_field(head, "\r\nTransfer-Encoding: chunked\r\n") != NULL;
    if (*chunked)
        return take_chunks(reader);
    if (length == NULL)
        die("a head without a body's length: %s", head);
    take_bytes(reader, &got, strtoull(length, NULL, 10));
    return got;
}

/* ---- the server ---- */

static void answer(struct reader *reader, const char *head)
{
    char out[256], text[32];
    uint64_t bytes;
    bool chunked;

    if (strncmp(head, "PUT ", 4) == 0) {
        bytes = take_body(reader, head, &chunked);
        snprintf(text, sizeof text, "%s %" PRIu64 "\n", chunked ? "chunked" : "length", bytes);
        snprintf(out, sizeof out, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", strlen(text), text);
        send_text(reader->fd, out);
        return;
    }
    chunked = strncmp(head, "GET /chunked/", 13) == 0;
    if (!chunked && strncmp(head, "GET /length/", 12) != 0)
        die("no request: %s", head);
    bytes = strtoull(head + (chunked ? 13 : 12), NULL, 10);
    snprintf(text, sizeof text, "Content-Length: %" PRIu64, bytes);
    snprintf(out, sizeof out, "HTTP/1.1 200 OK\r\n%s\r\n\r\n", chunked ? "Transfer-Encoding: chunked" : text);
    send_text(reader->fd, out);
    send_body(reader->fd, chunked, bytes);
}

static void serve_one(int fd)
{
    static struct reader reader;
    char head[HEAD_ROOM];

    reader.fd = fd;
    fcntl(fd, F_SETFL, 0);
    while (take_until(&reader, "\r\n\r\n", head, sizeof head))
        answer(&reader, head);
    exit(0);
}

/* A process for each connection. */
_Noreturn static void serve(void)
{
    int listener = socket_listen("ADDR", "127.0.0.1:0", false);
    int fd;

    signal(SIGCHLD, SIG_IGN);
    fcntl(listener, F_SETFL, 0);
    socket_announce("listening", listener);
    while ((fd = accept(listener, NULL, NULL)) >= 0) {
        if (fork() == 0)
            serve_one(fd);
        close(fd);
    }
    die("accept: %s", strerror(errno));
}

/* ---- the client ---- */

static int connect_to(const char *text)
{
    struct socket_address address;
    const char *why;
    int fd;

    if (socket_parse(text, &address, &why) < 0)
        die_usage("ADDR: '%s': %s", text, why);
    fd = socket_connect(&address);
    if (fd < 0)
        die("%s: %s", text, strerror(errno));
    fcntl(fd, F_SETFL, 0); /* what follows waits; a connect that fails shows at the first byte */
    poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
    return fd;
}

static void get(struct reader *reader, const char *framing, uint64_t bytes)
{
    char text[HEAD_ROOM];
    uint64_t got;
    bool chunked;

    snprintf(text, sizeof text, "GET /%s/%" PRIu64 " HTTP/1.1\r\nHost: stream.test\r\n\r\n", framing, bytes);
    send_text(reader->fd, text);
    if (!take_until(reader, "\r\n\r\n", text, sizeof text) || strncmp(text, "HTTP/1.1 200 ", 13) != 0)
        die("no answer: %s", text);
    got = take_body(reader, text, &chunked);
    if (got != bytes || chunked != (framing[0] == 'c'))
        die("%" PRIu64 " bytes came%s", got, chunked ? ", in chunks" : "");
}

static void put(struct reader *reader, const char *framing, uint64_t bytes)
{
    char text[HEAD_ROOM], expected[HEAD_ROOM];

    snprintf(text, sizeof text, "Content-Length: %" PRIu64, bytes);
    snprintf(expected, sizeof expected, "PUT /%s HTTP/1.1\r\nHost: stream.test\r\n%.64s\r\n\r\n", framing,
        framing[0] == 'c' ? "Transfer-Encoding: chunked" : text);
    send_text(reader->fd, expected);
    send_body(reader->fd, framing[0] == 'c', bytes);
    if (!take_until(reader, "\r\n\r\n", text, sizeof text) || strncmp(text, "HTTP/1.1 200 ", 13) != 0)
        die("no answer: %s", text);
    snprintf(expected, sizeof expected, "%s %" PRIu64 "\n", framing, bytes);
    if (!take_until(reader, "\n", text, sizeof text) || strcmp(text, expected) != 0)
        die("%" PRIu64 " bytes were sent, the answer is %s", bytes, text);
}

int main(int argc, char **argv)
{
    static struct reader reader;
    uint64_t bytes;
    char *end;

    program_name = "http_stream";
    fill_pattern();
    if (argc == 2 && strcmp(argv[1], "serve") == 0)
        serve();
    if (argc != 5 || (strcmp(argv[3], "length") != 0 && strcmp(argv[3], "chunked") != 0))
        die_usage("serve | get|put ADDR length|chunked BYTES");
    bytes = strtoull(argv[4], &end, 10);
    if (end == argv[4] || *end != '\0')
        die_usage("BYTES: '%s' is not a number", argv[4]);
    reader.fd = connect_to(argv[2]);
    if (strcmp(argv[1], "get") == 0)
        get(&reader, argv[3], bytes);
    else
        put(&reader, argv[3], bytes);
    close(reader.fd);
    return 0;
}
