/* origin.c - the server behind the proxies that are measured: fixed answers, as cheap as they can be.
 *
 * It shares its core with the load, so what it saves the load can use: one thread, one read and one send a request,
 * answers made once. GET only and no bodies; what else comes is refused and closed. Paths: /N is N bytes (the sizes are
 * the arguments), /head is the head as it came, /count is how many requests for /N there were.
 *
 * Usage: origin SIZE...    prints "listening on ADDRESS" */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_PEERS = 8192,
    MAX_HEAD = 16384,
    MAX_ANSWERS = 8,
    DATE_LENGTH = 29
};

/* One a size, told to all who ask. */
struct answer {
    char path[24];
    size_t path_length;
    char *text;
    size_t length;
    char *date; /* in text: the only part that changes */
};

/* By descriptor. A slot's head is allocated when it is first used and kept. */
struct peer {
    char *head;
    size_t have;
    const char *rest; /* of the answer under way, what the kernel has not taken; the next request waits for it */
    size_t left;
    bool last; /* closed when the answer is out */
};

/* What one head asks for. */
struct request {
    const char *path;
    size_t path_length;
    bool bad; /* not a GET of 1.1, or with a body */
    bool last;
};

static struct answer answers[MAX_ANSWERS];
static int answer_count;
static struct peer peers[MAX_PEERS];
static int unsent; /* peers with a rest: while there is one, answers stay as they are */
static unsigned long served;
static int epoll;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

/* ---- answers ---- */

static void make_answer(struct answer *answer, const char *size)
{
    size_t body = strtoul(size, NULL, 10);
    char head[256];
    int length = snprintf(head, sizeof head,
        "HTTP/1.1 200 OK\r\nServer: origin\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n"
        "Content-Type: application/octet-stream\r\nContent-Length: %zu\r\n\r\n",
        body);

    answer->path_length = (size_t)snprintf(answer->path, sizeof answer->path, "/%zu", body);
    answer->length = (size_t)length + body;
    answer->text = malloc(answer->length);
    if (answer->text == NULL)
        die("origin: memory");
    memcpy(answer->text, head, (size_t)length);
    for (size_t i = 0; i < body; i++)
        answer->text[(size_t)length + i] = (char)('a' + i % 26);
    answer->date = answer->text + (strstr(head, "Date: ") + 6 - head);
}

/* Writes the time into the answers when the second is another; not into one that is half sent. */
static void refresh_dates(void)
{
    static time_t written;
    struct timespec now;
    char date[DATE_LENGTH + 1];
    struct tm utc;

    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    if (now.tv_sec == written || unsent != 0)
        return;
    written = now.tv_sec;
    strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&written, &utc));
    for (int i = 0; i < answer_count; i++)
        memcpy(answers[i].date, date, DATE_LENGTH);
}

/* ---- peers ---- */

static void watch(int fd, int what, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.fd = fd};

    if (epoll_ctl(epoll, what, fd, &event) != 0)
        die("origin: epoll_ctl");
}

static void close_peer(int fd)
{
    struct peer *peer = &peers[fd];

    if (peer->left != 0)
        unsent--;
    *peer = (struct peer){.head = peer->head};
    close(fd);
}

/* Sends, and keeps as the rest what the kernel does not take. False when the peer is gone. */
static bool tell(int fd, const char *text, size_t length)
{
    struct peer *peer = &peers[fd];
    bool waited = peer->left != 0;
    ssize_t sent = send(fd, text, length, MSG_NOSIGNAL);

    if (sent < 0 && errno != EAGAIN)
        return false;
    if (sent > 0) {
        text += sent;
        length -= (size_t)sent;
    }
    peer->rest = text;
    peer->left = length;
    unsent += (length != 0) - waited;
    if (waited != (length != 0))
        watch(fd, EPOLL_CTL_MOD, length != 0 ? EPOLLOUT : EPOLLIN);
    return length != 0 || !peer->last;
}

static void accept_peers(int listener)
{
    int fd;

    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        if (fd >= MAX_PEERS || (peers[fd].head == NULL && (peers[fd].head = malloc(MAX_HEAD)) == NULL)) {
            close(fd);
            continue;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        watch(fd, EPOLL_CTL_ADD, EPOLLIN);
    }
}

/* ---- requests ---- */

/* A field's line: what matters is whether a body or the end is announced. */
static void read_field(struct request *request, const char *line, size_t length)
{
    if (length > 11 && strncasecmp(line, "connection:", 11) == 0)
        request->last |= memmem(line, length, "close", 5) != NULL;
    else if (length > 15 && strncasecmp(line, "content-length:", 15) == 0)
        request->bad |= memmem(line, length, ": 0\r", 4) == NULL;
    else if (length > 18 && strncasecmp(line, "transfer-encoding:", 18) == 0)
        request->bad = true;
}

