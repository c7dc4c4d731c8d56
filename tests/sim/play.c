/* play.c - one game: a step at a time, all checks after each event; then calm, then the end. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim.h"

/* ---- the log ---- */

static void mix(struct sim *s, uint64_t word)
{
    s->log = (s->log ^ word) * 0x9E3779B97F4A7C15u;
    s->log ^= s->log >> 29;
}

void sim__note(struct sim *s, const char *what, uint64_t a, uint64_t b)
{
    for (const char *c = what; *c; c++)
        mix(s, (unsigned char)*c);
    mix(s, a);
    mix(s, b);
    if (s->verbose)
        fprintf(stderr, "%.9f turn %llu %s %lld %lld\n", testing_now(s->t), (unsigned long long)s->turns, what,
            (long long)a, (long long)b);
}

void sim__note_time(struct sim *s, const char *what, uint64_t a, double time)
{
    uint64_t bits;

    memcpy(&bits, &time, sizeof bits);
    sim__note(s, what, a, bits);
}

void sim__fail(const struct sim *s, const char *file, int line, const char *text)
{
    fprintf(stderr, "sim: seed %llu, turn %llu, %s:%d: %s\n", (unsigned long long)s->seed, (unsigned long long)s->turns,
        file, line, text);
    abort();
}

/* ---- steps ---- */

static void burst(struct sim *s)
{
    unsigned n = sim__size(s, 1, s->p.burst), from = below(s, s->p.n_users);

    for (unsigned i = 0; i < n && s->pool; i++)
        sim__ask(s, &s->users[(from + i) % s->p.n_users]);
}

void sim__act(struct sim *s)
{
    bool calls = s->p.n_callers && once_in(s, 3);
    unsigned what = below(s, 64), i = below(s, s->p.n_users);

    s->turn_actions++;
    s->actions++;
    s->events++;
    if (!s->pool || s->calm)
        return;
    if (calls && what < 8)
        crowds__act(s);
    else if (calls)
        calls__act(s);
    else if (what == 0)
        burst(s);
    else if (what < 4)
        sim__own(s);
    else
        sim__use(s, &s->users[i]);
    sim__look_at_kept(s);
    if (s->p.trouble && once_in(s, s->p.trouble))
        sim__trouble(s);
}

static void see_hosts(struct sim *s)
{
    struct pool_stats stats;

    if (!s->pool)
        return;
    pool_stats(s->pool, &stats, sizeof stats);
    s->hosts_went = stats.hosts < s->n_hosts;
}

static void act_some(struct sim *s)
{
    unsigned n = sim__size(s, 1, 8);

    see_hosts(s);
    for (unsigned i = 0; i < n; i++)
        sim__act(s);
    if (s->p.n_callers)
        sim__go_on(s);
    s->hosts_went = false;
}

static void on_tick(void *data)
{
    struct sim *s = data;

    s->ticked = true;
    s->depth++;
    act_some(s);
    s->depth--;
}

bool sim__turn(struct sim *s)
{
    bool more;

    s->turns++;
    s->events++;
    more = testing_turn(s->t);
    sim__check_turn(s);
    return more;
}

/* When the next step comes: soon; or with the next timer of the library's. */
static double next_time(struct sim *s)
{
    double now = testing_now(s->t), alarm = s->pool->core.alarm;

    if (s->p.aims && alarm < INFINITY && alarm > now && once_in(s, 4))
        return alarm;
    return now + s->p.gap * sim__spread(s, 0.0625, once_in(s, 20) ? 256 : 2);
}

static void leap(struct sim *s)
{
    struct pool_stats stats;
    unsigned shaking = 0;

    pool_stats(s->pool, &stats, sizeof stats);
    for (const struct pool_host *host = NULL; (host = pool_next_host(s->pool, host));)
        shaking += host->n[LINK_HANDSHAKING];
    s->rare.n[RARE_JUMP_IN_HANDSHAKE] += shaking > 0;
    s->rare.n[RARE_JUMP_WHILE_WAITING] += stats.waiting > 0;
    sim__note_time(s, "leap", 0, sim__jump(s));
}

static void step(struct sim *s)
{
    if (s->p.jump && once_in(s, s->p.jump))
        leap(s);
    if (once_in(s, 3)) {
        act_some(s); /* from outside the loop */
        if (!s->pool)
            return;
    }
    s->ticked = false;
    testing_at(s->t, next_time(s), on_tick, s);
    while (!s->ticked && s->turns < MOST_TURNS)
        sim__turn(s);
    testing_at_cancel(s->t, on_tick, s);
}

/* ---- the beginning ---- */

static struct sim *playing; /* whose memory it is: the env's functions know the world alone */

static void *count_realloc(void *data, void *memory, size_t was, size_t size)
{
    void *got = testing_env(data)->realloc(data, memory, was, size);

    if (size && !got)
        playing->memory_failures++;
    return got;
}

static void begin(struct sim *s)
{
    sim__profile(s);
    sim__world(s);
    playing = s;
    s->env = *testing_env(s->t);
    s->env.realloc = count_realloc;
    s->options.env = &s->env;
    sim__watch(s);
    for (unsigned i = 0; i < s->p.n_users; i++)
        s->users[i].sim = s;
    calls__begin(s);
    crowds__begin(s);
    s->jumped_at = s->jumped_to = -INFINITY;
    s->pool = pool_new_on(testing_driver(s->t), &s->options);
    HOLDS(s, s->pool);
}

/* ---- the end ---- */

static void forget(struct sim *s)
{
    struct line *line;

    while ((line = s->lines)) {
        s->lines = line->next;
        free(line);
    }
}

static void end(struct sim *s)
{
    uint64_t moves;

    s->calm = true;
    sim__free_pool(s);
    for (unsigned i = 0; i < s->p.n_users; i++)
        HOLDS(s, s->users[i].state == USER_FREE);
    moves = s->events;
    sim__links_end(s);
    HOLDS(s, testing_run_for(s->t, 4000) && moves == s->events); /* no timer is left that would do anything */
    HOLDS(s, !testing_misuses(s->t) && !testing_stuck(s->t));
    HOLDS(s, !testing_open_descriptors(s->t) && !testing_blocks(s->t));
    sim__world_end(s);
    calls__free(s);
    ledger__free(s);
    forget(s);
}

void sim__play(struct sim *s, uint64_t seed, bool plain, bool verbose)
{
    memset(s, 0, sizeof *s);
    s->seed = seed;
    s->plain = plain;
    s->verbose = verbose;
    begin(s);
    for (unsigned i = 0; i < s->p.n_steps && s->pool && s->turns < MOST_TURNS; i++)
        step(s);
    if (s->pool && !once_in(s, 5))
        sim__settle(s);
    end(s);
}
