/* acquire.c - what leasing and returning a ready link costs, beside the floor, in one run.
 *
 * The floor is what no pool by text can do without: a bare uthash find, a list pop and a list push. Real loopback
 * links, statistics on, checker off; the median of nine rounds, each of all kinds in turn, so that the machine's moods
 * meet all alike. Prints nanoseconds a pair of acquire and release. */
#include <ev.h>
#include <linkpool/linkpool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <uthash.h>
#include <utlist.h>

enum {
    ROUNDS = 9,
    PAIRS = 400000,
    MOST_HOSTS = 1000,
    KINDS = 5
};

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

static void on_told(struct pool_lease *lease)
{
    if (lease->status != POOL_READY)
        die("a link did not come up");
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

/* A system call that does nothing, for strace to see where the timed part begins and ends. */
static void mark(const char *what)
{
    ssize_t none = write(-1, what, strlen(what));

    (void)none;
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

    mark("timed part begins");
    for (int r = 0; r < ROUNDS; r++) {
        rounds[0][r] = floor_ns(bench);
        rounds[1][r] = measure(bench, by_handle);
        rounds[2][r] = measure(bench, by_text);
        rounds[3][r] = measure(bench, by_target);
        rounds[4][r] = measure(bench, by_target_name);
    }
    mark("timed part ends");
    for (int k = 0; k < KINDS; k++)
        m[k] = median(rounds[k]);
    text_bound = m[0] * 1.5 > m[0] + 20 ? m[0] * 1.5 : m[0] + 20;
    printf("%6u  %6.1f  %6.1f (<= %5.1f %s)  %6.1f (<= %5.1f %s)  %6.1f  %6.1f   floor %.1f to %.1f\n", bench->n, m[0],
        m[1], m[0] + 25, m[1] <= m[0] + 25 ? "met" : "MISSED", m[2], text_bound, m[2] <= text_bound ? "met" : "MISSED",
        m[3], m[4], rounds[0][0], rounds[0][ROUNDS - 1]);
    return m[1] <= m[0] + 25 && m[2] <= text_bound;
}

static void free_bare(struct bench *bench)
{
    struct bare_host *host, *next;

    HASH_ITER (hh, bench->bare, host, next) {
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

/* What one more host, and one more idle link, takes from the allocator, between the doublings of shared tables. */
static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void print_sizes(void)
{
    struct testing *t = testing_new(1);
    size_t host = SIZE_MAX, link = SIZE_MAX, before;
    struct pool_lease leases[20] = {{0}};
    struct pool_options options;
    char text[20][32];

    pool_options_init(&options);
    options.env = testing_env(t);
    struct pool *pool = pool_new_on(testing_driver(t), &options);
    for (int i = 0; i < 20; i++) {
        snprintf(text[i], sizeof text[i], "10.0.0.%d:6379", 10 + i);
        testing_peer_add(t, text[i], TESTING_ACCEPT);
        before = testing_bytes(t);
        pool_host(pool, text[i]);
        host = least(host, testing_bytes(t) - before);
    }
    for (int i = 0; i < 20; i++) {
        leases[i].done = on_told;
        pool_acquire_host(pool_host(pool, text[i]), &leases[i]);
        before = testing_bytes(t);
        testing_run_for(t, 1);
        link = least(link, testing_bytes(t) - before);
        pool_release(&leases[i], POOL_REUSE);
    }
    printf("bytes: lease %zu, idle link %zu (at most 256), host %zu (at most 512)\n", sizeof(struct pool_lease), link,
        host);
    pool_free(pool);
    testing_free(t);
}

int main(int argc, char **argv)
{
    static const unsigned sizes[] = {3, 10, 100, 1000};
    struct rlimit limit = {8192, 8192};
    int met = 1;

    if (argc > 1)
        return !bench_hosts((unsigned)atoi(argv[1]));
    setrlimit(RLIMIT_NOFILE, &limit);
    print_sizes();
    printf("ns a pair of acquire and release, median of %d rounds of %d pairs\n", ROUNDS, PAIRS);
    printf(" hosts   floor  by handle           by text             target  by its name\n");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        met &= bench_hosts(sizes[i]);
    return !met;
}
