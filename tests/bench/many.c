/* many.c - what a lease costs that has its link opened, where very many are asked for at once.
 *
 * In virtual time, on peers that answer at once: processor time of this side and of the world it plays in. Prints
 * microseconds a lease from asking to the outcome, the median of the rounds; what is not to grow with their number is
 * bounded: the most at most four times the fewest. (What grows is the table of hosts, out of the caches.) */
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

static const unsigned sizes[SIZES] = {1000, 10000, MOST};
static char texts[MOST][24];
static struct pool_endpoint endpoints[MOST];
static struct pool_lease leases[MOST];
static unsigned told;

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
    (void)lease;
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
    options.max_hosts = options.max_links = options.max_waiting = options.max_line = MOST;
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

/* @return microseconds a lease. */
static double round_of(unsigned n, enum testing_behaviour behaviour, bool by_target)
{
    struct testing *t = testing_new(1);
    struct pool *pool = pool_in(t);
    struct pool_target *target = by_target ? target_of(pool, n) : NULL;

    for (unsigned i = 0; i < n; i++)
        testing_peer_add(t, texts[i], behaviour);
    memset(leases, 0, n * sizeof *leases);
    told = 0;
    double begun = processor_time();
    for (unsigned i = 0; i < n; i++) {
        leases[i].done = on_done;
        int status = target ? pool_acquire_target(target, &leases[i]) : pool_acquire(pool, texts[i], &leases[i]);
        if (status != POOL_PENDING)
            die("a lease does not wait");
    }
    if (!testing_run_until(t, all_told, &n, 20))
        die("not all were told");
    double took = processor_time() - begun;
    pool_free(pool);
    testing_free(t);
    return took / n * 1e6;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static bool run(const char *what, enum testing_behaviour behaviour, bool by_target)
{
    double rounds[SIZES][ROUNDS];

    for (int r = 0; r < ROUNDS; r++)
        for (int s = 0; s < SIZES; s++)
            rounds[s][r] = round_of(sizes[s], behaviour, by_target);
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
    met = run("a host each", TESTING_ACCEPT, false);
    met &= run("a host each, which refuses", TESTING_REFUSE, false);
    met &= run("one target of as many hosts", TESTING_ACCEPT, true);
    return !met;
}
