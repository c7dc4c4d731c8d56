/* main.c - plays seeds: `sim --seed N` one of them, `sim --from N --count M --jobs J` a run of them.
 *
 * A run plays the kept seeds first, then M from N on, in J processes that share them by turns. At the end it prints how
 * many events there were and how often each rarity was met, and fails where one was met too seldom. A game that fails
 * says how to play it again. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sim/sim.h"

enum {
    MAX_JOBS = 16,
    SECONDS = 120, /* of real time, for a game: else it hangs */
    LEAST = 10,    /* times each rarity, in a run of */
    ENOUGH = 4000  /* seeds and more */
};

struct result {
    uint64_t games, events, log;
    uint64_t large, unsettled; /* games of at least 2000 events; without a check of the end */
    struct rare rare;
};

static struct sim game;
static const char *self = "sim";
static bool plain_ones; /* games without calls, framed links and heartbeats: as all were once */

static void on_failure(int signal_number)
{
    fprintf(stderr, "sim: %s in turn %llu; play it again: %s --seed %llu%s\n",
        signal_number == SIGALRM ? "hangs" : "failed", (unsigned long long)game.turns, self,
        (unsigned long long)game.seed, game.plain ? " --plain" : "");
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void play(struct result *result, uint64_t seed, bool plain, bool verbose)
{
    alarm(SECONDS);
    game.seed = seed;
    game.plain = plain;
    sim__play(&game, seed, plain, verbose);
    alarm(0);
    result->games++;
    result->events += game.events;
    result->large += game.events >= 2000;
    result->unsettled += game.unsettled;
    result->log ^= game.log * (2 * seed + 1);
    for (int i = 0; i < N_RARITIES; i++)
        result->rare.n[i] += game.rare.n[i];
}

static void add(struct result *sum, const struct result *result)
{
    sum->games += result->games;
    sum->events += result->events;
    sum->large += result->large;
    sum->unsettled += result->unsettled;
    sum->log ^= result->log;
    for (int i = 0; i < N_RARITIES; i++)
        sum->rare.n[i] += result->rare.n[i];
}

/* ---- a run ---- */

/* The kept seeds: a number a line, of a plain game with "plain" before it, then why; '#' begins a comment. */
static void play_kept(struct result *result, const char *path)
{
    FILE *file = path ? fopen(path, "r") : NULL;
    char text[256];

    if (path && !file) {
        perror(path);
        exit(2);
    }
    while (file && fgets(text, sizeof text, file))
        if (*text >= '0' && *text <= '9')
            play(result, strtoull(text, NULL, 10), false, false);
        else if (!strncmp(text, "plain ", 6))
            play(result, strtoull(text + 6, NULL, 10), true, false);
    if (file)
        fclose(file);
}

static int work(int out, uint64_t from, uint64_t count, unsigned job, unsigned jobs, const char *kept)
{
    struct result result = {0};

    if (job == 0)
        play_kept(&result, kept);
    for (uint64_t i = job; i < count; i += jobs)
        play(&result, from + i, plain_ones, false);
    return write(out, &result, sizeof result) == (ssize_t)sizeof result ? 0 : 1;
}

static bool start(uint64_t from, uint64_t count, unsigned jobs, const char *kept, int *outs, pid_t *children)
{
    for (unsigned job = 0; job < jobs; job++) {
        int ends[2];
        if (pipe(ends) || (children[job] = fork()) < 0)
            return false;
        if (!children[job])
            _exit(work(ends[1], from, count, job, jobs, kept));
        close(ends[1]);
        outs[job] = ends[0];
    }
    return true;
}

static bool collect(struct result *sum, unsigned jobs, const int *outs, const pid_t *children)
{
    bool well = true;

    for (unsigned job = 0; job < jobs; job++) {
        struct result result;
        int status;
        if (read(outs[job], &result, sizeof result) == (ssize_t)sizeof result)
            add(sum, &result);
        well = waitpid(children[job], &status, 0) > 0 && status == 0 && well;
    }
    return well;
}

static int run(uint64_t from, uint64_t count, unsigned jobs, const char *kept, bool rarities)
{
    struct result sum = {0};
    int outs[MAX_JOBS];
    pid_t children[MAX_JOBS];

    fflush(stdout);
    if (!start(from, count, jobs, kept, outs, children) || !collect(&sum, jobs, outs, children))
        return 1;
    unsigned missed = rarities ? rare__print(&sum.rare, count >= ENOUGH ? LEAST : 0) : 0;
    printf("%llu games, %llu events, %llu games of 2000 and more, %llu did not settle, log %016llx\n",
        (unsigned long long)sum.games, (unsigned long long)sum.events, (unsigned long long)sum.large,
        (unsigned long long)sum.unsettled, (unsigned long long)sum.log);
    if (missed)
        printf("%u rarities were met less than %d times\n", missed, LEAST);
    return missed || sum.large * 2 < sum.games;
}

static int play_one(uint64_t seed, bool verbose)
{
    struct result result = {0};

    play(&result, seed, plain_ones, verbose);
    printf("seed %llu: %llu events in %llu turns, log %016llx\n", (unsigned long long)seed,
        (unsigned long long)game.events, (unsigned long long)game.turns, (unsigned long long)game.log);
    return 0;
}

int main(int argc, char **argv)
{
    unsigned long long seed = 0, from = 1, count = 100, jobs = 1;
    const char *kept = NULL;
    bool one = false, verbose = false, rarities = true;

    self = argv[0];
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--verbose"))
            verbose = true;
        else if (!strcmp(argv[i], "--no-rarities"))
            rarities = false;
        else if (!strcmp(argv[i], "--plain"))
            plain_ones = true;
        else if (!strcmp(argv[i], "--seed"))
            one = true, seed = strtoull(value, NULL, 0), i++;
        else if (!strcmp(argv[i], "--from"))
            from = strtoull(value, NULL, 0), i++;
        else if (!strcmp(argv[i], "--count"))
            count = strtoull(value, NULL, 0), i++;
        else if (!strcmp(argv[i], "--jobs"))
            jobs = strtoull(value, NULL, 0), i++;
        else if (!strcmp(argv[i], "--kept"))
            kept = value, i++;
        else
            return fprintf(stderr,
                       "usage: %s [--plain] --seed N [--verbose] | --from N --count M --jobs J --kept FILE\n", self),
                   2;
    }
    signal(SIGABRT, on_failure);
    signal(SIGSEGV, on_failure);
    signal(SIGALRM, on_failure);
    return one ? play_one(seed, verbose)
               : run(from, count, jobs && jobs <= MAX_JOBS ? (unsigned)jobs : 1, kept, rarities);
}
