/* options.c - the command line: each option checked where it is read, what belongs together at the end. */
#include "examples/lbproxy/options.h"

#include <getopt.h>
#include <linkpool/pool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "examples/common/options.h"
#include "examples/lbproxy/mode.h"

enum {
    MAX_BOUND = 1000000,
    OWN_DESCRIPTORS = 24,    /* standard ones, signals, some who look at the status page */
    DESCRIPTORS_A_THREAD = 8 /* its loop, its listener, links between two clients */
};

static const char help[] = /* */
    "Usage: lbproxy --listen ADDR --backend ADDR [--backend ADDR ...] [OPTION]...\n"
    "Takes TCP clients and spreads them over backends: a pooled link a client, bytes both ways.\n"
    "\n"
    "  --listen ADDR        where clients come; port 0: the system picks; printed as 'listening on ADDR'\n"
    "  --backend ADDR       where they are served; may be given up to 256 times\n"
    "  --policy NAME        round_robin (default) or pick_first\n"
    "  --mode NAME          tcp (default)\n"
    "  --threads N          event loops, each with a pool of its own (1)\n"
    "  --max-clients N      at once; more wait in the kernel's line (as many as the descriptors allow)\n"
    "  --max-links N        connections to backends at once (as many as clients)\n"
    "  --connect-timeout S  for one connection to a backend; a client waits at most twice that (3)\n"
    "  --idle-timeout S     close a client and its link when no byte has moved for so long; 0: never (300)\n"
    "  --drain-timeout S    after SIGTERM: what is left then is closed (30)\n"
    "  --status ADDR        answers each connection with a page of plain text; printed as 'status on ADDR'\n"
    "  --help, --version\n"
    "\n"
    "ADDR is 127.0.0.1:80, [::1]:80, unix:/run/x.sock or unix:@abstract. Both --max- bounds are for the process and\n"
    "shared out over the threads. SIGTERM and SIGINT drain, a further SIGINT ends at once.\n";

static const struct option known[] = {
    {"listen", required_argument, NULL, 'l'},
    {"backend", required_argument, NULL, 'b'},
    {"policy", required_argument, NULL, 'p'},
    {"mode", required_argument, NULL, 'm'},
    {"threads", required_argument, NULL, 't'},
    {"max-clients", required_argument, NULL, 'C'},
    {"max-links", required_argument, NULL, 'L'},
    {"connect-timeout", required_argument, NULL, 'c'},
    {"idle-timeout", required_argument, NULL, 'i'},
    {"drain-timeout", required_argument, NULL, 'd'},
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
    if (strcmp(name, mode_tcp.name) == 0)
        return &mode_tcp;
    die_usage("--mode: '%s' is not tcp", name);
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
    case 'c': options->connect_timeout = option_seconds("--connect-timeout", optarg, 0.001, 86400); break;
    case 'i': options->idle_timeout = option_seconds("--idle-timeout", optarg, 0, 86400 * 365); break;
    case 'd': options->drain_timeout = option_seconds("--drain-timeout", optarg, 0, 86400 * 365); break;
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
}

static void check_together(struct options *options)
{
    if (options->listen == NULL)
        die_usage("--listen ADDR is missing");
    if (options->n_backends == 0)
        die_usage("--backend ADDR is missing");
    if (options->max_clients != 0 && options->max_clients < options->threads)
        die_usage("--max-clients: %u is less than one a thread (--threads %u)", options->max_clients, options->threads);
    if (options->max_links != 0 && options->max_links < options->threads)
        die_usage("--max-links: %u is less than one a thread (--threads %u)", options->max_links, options->threads);
    fit_clients(options);
}

void options_read(struct options *options, int argc, char **argv)
{
    int option;

    *options = (struct options){.policy = &pool_round_robin,
        .mode = &mode_tcp,
        .threads = 1,
        .connect_timeout = 3,
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