static void read_request_line(struct request *request, const char *line, size_t length)
{
    static const char version[] = " HTTP/1.1\r";
    size_t ending = sizeof version - 1;

    request->bad =
        length < 4 + ending || memcmp(line, "GET ", 4) != 0 || memcmp(line + length - ending, version, ending) != 0;
    request->path = line + 4;
    request->path_length = request->bad ? 0 : length - 4 - ending;
}

/* Returns the bytes of a whole head, or 0 while it is not whole. */
static size_t read_head(struct request *request, const char *text, size_t have)
{
    const char *line = text, *end;

    while ((end = memchr(line, '\n', have - (size_t)(line - text))) != NULL) {
        size_t length = (size_t)(end - line);
        if (line == text)
            read_request_line(request, line, length);
        else if (length <= 1)
            return (size_t)(end + 1 - text);
        else if (((line[0] | 0x20) == 'c') || ((line[0] | 0x20) == 't'))
            read_field(request, line, length);
        line = end + 1;
    }
    return 0;
}

static bool tell_text(int fd, const char *status, const char *body, size_t length)
{
    static char text[MAX_HEAD + 256]; /* not kept: an answer that the kernel does not take at once ends the peer */
    int head = snprintf(text, sizeof text, "HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n%s\r\n",
        status, length, peers[fd].last ? "Connection: close\r\n" : "");

    memcpy(text + head, body, length);
    return tell(fd, text, (size_t)head + length) && peers[fd].left == 0;
}

static bool reply(int fd, const struct request *request, const char *head, size_t length)
{
    char count[32];

    peers[fd].last = request->last || request->bad;
    if (request->bad)
        return tell_text(fd, "501 Not Implemented", "", 0);
    for (int i = 0; i < answer_count; i++) {
        const struct answer *answer = &answers[i];
        if (request->path_length == answer->path_length &&
            memcmp(request->path, answer->path, answer->path_length) == 0) {
            served++;
            return tell(fd, answer->text, answer->length);
        }
    }
    if (request->path_length == 5 && memcmp(request->path, "/head", 5) == 0)
        return tell_text(fd, "200 OK", head, length);
    if (request->path_length == 6 && memcmp(request->path, "/count", 6) == 0)
        return tell_text(fd, "200 OK", count, (size_t)snprintf(count, sizeof count, "%lu\n", served));
    return tell_text(fd, "404 Not Found", "", 0);
}

/* Answers all whole heads at hand, in order, until one answer is not taken whole. */
static bool answer_all(int fd)
{
    struct peer *peer = &peers[fd];
    size_t used = 0, length = 0;

    while (peer->left == 0 && used < peer->have) {
        struct request request = {0};
        length = read_head(&request, peer->head + used, peer->have - used);
        if (length == 0)
            break;
        if (!reply(fd, &request, peer->head + used, length))
            return false;
        used += length;
    }
    peer->have -= used;
    if (peer->have != 0 && used != 0)
        memmove(peer->head, peer->head + used, peer->have);
    return peer->have < MAX_HEAD;
}

static bool on_readable(int fd)
{
    struct peer *peer = &peers[fd];
    ssize_t got = recv(fd, peer->head + peer->have, MAX_HEAD - peer->have, 0);

    if (got < 0 && errno == EAGAIN)
        return true;
    if (got <= 0)
        return false;
    peer->have += (size_t)got;
    return answer_all(fd);
}

static bool on_writable(int fd)
{
    struct peer *peer = &peers[fd];

    return tell(fd, peer->rest, peer->left) && (peer->left != 0 || answer_all(fd));
}

/* ---- the program ---- */

static int listen_here(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) != 0 || listen(fd, 4096) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) != 0)
        die("origin: listen");
    printf("listening on 127.0.0.1:%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

static void serve(int listener)
{
    struct epoll_event events[512];

    for (;;) {
        int count = epoll_wait(epoll, events, 512, -1);
        refresh_dates();
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;
            if (fd == listener)
                accept_peers(listener);
            else if (!((events[i].events & EPOLLOUT) != 0 ? on_writable(fd) : on_readable(fd)))
                close_peer(fd);
        }
    }
}

int main(int argc, char **argv)
{
    struct rlimit files = {MAX_PEERS, MAX_PEERS};

    if (argc < 2 || argc > MAX_ANSWERS + 1) {
        fprintf(stderr, "usage: origin SIZE...    of the answers, at most %d\n", MAX_ANSWERS);
        return 2;
    }
    setrlimit(RLIMIT_NOFILE, &files); /* fewer will do for fewer clients */
    for (answer_count = 0; answer_count < argc - 1; answer_count++)
        make_answer(&answers[answer_count], argv[answer_count + 1]);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    int listener = listen_here();
    watch(listener, EPOLL_CTL_ADD, EPOLLIN);
    serve(listener);
}
