/* profile.c - one seed, one game: how large, how fast, how hostile; and the options of its pool and hosts. */
#include "tests/sim/profile.h"

#include <math.h>
#include <string.h>

#include "tests/sim/sim.h"

double sim__spread(struct sim *s, double low, double high)
{
    unsigned octaves = 0, octave;
    double value = low;

    for (double at = low; at * 2 <= high; at *= 2)
        octaves++;
    octave = below(s, octaves + 1);
    for (unsigned i = 0; i < octave; i++)
        value *= 2;
    value *= 1 + unit(s);
    return value < high ? value : high;
}

unsigned sim__size(struct sim *s, unsigned low, unsigned high)
{
    return (unsigned)sim__spread(s, low, high);
}

static double time_between(struct sim *s, double low, double high)
{
    double time = sim__spread(s, low, high);

    if (time > s->longest)
        s->longest = time;
    return time;
}

/* Mostly what a program would choose; sometimes anything from 1 ms to 10 minutes. */
static double time_near(struct sim *s, double usual)
{
    if (once_in(s, 4))
        return time_between(s, 0.001, 600);
    return time_between(s, usual / 8, usual * 2);
}

static double time_or_never(struct sim *s, double usual)
{
    return once_in(s, 3) ? 0 : time_near(s, usual);
}

/* ---- backoff ---- */

/* The user's own rule: by the number alone. */
static double staircase(const struct backoff_policy *policy, const struct backoff_history *history, double bits)
{
    (void)policy, (void)bits;
    return history->attempt < 6 ? 0.05 * history->attempt : 0.3;
}

static void draw_backoff(struct sim *s, struct backoff_policy *policy)
{
    static const struct backoff_policy *const presets[] = {
        &backoff_default, &backoff_linkd, &backoff_edge, &backoff_grpc, &backoff_heartbeat, &backoff_signalr};
    unsigned which = below(s, 10);

    *policy = *presets[which < 6 ? which : 0];
    if (which >= 6) {
        policy->jitter = (enum backoff_jitter)below(s, 4);
        policy->base = sim__spread(s, 0.001, 2);
        policy->factor = 1 + unit(s) * 2;
        policy->cap = policy->base * sim__spread(s, 1, 64);
        policy->floor = once_in(s, 3) ? policy->base / 2 : 0;
        policy->spread = unit(s);
    }
    if (which == 9)
        policy->delay = staircase;
    policy->max_attempts = once_in(s, 4) ? 1 + below(s, 4) : 0;
    if (once_in(s, 2))
        policy->stable_after = time_near(s, 2);
    if (once_in(s, 2))
        policy->reconnect_spread = sim__spread(s, 0.001, 2);
}

/* ---- options ---- */

static unsigned bound(struct sim *s, unsigned most)
{
    if (s->p.small_bounds && once_in(s, 2))
        return 1 + below(s, 3);
    return sim__size(s, 1, most);
}

void sim__host_options(struct sim *s, int variant)
{
    struct pool_host_options *host = &s->host[variant];

    pool_host_options_init(host);
    sim__defaults(host);
    host->max_links = bound(s, 2000);
    host->min_links = once_in(s, 3) ? below(s, host->max_links + 1) % 6 : 0;
    host->max_connecting = bound(s, 256);
    host->first_connecting = sim__size(s, 1, host->max_connecting);
    host->max_uses = once_in(s, 4) ? sim__size(s, 1, 64) : 0;
    host->spread_links = once_in(s, 3);
    host->idle_timeout = time_or_never(s, 2);
    host->max_age = once_in(s, 3) ? time_near(s, 4) : 0;
    host->connect_timeout = time_near(s, 1);
    host->reset_timeout = time_near(s, 1);
    host->drain_timeout = time_near(s, 1);
    host->backoff = &s->backoff[variant];
    if (s->plain)
        return;
    signs__policy(s, &s->heart[variant]);
    host->heartbeat = &s->heart[variant];
    host->read_timeout = once_in(s, 8) ? time_near(s, 2) : 0;
    host->max_unanswered = below(s, 5);
}

void sim__pool_options(struct sim *s)
{
    struct pool_options *options = &s->options;

    options->max_links = bound(s, 2000);
    options->max_hosts = s->p.small_bounds && once_in(s, 3) ? bound(s, 200) : 1000;
    options->max_names = bound(s, 1000);
    options->max_waiting = once_in(s, 3) ? bound(s, 2000) : 65536;
    options->max_connecting = bound(s, 512);
    options->max_line = once_in(s, 2) ? bound(s, 1024) : 1024;
    options->wait_timeout = time_near(s, 2);
    options->host_timeout = time_near(s, 3);
    if (!s->plain)
        options->max_call_bytes = once_in(s, 6) ? sim__size(s, 200, 20000) : 8 << 20;
}

/* ---- the game ---- */

static void draw_sizes(struct sim *s)
{
    struct profile *p = &s->p;

    p->n_addresses = sim__size(s, 1, MAX_KEYS);
    p->n_keys = p->n_addresses + below(s, MAX_KEYS - p->n_addresses + 1) % (1 + p->n_addresses);
    p->n_targets = below(s, MAX_TARGETS + 1);
    p->n_users = sim__size(s, 2, MAX_USERS);
    p->burst = sim__size(s, 1, p->n_users);
    p->n_steps = 600 + below(s, 900);
}

/* One game in five has no calls. */
static void draw_calls(struct sim *s)
{
    if (once_in(s, 5))
        return;
    s->p.n_callers = sim__size(s, 1, MAX_CALLERS);
    s->p.n_crowds = sim__size(s, 1, MAX_CROWDS);
    framed__options(s);
}

void sim__profile(struct sim *s)
{
    struct profile *p = &s->p;

    p->hostility = below(s, 5);
    draw_sizes(s);
    p->gap = sim__spread(s, 0.0001, 0.2);
    p->jump = p->hostility > 1 && once_in(s, 2) ? sim__size(s, 40, 2000) : 0;
    p->trouble = p->hostility ? (once_in(s, 2) ? 60 : 12) / p->hostility : 0;
    p->patience = sim__size(s, 2, 8);
    p->react = sim__size(s, 2, 16);
    p->system_fails = p->hostility > 1 && once_in(s, 2);
    p->memory_fails = p->hostility > 2 && once_in(s, 2);
    p->descriptors_fail = p->hostility > 1 && once_in(s, 3);
    p->small_bounds = once_in(s, 2);
    p->aims = once_in(s, 2);
    p->frees = once_in(s, 4);
    for (int i = 0; i < 3; i++) {
        draw_backoff(s, &s->backoff[i]);
        sim__host_options(s, i);
    }
    pool_options_init(&s->options);
    sim__pool_options(s);
    if (!s->plain)
        draw_calls(s);
    s->options.host = &s->host[0];
}
