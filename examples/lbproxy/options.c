/* options.c - the command line: each option checked where it is read, what belongs together at the end. */
#include "examples/lbproxy/options.h"

#include <getopt.h>
#include <linkpool/pool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "examples/common/options.h"
#include "examples/lbproxy/buffer.h"
#include "examples/lbproxy/mode.h"

enum {
    DAY = 86400, /* seconds */
    MAX_BOUND = 1000000,
    OWN_DESCRIPTORS = 24,    /* standard ones, signals, some who look at the status page */
    DESCRIPTORS_A_THREAD = 8 /* its loop, its listener, links between two clients */
};

static const char help[] = /* */
    "Usage: lbproxy --listen ADDR --backend ADDR [--backend ADDR ...] [OPTION]...\n"
    "Spreads clients over backends: in http mode request by request over pooled links, in tcp mode a link a client.\n"
    "\n"
    "  --listen ADDR          where clients come; port 0: the system picks; printed as 'listening on ADDR'\n"
    "  --backend ADDR         where they are served; may be given up to 256 times\n"
    "  --policy NAME          round_robin (default) or pick_first\n"
    "  --mode NAME            http (default) or tcp\n"
    "  --threads N            event loops, each with a pool of its own (1)\n"
    "  --max-clients N        at once; more wait in the kernel's line (as many as the descriptors allow)\n"
    "  --max-links N          connections to backends at once (as many as clients)\n"
    "  --max-waiting N        clients in line for a link at once (as many as clients)\n"
    "  --max-header BYTES     http: of a head, from 1024 (65536)\n"
    "  --connect-timeout S    for one connection to a backend; a client waits at most twice that (3)\n"
    "  --header-timeout S     http: for a request's head, from its first byte (10)\n"
    "  --body-timeout S       http: until another byte of a body moves (60)\n"
    "  --answer-timeout S     http: from a request's end to its answer's head (60)\n"
    "  --keepalive-timeout S  http: until the next request (60)\n"
    "  --idle-timeout S       tcp, and tunnels: until another byte moves; 0: for ever (300)\n"
    "  --drain-timeout S      after SIGTERM: what is left then is closed (30)\n"
    "  --access-log FILE      http: a line a request; '-' is the standard output; SIGUSR1 opens it anew\n"
    "  --status ADDR          pages for people and scripts: / /metrics /healthz; printed as 'status on ADDR'\n"
    "  --help, --version\n"
    "\n"
    "ADDR is 127.0.0.1:80, [::1]:80, unix:/run/x.sock or unix:@abstract. The bounds of clients, links and waiting are\n"
    "for the process and shared out over the threads. SIGTERM and SIGINT drain, a further SIGINT ends at once.\n";

static const struct option known[] = {
    {"listen", required_argument, NULL, 'l'},
    {"backend", required_argument, NULL, 'b'},
    {"policy", required_argument, NULL, 'p'},
    {"mode", required_argument, NULL, 'm'},
    {"threads", required_argument, NULL, 't'},
    {"max-clients", required_argument, NULL, 'C'},
    {"max-links", required_argument, NULL, 'L'},
    {"max-waiting", required_argument, NULL, 'W'},
    {"max-header", required_argument, NULL, 'H'},
    {"connect-timeout", required_argument, NULL, 'c'},
    {"header-timeout", required_argument, NULL, 'e'},
    {"body-timeout", required_argument, NULL, 'B'},
    {"answer-timeout", required_argument, NULL, 'a'},
    {"keepalive-timeout", required_argument, NULL, 'k'},
    {"idle-timeout", required_argument, NULL, 'i'},
    {"drain-timeout", required_argument, NULL, 'd'},
    {"access-log", required_argument, NULL, 'A'},
    {"status", required_argument, NULL, 's'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'v'},
    {0},
};

static void add_backend(struct options *options, const char *address)
{
    char canonical[160];
    char other[160];

    if (link_address_check(address, canonical, sizeof canonical) < 0)
        die_usage("--backend: '%s': %s", address, canonical);
    if (options->n_backends == MAX_BACKENDS)
        die_usage("--backend: '%s': more than %d backends", address, MAX_BACKENDS);
    for (unsigned i = 0; i < options->n_backends; i++)
        if (link_address_check(options->backends[i], other, sizeof other) == 0 && strcmp(canonical, other) == 0)
            die_usage("--backend: '%s' was given before", address);
    options->backends[options->n_backends++] = address;
}

static const struct pool_picker *find_policy(const char *name)
{
    if (strcmp(name, "round_robin") == 0)
        return &pool_round_robin;
    if (strcmp(name, "pick_first") == 0)
        return &pool_pick_first;
    die_usage("--policy: '%s' is neither round_robin nor pick_first", name);
}

