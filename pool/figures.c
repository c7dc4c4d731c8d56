/* figures.c - what may be read of a pool: plain structs and iterators. */
#include <string.h>

#include "pool/internal.h"

unsigned pool__idle(const struct pool *pool)
{
    unsigned n = 0;

    for (const struct pool_host *host = pool->hosts; host; host = host->hh.next)
        n += host->n_idle;
    return n;
}

void pool_stats(const struct pool *pool, struct pool_stats *stats, size_t size)
{
    struct pool_stats all = {.hosts = pool->n_hosts,
        .targets = pool->n_targets,
        .links = pool->n_links,
        .leased = pool->n_leased,
        .idle = pool__idle(pool),
        .connecting = pool->n_opening,
        .waiting = pool->n_waiting,
        .names = pool->n_names,
        .acquired_ready = pool->acquired_ready,
        .acquired_waited = pool->acquired_waited,
        .failed_fast = pool->failed_fast,
        .timed_out = pool->timed_out,
        .full = pool->full,
        .cancelled = pool->cancelled,
        .opened = pool->opened,
        .reused = pool->acquired_ready + pool->acquired_waited - pool->first_uses,
        .peeked = pool->peeked,
        .network_changes = pool->network_changes,
        .ignored_events = pool->core.counts.ignored + pool->core.counts.impossible,
        .stale_events = pool->core.counts.stale};

    link__heartbeat_stats(&pool->core, &all.heartbeat);
    memcpy(all.ends, pool->core.ends, sizeof all.ends);
    memcpy(all.wait_histogram, pool->wait_histogram, sizeof all.wait_histogram);
    memcpy(stats, &all, size < sizeof all ? size : sizeof all);
}

void pool_host_stats(const struct pool_host *host, struct pool_host_stats *stats, size_t size)
{
    const struct link *resting = host->lists[PLACE_RESTING];
    struct pool_host_stats all = {.state = pool_host_state(host),
        .leased = host->n_leased,
        .idle = host->n_idle,
        .waiting = host->line.n,
        .connect_limit = host->connect_limit,
        .failures = host->failures,
        .retry_in = resting ? link_retry_in(resting) : 0,
        .last_reason = (enum link_reason)host->owner.last_reason,
        .last_errno = host->owner.last_errno,
        .uses = host->uses,
        .opened = host->opened,
        .connected = host->connected,
        .failed = host->failures_seen,
        .bytes_sent = host->bytes_sent,
        .bytes_received = host->bytes_received};

    for (int state = 0; state < LINK_CLOSED; state++)
        all.links[state] = host->n[state];
    memcpy(stats, &all, size < sizeof all ? size : sizeof all);
}

struct pool_host *pool_next_host(const struct pool *pool, const struct pool_host *after)
{
    return after ? after->hh.next : pool->hosts;
}

struct pool_target *pool_next_target(const struct pool *pool, const struct pool_target *after)
{
    return after ? after->next : pool->targets;
}

const struct link *pool_host_next_link(const struct pool_host *host, const struct link *after)
{
    int place = 0;

    if (after && after->next)
        return after->next;
    if (after)
        place = after->place + 1;
    for (; place < PLACES; place++)
        if (host->lists[place])
            return host->lists[place];
    return NULL;
}
