/* framed.c - what a call over framed links costs, beside the same frames by a bare epoll program, in one run.
 *
 * The server is one bare process for both clients, so that the client is what differs: with the bare client both sides
 * are bare. Requests and answers of 32 bytes on loopback; each caller asks again as soon as it is answered. Rounds of
 * ours and bare in turn, so that the machine's moods meet both alike; the ratio is the median of the rounds' own.
 *
 * Targets: at 64 callers at most 1.25 x the processor time a call of what is bare on both sides; a channel at most 128
 * bytes beyond buffers in use. A ratio is missed when it is over its target by more than the noise: what half of the
 * rounds' ratios lie within. */
#include <arpa/inet.h>
#include <linkpool/linkpool.h>
#include <math.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/bench/framed/ours.h"

enum {
    ROUNDS = 9,
    FEW = 4000, /* calls a round, */
    MANY = 200000,
    MOST_BYTES = 128, /* a channel */
    TARGET_CALLERS = 64
};
static const double target = 1.25;

static struct {
    uint16_t port;
    char address[32];
    pid_t pid;
    clockid_t clock;
    int control; /* closed with this process, which ends the server */
} server;

static double seconds(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void start_server(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    int listening = socket(AF_INET, SOCK_STREAM, 0), ends[2];

    if (listening < 0 || bind(listening, (struct sockaddr *)&at, n) || listen(listening, 64) ||
        getsockname(listening, (struct sockaddr *)&at, &n) || pipe(ends))
        bare_die("no server");
    server.port = ntohs(at.sin_port);
    snprintf(server.address, sizeof server.address, "127.0.0.1:%u", server.port);
    if ((server.pid = fork()) < 0)
        bare_die("no server");
    if (!server.pid) {
        close(ends[1]);
        bare_serve(listening, ends[0]);
    }
    close(ends[0]);
    close(listening);
    server.control = ends[1];
    if (clock_getcpuclockid(server.pid, &server.clock))
        bare_die("the server's clock");
}

static void stop_server(void)
{
    close(server.control);
    waitpid(server.pid, NULL, 0);
}

/* ---- one measurement ---- */

struct cost { /* seconds a call */
    double wall, client, both;
};

static struct cost begin(void)
{
    struct cost now = {seconds(CLOCK_MONOTONIC), seconds(CLOCK_PROCESS_CPUTIME_ID), 0};

    now.both = now.client + seconds(server.clock);
    return now;
}

static struct cost since(struct cost begun, unsigned n)
{
    struct cost now = begin();

    return (struct cost){(now.wall - begun.wall) / n, (now.client - begun.client) / n, (now.both - begun.both) / n};
}

static struct cost ours_cost(struct ours *ours, unsigned n)
{
    struct cost begun = begin();

    ours_call(ours, n);
    return since(begun, n);
}

static struct cost bare_cost(struct bare_client *bare, unsigned n)
{
    struct cost begun = begin();

    bare_client_call(bare, n);
    return since(begun, n);
}

/* ---- rounds ---- */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values)
{
    qsort(values, ROUNDS, sizeof *values, compare);
    return values[ROUNDS / 2];
}

struct rounds {
    double calls[ROUNDS], client[ROUNDS], both[ROUNDS];
};

static void note(struct rounds *rounds, int r, struct cost cost)
{
    rounds->calls[r] = 1 / cost.wall;
    rounds->client[r] = cost.client * 1e9;
    rounds->both[r] = cost.both * 1e9;
}

/* Half of the values are at most so far from their median. */
static double spread(double *values)
{
    double middle = median(values), far[ROUNDS];

    for (int r = 0; r < ROUNDS; r++)
        far[r] = fabs(values[r] - middle);
    return median(far);
}

static int print(unsigned callers, unsigned links, struct rounds *ours, struct rounds *bare, double *ratios)
{
    double ratio = median(ratios), noise = spread(ratios);
    int is_bound = callers == TARGET_CALLERS, met = !is_bound || ratio - noise <= target;

    printf("%5u %6u  %9.0f %9.0f  %8.0f %8.0f %6.2f  %8.0f %8.0f  %5.2f +- %.2f%s\n", callers, links,
        median(ours->calls), median(bare->calls), median(ours->client), median(bare->client),
        median(ours->client) / median(bare->client), median(ours->both), median(bare->both), ratio, noise,
        !is_bound ? ""
        : met     ? " (<= 1.25 met)"
                  : " (<= 1.25 MISSED)");
    fflush(stdout);
    return met;
}

static int bench(unsigned callers, unsigned links, unsigned n)
{
    struct ours *ours = ours_new(server.address, links, callers);
    struct bare_client *bare = bare_client_new(server.port, links, callers);
    struct rounds rounds[2];
    double ratios[ROUNDS];

    ours_call(ours, n / 4);
    bare_client_call(bare, n / 4);
    for (int r = 0; r < ROUNDS; r++) {
        note(&rounds[0], r, ours_cost(ours, n));
        note(&rounds[1], r, bare_cost(bare, n));
        ratios[r] = rounds[0].both[r] / rounds[1].both[r];
    }
    ours_free(ours);
    bare_client_free(bare);
    return print(callers, links, &rounds[0], &rounds[1], ratios);
}

int main(int argc, char **argv)
{
    static const unsigned callers[] = {1, 64, 1000}, links[] = {1, 2, 8};
    int met = 1;

    start_server();
    if (argc > 2) {
        met = bench((unsigned)atoi(argv[1]), (unsigned)atoi(argv[2]), argc > 3 ? (unsigned)atoi(argv[3]) : MANY);
        stop_server();
        return !met;
    }
    double bytes = channel_bytes();
    printf("bytes: channel %.0f (at most %d %s)\n", bytes, MOST_BYTES, bytes <= MOST_BYTES ? "met" : "MISSED");
    met &= bytes <= MOST_BYTES;
    printf("calls of %d bytes and answers of as many, on loopback; median of %d rounds\n", BARE_PAYLOAD, ROUNDS);
    printf("                 calls a second   ns a call, the client alone   ns a call, both sides\n");
    printf("callers links     ours      bare      ours     bare  ratio      ours     bare  ratio\n");
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 3; k++)
            met &= bench(callers[i], links[k], callers[i] == 1 ? FEW : MANY);
    stop_server();
    return !met;
}
