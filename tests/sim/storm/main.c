/* main.c - runs every case from every seed, spread over processes, and holds the figures against the gates.
 *
 * Usage: storm [-w WORKERS] [-s SEEDS] [-c CASE]    CASE: a part of the names of those to be run
 *
 * A line a gate. The mean of all seeds must be within the gate, and no seed worse than 1.5 x. A world is one seed's
 * alone, so the figures are the same however many processes there are. Exit status 0: all held. */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sim/storm/cases.h"

enum {
    ROUND_TRIPS = 2,
    LINKS = 10000
};

static const double round_trips[ROUND_TRIPS] = {0.001, 0.050}; /* within a data centre, and across an ocean */
static const double worst_seed = 1.5;

struct work {
    atomic_uint next;
    struct result results[]; /* [case][round trip][seed] */
};

struct options {
    unsigned workers, seeds;
    const char *only;
};

static bool is_asked_for(const struct options *options, unsigned i)
{
    return strstr(storm_cases[i].name, options->only) != NULL;
}

static void run_one(const struct options *options, unsigned job, struct result *result)
{
    const struct storm_case *this = &storm_cases[job / options->seeds / ROUND_TRIPS];
    struct storm_plan plan = {.seed = job % options->seeds + 1,
        .rate = this->rate,
        .round_trip = round_trips[job / options->seeds % ROUND_TRIPS],
        .pools = this->pools,
        .links = LINKS / this->pools};

    this->run(this, &plan, result);
}

static void run_jobs(const struct options *options, struct work *work, unsigned jobs)
{
    unsigned job;

    while ((job = atomic_fetch_add(&work->next, 1)) < jobs)
        if (is_asked_for(options, job / options->seeds / ROUND_TRIPS))
            run_one(options, job, &work->results[job]);
}

/* Returns false when a process ended otherwise than in order. */
static bool run_all(const struct options *options, struct work *work, unsigned jobs)
{
    bool well = true;
    int status;

    for (unsigned i = 0; i < options->workers; i++) {
        pid_t child = fork();
        if (child == 0) {
            run_jobs(options, work, jobs);
            _exit(0);
        }
        well = well && child > 0;
    }
    while (wait(&status) > 0)
        well = well && status == 0;
    return well;
}

struct summary {
    double mean, worst;
};

static struct summary sum_up(const struct result *results, unsigned seeds, const struct gate *gate)
{
    struct summary summary = {.worst = results[0].figures[gate->figure]};

    for (unsigned i = 0; i < seeds; i++) {
        double figure = results[i].figures[gate->figure];
        summary.mean += figure;
        if (gate->least ? figure < summary.worst : figure > summary.worst)
            summary.worst = figure;
    }
    summary.mean /= seeds;
    return summary;
}

static double limit_of(const struct gate *gate, double round_trip, const struct result *results, unsigned seeds)
{
    double limit = round_trip < 0.01 ? gate->near : gate->far;

    if (gate->beyond == NO_FIGURE)
        return limit;
    return limit + sum_up(results, seeds, &(struct gate){.figure = gate->beyond}).mean;
}

static bool holds(const struct summary *summary, const struct gate *gate, double limit)
{
    if (gate->least)
        return summary->mean >= limit && summary->worst >= limit / worst_seed;
    return summary->mean <= limit && summary->worst <= limit * worst_seed;
}

/* Returns how many gates were missed; counts all. */
static unsigned judge(
    const struct storm_case *this, double round_trip, const struct result *results, unsigned seeds, unsigned *gates)
{
    unsigned missed = 0;

    for (const struct gate *gate = this->gates; gate->figure != NO_FIGURE; gate++) {
        double limit = limit_of(gate, round_trip, results, seeds);
        struct summary summary = sum_up(results, seeds, gate);
        bool held = holds(&summary, gate, limit);
        printf("%-47s %3.0f ms  %-50s %9.4g (worst %9.4g)  %s %-5g %s\n", this->name, round_trip * 1000,
            figure_names[gate->figure], summary.mean, summary.worst, gate->least ? ">=" : "<=", limit,
            held ? "passed" : "FAILED");
        missed += !held;
        ++*gates;
    }
    return missed;
}

static int report(const struct options *options, const struct work *work)
{
    unsigned missed = 0, gates = 0;

    for (unsigned i = 0; i < n_storm_cases; i++)
        for (unsigned k = 0; k < ROUND_TRIPS && is_asked_for(options, i); k++)
            missed += judge(&storm_cases[i], round_trips[k], &work->results[(i * ROUND_TRIPS + k) * options->seeds],
                options->seeds, &gates);
    printf("%u passed, %u failed\n", gates - missed, missed);
    return missed || !gates ? EXIT_FAILURE : EXIT_SUCCESS;
}

static void read_options(struct options *options, int argc, char **argv)
{
    int option;

    *options = (struct options){.workers = (unsigned)sysconf(_SC_NPROCESSORS_ONLN), .seeds = STORM_SEEDS, .only = ""};
    while ((option = getopt(argc, argv, "w:s:c:")) != -1) {
        if (option == 'w')
            options->workers = (unsigned)strtoul(optarg, NULL, 10);
        else if (option == 's')
            options->seeds = (unsigned)strtoul(optarg, NULL, 10);
        else if (option == 'c')
            options->only = optarg;
        else
            exit(2);
    }
    if (!options->workers || !options->seeds)
        exit(2);
}

int main(int argc, char **argv)
{
    struct options options;
    struct work *work;
    unsigned jobs;
    size_t size;

    read_options(&options, argc, argv);
    jobs = n_storm_cases * ROUND_TRIPS * options.seeds;
    size = sizeof *work + jobs * sizeof *work->results;
    work = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (work == MAP_FAILED || !run_all(&options, work, jobs)) {
        printf("storm: a process did not end in order\n");
        return EXIT_FAILURE;
    }
    return report(&options, work);
}
