/* storm.c - the model: pools, a server that shakes hands one at a time, and an observer that counts.
 *
 * A round trip passes before connect() succeeds and another before the server's byte is there, which it says when the
 * handshake's time is over. */
#include "tests/sim/storm/storm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char address[] = "10.0.0.1:80";
static const double peace = 30; /* seconds READY before t = 0: three times `stable_after` */

static void need(bool held, const char *what)
{
    if (held)
        return;
    fprintf(stderr, "storm: %s\n", what);
    abort();
}

/* ---- the clients' protocol: wait for a byte ---- */

static int wait_for_it(struct protocol_link *pl)
{
    (void)pl;
    return 0;
}

static int hear(struct protocol_link *pl, unsigned events)
{
    char byte;
    ssize_t got = protocol_read(pl, &byte, 1);

    (void)events;
    if (got == LINKPOOL_ELOST)
        return LINKPOOL_ELOST;
    return got < 0 ? 0 : protocol_ready(pl);
}

static const struct protocol greeted = {
    .size = sizeof(struct protocol), .name = "greeted", .start = wait_for_it, .input = hear};

/* ---- a server that dies ---- */

static unsigned failures_of(const struct storm_pool *pool)
{
    struct pool_host_stats stats;

    pool_host_stats(pool->host, &stats, sizeof stats);
    return stats.failures;
}

/* The gap after death n is drawn from the default policy: half of d to d. */
static bool is_on_the_curve(double gap, unsigned n)
{
    double d = fmin(backoff_default.cap, backoff_default.base * pow(backoff_default.factor, n - 1));

    return gap >= d / 2 - 1e-6 && gap <= d + 1e-6;
}

/* From one death to the next. What comes before the first is the opening after a loss, which was not foreseen. */
static void look_back(struct storm *storm)
{
    unsigned attempts = testing_peer_attempts(storm->server) - storm->died_attempts;

    if (storm->deaths == 0)
        return;
    if (attempts > storm->crowded)
        storm->crowded = attempts;
    if (attempts > 0 && /* links that were under way may come up, and die before the next attempt is due */
        !is_on_the_curve(testing_peer_attempt_at(storm->server, storm->died_attempts) - storm->died, storm->deaths))
        storm->off_the_curve++;
    if (failures_of(&storm->pools[0]) != storm->died_failures + 1)
        storm->miscounted++;
}

static void die(void *data)
{
    struct storm *storm = data;

    storm->death_planned = false;
    if (storm->dies_after == 0)
        return;
    look_back(storm);
    storm->deaths++;
    storm->died = testing_now(storm->t);
    storm->died_attempts = testing_peer_attempts(storm->server);
    storm->died_failures = failures_of(&storm->pools[0]);
    testing_peer_cut(storm->server, LINK_RESET);
}

void storm_die_after(struct storm *storm, double seconds)
{
    storm->dies_after = seconds;
    storm->died_attempts = testing_peer_attempts(storm->server);
}

/* ---- one whose handshakes fail ---- */

static double draw(struct storm *storm)
{
    return (double)(testing_random(storm->t) >> 11) * 0x1p-53;
}

static void on_accepted(void *data, struct testing_conn *conn)
{
    struct storm *storm = data;

    if (storm->rude || (storm->failing > 0 && draw(storm) < storm->failing))
        testing_conn_reset(conn);
}

/* ---- what the clients see ---- */

static void count_link(struct storm *storm, const struct link_transition *transition)
{
    double now = testing_now(storm->t);

    storm->ready -= transition->from == LINK_READY;
    if (transition->to != LINK_READY)
        return;
    storm->ready++;
    if (storm->ready * 100 >= storm->wanted * 99 && isinf(storm->most_back))
        storm->most_back = now;
    if (storm->ready == storm->wanted && isinf(storm->all_back))
        storm->all_back = now;
    if (storm->dies_after > 0 && !storm->death_planned) {
        storm->death_planned = true;
        testing_at(storm->t, now + storm->dies_after, die, storm);
    }
}

static void count_neighbour(struct storm *storm, const struct link_transition *transition)
{
    storm->neighbours_ready -= transition->from == LINK_READY;
    storm->neighbours_ready += transition->to == LINK_READY;
    if (storm->neighbours_ready == storm->neighbours_wanted && isinf(storm->neighbours_opened))
        storm->neighbours_opened = testing_now(storm->t);
}

static void on_transition(void *data, const struct pool_host *host, const struct link_transition *transition)
{
    const struct storm_pool *pool = data;

    if (host == pool->host)
        count_link(pool->storm, transition);
    else
        count_neighbour(pool->storm, transition);
}

/* ---- the world ---- */

static struct pool_host *name_host(struct storm_pool *pool, const char *text, unsigned links)
{
    struct pool_host_options options;
    struct pool_host *host;

    pool_host_options_init(&options);
    options.max_links = options.min_links = links;
    options.protocol = &greeted;
    host = pool_host_for(
        pool->pool, &(struct pool_endpoint){.size = sizeof(struct pool_endpoint), .address = text}, &options);
    need(host, "a host could not be made");
    return host;
}

static void open_pool(struct storm *storm, struct storm_pool *pool)
{
    struct pool_observer observer = {.size = sizeof observer, .transition = on_transition, .data = pool};
    struct pool_options options;

    pool_options_init(&options);
    options.max_links = 20000;
    options.env = testing_env(storm->t);
    options.observer = &observer;
    pool->storm = storm;
    pool->pool = pool_new_on(testing_driver(storm->t), &options);
    need(pool->pool, "a pool could not be made");
    pool->host = name_host(pool, address, storm->plan.links);
}

