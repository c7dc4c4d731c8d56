/* main.c - plays each scenario on both stages, over TCP's addresses and unix ones, and compares what was told.
 *
 * Usage: sim_seam [--scenario NAME] [--verbose]
 *
 * A line a scenario. Exit status 1: one differed, or a check failed; 2: no such scenario. */
#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/sim/seam/clock.h"
#include "tests/sim/seam/play.h"

/* Seconds. libev rounds a wait up to the next millisecond, so that what follows from a timer is late by as much, and
 * what follows from that by as much again. */
static const double rounding = 0.0012, least_slack = 0.0005;
/* Nothing is early: what floating point says beside the truth. */
static const double earliest = 1e-6;

static const struct scenario *const lists[] = {
    scenarios_wait, scenarios_life, scenarios_many, scenarios_bytes, scenarios_time, scenarios_end, NULL};

static struct {
    const char *scenario, *stage;
    bool is_unix;
} under_way;

static const char *kind(bool is_unix)
{
    return is_unix ? "unix" : "tcp";
}

/* A failed check of the library, or a hang. */
static void on_failure(int signal_number)
{
    fprintf(stderr, "%s (%s, on the %s stage): FAILED by signal %d\n", under_way.scenario, kind(under_way.is_unix),
        under_way.stage, signal_number);
    _exit(1);
}

static unsigned open_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    unsigned n = 0;

    while (directory && readdir(directory))
        n++;
    if (directory)
        closedir(directory);
    return n;
}

/* ---- comparing ---- */

struct comparison {
    const struct log *virtual, *real;
    size_t line;
    unsigned moments; /* at which something was told so far: so many waits for timers may lie behind this line */
};

static double slack(const struct comparison *c)
{
    return least_slack + rounding * c->moments;
}

static bool same(struct comparison *c)
{
    const struct record *virtual = &c->virtual->records[c->line], *real = &c->real->records[c->line];
    double late = real->at - virtual->at;

    c->moments += c->line > 0 && virtual->at > virtual[-1].at;
    return !strcmp(virtual->text, real->text) && late < slack(c) && late > -earliest &&
           (fabs(real->value - virtual->value) < slack(c) || (isinf(virtual->value) && isinf(real->value)));
}

static void print(const char *stage, const struct log *log, size_t i)
{
    if (i < log->n)
        printf("    %-7s %12.6f  %s  (%.6g)\n", stage, log->records[i].at, log->records[i].text, log->records[i].value);
    else
        printf("    %-7s ends\n", stage);
}

static bool compare(const struct log *virtual, const struct log *real)
{
    struct comparison c = {.virtual = virtual, .real = real};

    while (c.line < virtual->n && c.line < real->n && same(&c))
        c.line++;
    if (c.line == virtual->n && c.line == real->n)
        return true;
    printf("  line %zu:\n", c.line + 1);
    print("virtual", virtual, c.line);
    print("real", real, c.line);
    return false;
}

/* What a real loop may poll more often: an alarm may ring early, once; a wait is at most a minute; and a run ends
 * twice. A loop that spins, or wakes up for nothing, does it thousands of times. */
static bool compare_work(const struct log *virtual, const struct log *real)
{
    double seconds = virtual->n ? virtual->records[virtual->n - 1].at : 0;
    double most = 3.0 * virtual->turns + seconds / 50 + 20;

    if (real->turns <= most)
        return true;
    printf("    %u turns, on the virtual stage %u\n", real->turns, virtual->turns);
    return false;
}

/* ---- playing ---- */

static struct log play_on(const struct scenario *scenario, struct stage *stage, bool is_unix, bool verbose, bool *well)
{
    struct log log;
    unsigned broken;

    under_way.stage = stage->name;
    play_scenario(scenario, stage, is_unix, verbose, &log, &broken);
    for (size_t i = 0; broken && i < log.n; i++)
        if (!strncmp(log.records[i].text, "BROKEN", 6))
            print(stage->name, &log, i);
    stage->free(stage);
    *well = *well && !broken;
    return log;
}

static bool play(const struct scenario *scenario, bool is_unix, bool verbose)
{
    unsigned descriptors = open_descriptors();
    bool well = true, left;
    struct log virtual, real;

    under_way.scenario = scenario->name;
    under_way.is_unix = is_unix;
    alarm(60);
    virtual = play_on(scenario, stage_virtual(), is_unix, verbose, &well);
    real = play_on(scenario, stage_real(), is_unix, verbose, &well);
    well = compare(&virtual, &real) && compare_work(&virtual, &real) && well;
    left = open_descriptors() != descriptors;
    if (left)
        printf("    descriptors are left open\n");
    printf("%-6s %-5s %s, %zu lines\n", well && !left ? "passed" : "FAILED", kind(is_unix), scenario->name, virtual.n);
    free(virtual.records);
    free(real.records);
    return well && !left;
}

struct sum {
    unsigned scenarios, played, failed;
};

static void play_both(const struct scenario *scenario, bool verbose, struct sum *sum)
{
    sum->scenarios++;
    for (int is_unix = 0; is_unix <= !scenario->tcp_only; is_unix++) {
        sum->played++;
        sum->failed += !play(scenario, is_unix, verbose);
    }
}

int main(int argc, char **argv)
{
    const char *only = NULL;
    bool verbose = false;
    struct sum sum = {0};

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--verbose"))
            verbose = true;
        else if (!strcmp(argv[i], "--scenario") && i + 1 < argc)
            only = argv[++i];
        else
            return fprintf(stderr, "usage: %s [--scenario NAME] [--verbose]\n", argv[0]), 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGABRT, on_failure);
    signal(SIGSEGV, on_failure);
    signal(SIGALRM, on_failure);
    for (int i = 0; lists[i]; i++)
        for (const struct scenario *scenario = lists[i]; scenario->name; scenario++)
            if (!only || !strcmp(only, scenario->name))
                play_both(scenario, verbose, &sum);
    printf("%u scenarios, played %u times on both stages, %u differ\n", sum.scenarios, sum.played, sum.failed);
    return sum.failed ? 1 : sum.scenarios ? 0 : 2;
}