static const struct mode *find_mode(const char *name)
{
    if (strcmp(name, mode_http.name) == 0)
        return &mode_http;
    if (strcmp(name, mode_tcp.name) == 0)
        return &mode_tcp;
    die_usage("--mode: '%s' is neither http nor tcp", name);
}

static void take_option(struct options *options, int option)
{
    /* clang-format off */
    switch (option) {
    case 'l': options->listen = optarg; break;
    case 'b': add_backend(options, optarg); break;
    case 'p': options->policy = find_policy(optarg); break;
    case 'm': options->mode = find_mode(optarg); break;
    case 't': options->threads = option_count("--threads", optarg, 1, MAX_THREADS); break;
    case 'C': options->max_clients = option_count("--max-clients", optarg, 1, MAX_BOUND); break;
    case 'L': options->max_links = option_count("--max-links", optarg, 1, MAX_BOUND); break;
    case 'W': options->max_waiting = option_count("--max-waiting", optarg, 1, MAX_BOUND); break;
    case 'H': options->max_header = option_count("--max-header", optarg, 1024, BUFFER_SIZE); break;
    case 'c': options->connect_timeout = option_seconds("--connect-timeout", optarg, 0.001, DAY); break;
    case 'e': options->header_timeout = option_seconds("--header-timeout", optarg, 0.001, DAY); break;
    case 'B': options->body_timeout = option_seconds("--body-timeout", optarg, 0.001, DAY); break;
    case 'a': options->answer_timeout = option_seconds("--answer-timeout", optarg, 0.001, DAY); break;
    case 'k': options->keepalive_timeout = option_seconds("--keepalive-timeout", optarg, 0.001, DAY); break;
    case 'i': options->idle_timeout = option_seconds("--idle-timeout", optarg, 0, DAY * 365); break;
    case 'd': options->drain_timeout = option_seconds("--drain-timeout", optarg, 0, DAY * 365); break;
    case 'A': options->access_log = optarg; break;
    case 's': options->status = optarg; break;
    case 'h': print_help(help);
    case 'v': print_version();
    default: exit(2); /* getopt_long() has named it */
    }
    /* clang-format on */
}

/* A client takes two descriptors, its own and its link's; a thread, and the rest of the program, a few. With more
 * clients than that, those inside would take the descriptors that their own links need. */
static unsigned clients_that_fit(const struct options *options)
{
    rlim_t own = OWN_DESCRIPTORS + DESCRIPTORS_A_THREAD * (rlim_t)options->threads;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur > 2 * MAX_BOUND + own)
        return MAX_BOUND;
    if (limit.rlim_cur < own + 2 * options->threads)
        return options->threads;
    return (unsigned)(limit.rlim_cur - own) / 2;
}

static void fit_clients(struct options *options)
{
    unsigned fit = clients_that_fit(options);

    if (options->max_clients > fit)
        fprintf(stderr, "%s: --max-clients: %u are more than the descriptors allow (ulimit -n): %u\n", program_name,
            options->max_clients, fit);
    if (options->max_clients == 0 || options->max_clients > fit)
        options->max_clients = fit;
    if (options->max_links == 0)
        options->max_links = options->max_clients;
    if (options->max_waiting == 0)
        options->max_waiting = options->max_clients;
}

static void check_share(const struct options *options, const char *option, unsigned total)
{
    if (total != 0 && total < options->threads)
        die_usage("%s: %u is less than one a thread (--threads %u)", option, total, options->threads);
}

static void check_together(struct options *options)
{
    if (options->listen == NULL)
        die_usage("--listen ADDR is missing");
    if (options->n_backends == 0)
        die_usage("--backend ADDR is missing");
    check_share(options, "--max-clients", options->max_clients);
    check_share(options, "--max-links", options->max_links);
    check_share(options, "--max-waiting", options->max_waiting);
    fit_clients(options);
}

void options_read(struct options *options, int argc, char **argv)
{
    int option;

    *options = (struct options){.policy = &pool_round_robin,
        .mode = &mode_http,
        .threads = 1,
        .max_header = BUFFER_SIZE,
        .connect_timeout = 3,
        .header_timeout = 10,
        .body_timeout = 60,
        .answer_timeout = 60,
        .keepalive_timeout = 60,
        .idle_timeout = 300,
        .drain_timeout = 30};
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1)
        take_option(options, option);
    if (optind < argc)
        die_usage("'%s': options alone are expected", argv[optind]);
    check_together(options);
}

unsigned options_share(const struct options *options, unsigned total, unsigned i)
{
    return total / options->threads + (i < total % options->threads);
}