static void open_alone(struct storm *storm)
{
    struct pool_observer observer = {.size = sizeof observer, .transition = on_transition, .data = &storm->pools[0]};
    struct link_options options;

    storm->pools[0].storm = storm;
    link_options_init(&options);
    options.protocol = &greeted;
    options.backoff = storm->plan.alone;
    options.env = testing_env(storm->t);
    options.observer = &observer;
    storm->driver = testing_driver(storm->t);
    storm->alone = calloc(storm->wanted, sizeof *storm->alone);
    need(storm->driver && storm->alone, "no memory");
    for (unsigned i = 0; i < storm->wanted; i++) {
        storm->alone[i] = link_new(storm->driver, address, &options);
        need(storm->alone[i], "a link could not be made");
        link_start(storm->alone[i]);
    }
}

static void close_alone(struct storm *storm)
{
    for (unsigned i = 0; i < storm->wanted; i++)
        link_free(storm->alone[i]);
    free(storm->alone);
    driver_free(storm->driver);
}

static struct testing_peer *add_server(struct storm *storm, const char *text)
{
    struct testing_peer *peer = testing_peer_add(storm->t, text, TESTING_ACCEPT);

    need(peer, "a peer could not be made");
    testing_peer_greet(peer, "!", 1);
    testing_peer_delay(peer, storm->plan.round_trip, storm->plan.round_trip + 1 / storm->plan.rate);
    return peer;
}

static bool all_ready(void *data)
{
    const struct storm *storm = data;

    return storm->ready == storm->wanted;
}

static void forget(struct storm *storm)
{
    storm->most_back = storm->all_back = INFINITY;
}

/* The first opening is no storm: the server takes all at once, so that every pool has learned to open briskly. */
void storm_begin(struct storm *storm, const struct storm_plan *plan)
{
    *storm = (struct storm){.plan = *plan, .wanted = plan->pools * plan->links};
    need(plan->pools <= STORM_POOLS, "too many pools");
    forget(storm);
    storm->t = testing_new(plan->seed);
    need(storm->t, "no memory");
    storm->server = add_server(storm, address);
    testing_peer_on(storm->server,
        &(struct testing_server){.size = sizeof(struct testing_server), .accepted = on_accepted, .data = storm});
    if (plan->alone)
        open_alone(storm);
    for (unsigned i = 0; i < plan->pools && !plan->alone; i++)
        open_pool(storm, &storm->pools[i]);
    need(testing_run_until(storm->t, all_ready, storm, 60), "the links did not come up to begin with");
    testing_run_for(storm->t, peace);
    testing_peer_accept_rate(storm->server, plan->rate);
}

void storm_end(struct storm *storm)
{
    if (storm->alone)
        close_alone(storm);
    for (unsigned i = 0; i < storm->plan.pools; i++)
        pool_free(storm->pools[i].pool);
    need(testing_misuses(storm->t) == 0, testing_last_misuse(storm->t));
    need(testing_open_descriptors(storm->t) == 0 && testing_blocks(storm->t) == 0, "something is left");
    testing_free(storm->t);
}

void storm_strike(struct storm *storm, enum testing_behaviour behaviour)
{
    storm->struck = storm->returned = testing_now(storm->t);
    storm->struck_attempts = storm->returned_attempts = testing_peer_attempts(storm->server);
    storm->returned_accepted = testing_peer_accepted(storm->server);
    forget(storm);
    testing_peer_behave(storm->server, behaviour);
    testing_peer_cut(storm->server, LINK_RESET);
}

void storm_run_to(struct storm *storm, double seconds)
{
    double left = storm->struck + seconds - testing_now(storm->t);

    need(testing_run_for(storm->t, left > 0 ? left : 0), "something spins");
}

void storm_return(struct storm *storm)
{
    storm->returned = testing_now(storm->t);
    storm->returned_attempts = testing_peer_attempts(storm->server);
    storm->returned_accepted = testing_peer_accepted(storm->server);
    forget(storm);
    storm->rude = false;
    testing_peer_behave(storm->server, TESTING_ACCEPT);
}

static bool all_back(void *data)
{
    const struct storm *storm = data;

    return !isinf(storm->all_back);
}

bool storm_recover(struct storm *storm, double at_most)
{
    return testing_run_until(storm->t, all_back, storm, at_most);
}

/* ---- the neighbours ---- */

void storm_add_neighbours(struct storm *storm)
{
    char text[32];

    storm->neighbours_opened = INFINITY;
    storm->neighbours_wanted = STORM_NEIGHBOURS * STORM_NEIGHBOUR_LINKS;
    for (int i = 0; i < STORM_NEIGHBOURS; i++) {
        snprintf(text, sizeof text, "10.1.0.%d:80", i + 1);
        testing_peer_accept_rate(add_server(storm, text), storm->plan.rate);
        name_host(&storm->pools[0], text, STORM_NEIGHBOUR_LINKS);
    }
}

static bool neighbours_open(void *data)
{
    const struct storm *storm = data;

    return storm->neighbours_ready == storm->neighbours_wanted;
}

void storm_open_neighbours(struct storm *storm)
{
    testing_run_until(storm->t, neighbours_open, storm, 60);
}

/* ---- figures ---- */

unsigned storm_crowd(const struct storm *storm, unsigned first, double window)
{
    unsigned most = 0, from = first, n = testing_peer_attempts(storm->server);

    for (unsigned i = first; i < n; i++) {
        double time = testing_peer_attempt_at(storm->server, i);
        while (time - testing_peer_attempt_at(storm->server, from) >= window)
            from++;
        if (i - from + 1 > most)
            most = i - from + 1;
    }
    return most;
}
