/* acquire.c - what leasing and returning a ready link costs, beside the floor, in one run.
 *
 * The floor is what no pool by text can do without: a bare uthash find, a list pop and a list push. Real loopback links,
 * statistics on, checker off; the median of nine rounds, each of all kinds in turn, so that the machine's moods meet
 * all alike. Prints nanoseconds a pair of acquire and release. */
#include <ev.h>
#include <linkpool/linkpool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <uthash.h>
#include <utlist.h>

enum { ROUNDS = 9, PAIRS = 400000, MOST_HOSTS = 1000, KINDS = 5 };

struct bare_link {
    struct bare_link *prev, *next;
    char rest[240];
};

struct bare_host {
    UT_hash_handle hh;
    char text[32];
    struct bare_link *idle;
};

struct bench {
    struct ev_loop *loop;
    struct pool *pool;
    struct pool_host *hosts[MOST_HOSTS];
    struct pool_target *target;
    char texts[MOST_HOSTS][32];
    struct bare_host *bare;
    unsigned n, order[4096];
    unsigned pending;
};

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void die(const char *what)
{
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

static void on_done(struct pool_lease *lease)
{
    struct bench *bench = lease->data;

    if (lease->status != POOL_READY)
        die("a link did not come up");
    bench->pending--;
}

static void add_bare(struct bench *bench, unsigned i)
{
    struct bare_host *host = calloc(1, sizeof *host);
    struct bare_link *link = calloc(1, sizeof *link);

    if (!host || !link)
        die("out of memory");
    memcpy(host->text, bench->texts[i], sizeof host->text);
    DL_PREPEND(host->idle, link);
    HASH_ADD_KEYPTR(hh, bench->bare, host->text, strlen(host->text), host);
}

/* One listening peer a host; each host gets one ready link. */
static void open_links(struct bench *bench)
{
    static struct pool_lease leases[MOST_HOSTS];

    for (unsigned i = 0; i < bench->n; i++) {
        struct testing_peer *peer = testing_peer_on_loop(bench->loop, "127.0.0.1:0", TESTING_ACCEPT);
        if (!peer)
            die("no peer");
        snprintf(bench->texts[i], sizeof bench->texts[i], "%s", testing_peer_address(peer));
        bench->hosts[i] = pool_host(bench->pool, bench->texts[i]);
        memset(&leases[i], 0, sizeof leases[i]);
        leases[i].done = on_done;
        leases[i].data = bench;
        if (pool_acquire(bench->pool, bench->texts[i], &leases[i]) != POOL_PENDING)
            die("no wait");
        bench->pending++;
        add_bare(bench, i);
    }
    while (bench->pending)
        ev_run(bench->loop, EVRUN_ONCE);
    for (unsigned i = 0; i < bench->n; i++)
        pool_release(&leases[i], POOL_REUSE);
}

static void add_target(struct bench *bench)
{
    struct pool_endpoint endpoints[3] = {{0}};
    struct pool_target_options options;

    for (unsigned i = 0; i < 3; i++) {
        endpoints[i].size = sizeof endpoints[i];
        endpoints[i].address = bench->texts[i % bench->n];
    }
    pool_target_options_init(&options);
    options.endpoints = endpoints;
    options.n_endpoints = 3;
    if (!(bench->target = pool_target_add(bench->pool, "three", &options)))
        die("no target");
    ev_run(bench->loop, EVRUN_NOWAIT);
}

static double floor_ns(struct bench *bench)
{
    struct bare_link *busy = NULL;
    double begun = now();

    for (unsigned i = 0; i < PAIRS; i++) {
        const char *text = bench->texts[bench->order[i % 4096]];
        struct bare_host *host;
        HASH_FIND(hh, bench->bare, text, strlen(text), host);
        struct bare_link *link = host->idle;
        DL_DELETE(host->idle, link);
        DL_PREPEND(busy, link);
        DL_DELETE(busy, link);
        DL_PREPEND(host->idle, link);
    }
    return (now() - begun) / PAIRS * 1e9;
}

static double measure(struct bench *bench, int (*acquire)(struct bench *, unsigned, struct pool_lease *))
{
    struct pool_lease lease = {.done = on_done, .data = bench};
    double begun = now();

    for (unsigned i = 0; i < PAIRS; i++) {
        if (acquire(bench, bench->order[i % 4096], &lease) != POOL_READY)
            die("a link was not ready");
        pool_release(&lease, POOL_REUSE);
    }
    return (now() - begun) / PAIRS * 1e9;
}

static int by_handle(struct bench *bench, unsigned i, struct pool_lease *lease)
{
    return pool_acquire_host(bench->hosts[i], lease);
}

static int by_text(struct bench *bench, unsigned i, struct pool_lease *lease)
{
    return pool_acquire(bench->pool, bench->texts[i], lease);
}

static int by_target(struct bench *bench, unsigned i, struct pool_lease *lease)
{
    (void)i;
    return pool_acquire_target(bench->target, lease);
}

static int by_target_name(struct bench *bench, unsigned i, struct pool_lease *lease)
{
    (void)i;
    return pool_acquire(bench->pool, "three", lease);
}

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

/* Targets: by handle within 25 ns of the floor; by text within 1.5 x or 20 ns of it, whichever is more. */
static int run(struct bench *bench)
{
    double rounds[KINDS][ROUNDS], m[KINDS], text_bound;

    for (int r = 0; r < ROUNDS; r++) {
        rounds[0][r] = floor_ns(bench);
        rounds[1][r] = measure(bench, by_handle);
        rounds[2][r] = measure(bench, by_text);
        rounds[3][r] = measure(bench, by_target);
        rounds[4][r] = measure(bench, by_target_name);
    }
    for (int k = 0; k < KINDS; k++)
        m[k] = median(rounds[k]);
    text_bound = m[0] * 1.5 > m[0] + 20 ? m[0] * 1.5 : m[0] + 20;
    printf("%6u  %6.1f  %6.1f (<= %5.1f %s)  %6.1f (<= %5.1f %s)  %6.1f  %6.1f   floor %.1f to %.1f\n", bench->n, m[0], m[1],
        m[0] + 25, m[1] <= m[0] + 25 ? "met" : "MISSED", m[2], text_bound, m[2] <= text_bound ? "met" : "MISSED", m[3],
        m[4], rounds[0][0], rounds[0][ROUNDS - 1]);
    return m[1] <= m[0] + 25 && m[2] <= text_bound;
}

static void free_bare(struct bench *bench)
{
    struct bare_host *host, *next;

    HASH_ITER(hh, bench->bare, host, next)
    {
        HASH_DEL(bench->bare, host);
        free(host->idle);
        free(host);
    }
}

static int bench_hosts(unsigned n)
{
    static struct bench bench;
    struct pool_options options;
    int met;

    memset(&bench, 0, sizeof bench);
    bench.n = n;
    srand(1);
    for (unsigned i = 0; i < 4096; i++)
        bench.order[i] = (unsigned)rand() % n;
    bench.loop = ev_loop_new(0);
    pool_options_init(&options);
    options.max_links = 4096;
    bench.pool = pool_new(bench.loop, &options);
    open_links(&bench);
    add_target(&bench);
    met = run(&bench);
    pool_free(bench.pool);
    free_bare(&bench);
    return met; /* the peers and their loop go with the process */
}

int main(int argc, char **argv)
{
    static const unsigned sizes[] = {3, 10, 100, 1000};
    struct rlimit limit = {8192, 8192};
    int met = 1;

    if (argc > 1)
        return !bench_hosts((unsigned)atoi(argv[1]));
    setrlimit(RLIMIT_NOFILE, &limit);
    printf("ns a pair of acquire and release, median of %d rounds of %d pairs\n", ROUNDS, PAIRS);
    printf(" hosts   floor  by handle           by text             target  by its name\n");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        met &= bench_hosts(sizes[i]);
    return !met;
}
