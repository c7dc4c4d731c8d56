/* stream.c - one end of a long stream, for tests of what stands between its two ends.
 *
 *     stream listen|connect ADDR offer BYTES
 *     stream listen|connect ADDR take BYTES_A_SECOND SECONDS
 *
 * One connection. The offering end sends BYTES, ends its side and expects the taking end's answer: how many bytes
 * came. The taking end reads at that pace for so long, then as fast as it can (0: from the start), and answers after
 * the end of file alone: so each run shows a half-close passed on. Every byte is checked by its place in the stream.
 * Exit status 0: all of it held. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "examples/common/options.h"
#include "examples/common/sockets.h"

enum {
    PERIOD = 65521, /* of the pattern: a prime, so that no buffer's size hides a lost or doubled piece */
    TICKS = 100     /* pieces a second of what is read at a pace */
};

static char pattern[2 * PERIOD]; /* twice, so that a whole period may be had from any place */

static void fill_pattern(void)
{
    uint32_t draw = 1;

    for (size_t i = 0; i < PERIOD; i++) {
        draw = draw * 1664525u + 1013904223u; /* a linear congruential generator: any bytes that do not repeat */
        pattern[i] = pattern[i + PERIOD] = (char)(draw >> 24);
    }
}

/* ---- the connection ---- */

static int accept_one(const char *address)
{
    int listener = socket_listen("ADDR", address, false);
    struct pollfd readable = {.fd = listener, .events = POLLIN};
    char text[SOCKET_TEXT];
    int fd;

    socket_name(listener, text);
    printf("listening on %s\n", text);
    fflush(stdout);
    poll(&readable, 1, -1);
    fd = accept(listener, NULL, NULL);
    if (fd < 0)
        die("accept: %s", strerror(errno));
    close(listener);
    return fd;
}

static int connect_one(const char *text)
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

/* ---- the two ends ---- */

static void offer(int fd, uint64_t bytes)
{
    char answer[32] = "", expected[32];
    size_t got = 0;
    ssize_t n;

    for (uint64_t sent = 0; sent < bytes; sent += (uint64_t)n) {
        n = send(fd, pattern + sent % PERIOD, bytes - sent < PERIOD ? bytes - sent : PERIOD, MSG_NOSIGNAL);
        if (n < 0)
            die("after %" PRIu64 " bytes sent: %s", sent, strerror(errno));
    }
    shutdown(fd, SHUT_WR);
    while ((n = recv(fd, answer + got, sizeof answer - 1 - got, 0)) > 0)
        got += (size_t)n;
    if (n < 0)
        die("all sent, no answer: %s", strerror(errno));
    snprintf(expected, sizeof expected, "%" PRIu64 "\n", bytes);
    if (strcmp(answer, expected) != 0)
        die("%" PRIu64 " bytes sent, the answer is '%.*s'", bytes, (int)strcspn(answer, "\n"), answer);
}

/* Sleeps to the end of a tick, counted from the first, so that being late does not add up. */
static void wait_for_tick(const struct timespec *first, unsigned tick)
{
    struct timespec due = *first;

    due.tv_sec += tick / TICKS;
    due.tv_nsec += (long)(tick % TICKS) * (1000000000 / TICKS);
    if (due.tv_nsec >= 1000000000) {
        due.tv_sec++;
        due.tv_nsec -= 1000000000;
    }
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
}

/* Reads at most `most` bytes, and checks them. Returns false at the end of the stream. */
static bool take_some(int fd, uint64_t *got, size_t most)
{
    char bytes[PERIOD];
    ssize_t n = recv(fd, bytes, most < sizeof bytes ? most : sizeof bytes, 0);

    if (n < 0)
        die("after %" PRIu64 " bytes received: %s", *got, strerror(errno));
    if (memcmp(bytes, pattern + *got % PERIOD, (size_t)n) != 0)
        die("another byte than was sent, after %" PRIu64 " bytes received", *got);
    *got += (uint64_t)n;
    return n > 0;
}

static void take(int fd, unsigned pace, unsigned seconds)
{
    struct timespec first;
    uint64_t got = 0;
    char answer[32];

    clock_gettime(CLOCK_MONOTONIC, &first);
    for (unsigned tick = 1; tick <= seconds * TICKS && take_some(fd, &got, pace / TICKS); tick++)
        wait_for_tick(&first, tick);
    while (take_some(fd, &got, PERIOD))
        ;
    snprintf(answer, sizeof answer, "%" PRIu64 "\n", got);
    if (send(fd, answer, strlen(answer), MSG_NOSIGNAL) < 0)
        die("%" PRIu64 " bytes received, the answer is refused: %s", got, strerror(errno));
}

int main(int argc, char **argv)
{
    bool offers, listens;
    int fd;

    program_name = "stream";
    if (argc < 5)
        die_usage("listen|connect ADDR offer BYTES | take BYTES_A_SECOND SECONDS");
    listens = strcmp(argv[1], "listen") == 0;
    offers = strcmp(argv[3], "offer") == 0;
    if ((!listens && strcmp(argv[1], "connect") != 0) || (!offers && strcmp(argv[3], "take") != 0) ||
        argc != (offers ? 5 : 6))
        die_usage("%s ... %s: not an end of a stream", argv[1], argv[3]);
    fill_pattern();
    fd = listens ? accept_one(argv[2]) : connect_one(argv[2]);
    if (offers)
        offer(fd, option_count("BYTES", argv[4], 0, UINT32_MAX));
    else
        take(fd, option_count("BYTES_A_SECOND", argv[4], 0, 1000000000), option_count("SECONDS", argv[5], 0, 3600));
    close(fd);
    return 0;
}
