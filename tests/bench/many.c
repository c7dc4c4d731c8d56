/* many.c - what a lease costs that has its link opened, where very many are asked for at once.
 *
 * In virtual time, on peers that answer at once: processor time of this side and of the world it plays in. Prints
 * microseconds a lease from asking to the outcome, the median of the rounds; what is not to grow with their number is
 * bounded: the most at most four times the fewest. (What grows is the table of hosts, out of the caches.) A target's
 * first links are kept up for it, by their hosts; its second ones, asked for while the first are held, are picked. */
#include <linkpool/linkpool.h>
#include <linkpool/testing.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    ROUNDS = 3,
    SIZES = 3,
    MOST = 100000
};

enum kind {
    BY_TEXT,
    REFUSED,
    BY_TARGET,
    SECOND_OF_TARGET
};

static const unsigned sizes[SIZES] = {1000, 10000, MOST};
static char texts[MOST][24];
static struct pool_endpoint endpoints[MOST];
static struct pool_lease leases[2 * MOST];
static unsigned told;
static int expected;

static void die(const char *what)
{
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

static double processor_time(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void on_done(struct pool_lease *lease)
{
    if (lease->status != expected)
        die("a lease ends otherwise than is measured");
    told++;
}

static bool all_told(void *n)
{
    return told == *(unsigned *)n;
}

static struct pool *pool_in(struct testing *t)
{
    struct pool_options options;

    pool_options_init(&options);
    options.env = testing_env(t);
    options.max_hosts = MOST;
    options.max_links = options.max_waiting = options.max_line = 2 * MOST;
    return pool_new_on(testing_driver(t), &options);
}

static struct pool_target *target_of(struct pool *pool, unsigned n)
{
    struct pool_target_options options;

    pool_target_options_init(&options);
    options.picker = &pool_round_robin;
    options.endpoints = endpoints;
    options.n_endpoints = n;
    return pool_target_add(pool, "all", &options);
}

static void ask(struct pool *pool, struct pool_target *target, struct pool_lease *lease, unsigned i)
{
    lease->done = on_done;
    int status = target ? pool_acquire_target(target, lease) : pool_acquire(pool, texts[i], lease);
    if (status != POOL_PENDING)
        die("a lease does not wait");
}

/* @return seconds, until n leases more are told. */
static double ask_all(
    struct testing *t, struct pool *pool, struct pool_target *target, struct pool_lease *of, unsigned n)
{
    double begun = processor_time();

    told = 0;
    for (unsigned i = 0; i < n; i++)
        ask(pool, target, &of[i], i);
    if (!testing_run_until(t, all_told, &n, 20))
        die("not all were told");
    return processor_time() - begun;
}

/* @return microseconds a lease. */
static double round_of(unsigned n, enum kind kind)
{
    struct testing *t = testing_new(1);
    struct pool *pool = pool_in(t);
    struct pool_target *target = kind >= BY_TARGET ? target_of(pool, n) : NULL;

    for (unsigned i = 0; i < n; i++)
        testing_peer_add(t, texts[i], kind == REFUSED ? TESTING_REFUSE : TESTING_ACCEPT);
    memset(leases, 0, sizeof leases);
    expected = kind == REFUSED ? LINKPOOL_EUNAVAILABLE : POOL_READY;
    double took = ask_all(t, pool, target, leases, n);
    if (kind == SECOND_OF_TARGET)
        took = ask_all(t, pool, target, leases + n, n);
    pool_free(pool);
    testing_free(t);
    return took / n * 1e6;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static bool run(const char *what, enum kind kind)
{
    double rounds[SIZES][ROUNDS];

    for (int r = 0; r < ROUNDS; r++)
        for (int s = 0; s < SIZES; s++)
            rounds[s][r] = round_of(sizes[s], kind);
    for (int s = 0; s < SIZES; s++)
        qsort(rounds[s], ROUNDS, sizeof(double), compare);
    double least = rounds[0][ROUNDS / 2], most = rounds[SIZES - 1][ROUNDS / 2];
    bool met = most <= 4 * least;
    printf("%-28s  %6.2f  %6.2f  %6.2f  %4.1f x (<= 4.0 %s)\n", what, least, rounds[1][ROUNDS / 2], most, most / least,
        met ? "met" : "MISSED");
    return met;
}

int main(void)
{
    bool met;

    for (unsigned i = 0; i < MOST; i++) {
        snprintf(texts[i], sizeof texts[i], "10.%u.%u.%u:80", i >> 16, i >> 8 & 255, i & 255);
        endpoints[i] = (struct pool_endpoint){.size = sizeof endpoints[i], .address = texts[i]};
    }
    printf("us a lease whose link is opened, of %u, %u and %u asked for at once\n", sizes[0], sizes[1], sizes[2]);
    met = run("a host each", BY_TEXT);
    met &= run("a host each, which refuses", REFUSED);
    met &= run("one target of as many hosts", BY_TARGET);
    met &= run("the same, a second link each", SECOND_OF_TARGET);
    return !met;
}
