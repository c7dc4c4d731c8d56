/* serve.c - free channels to those who wait.
 *
 * A channel that falls free goes to the oldest of those at the heads of its host's line and of the host's targets'
 * lines whose picker takes it. Nobody is served inside an end: then lines are looked at at the end of the turn. */
#include "pool/internal.h"

/* May the lease, waiting in this line, have the link that is free on the host? */
static bool would_do(const struct pool_host *host, const struct pool_membership *member, const struct pool_lease *lease)
{
    if (member && (pool__is_down(host) || !pool__takes(member->target, lease, member->index)))
        return false;
    return !(lease->flags & POOL_FRESH) || pool__fresh_link(host);
}

/* The first of a line that would do. One with wishes of its own that are not met lets those behind it pass, and so does
 * one that its picker has sent to another host. */
static struct pool_lease *first_taker(
    const struct pool_host *host, const struct pool_membership *member, const struct pool_line *line)
{
    for (const struct pool_claim *claim = line->first; claim; claim = claim->next) {
        struct pool_lease *lease = pool__lease(claim);
        if (would_do(host, member, lease))
            return lease;
        if (!(lease->flags & POOL_FRESH) && !lease->avoid && !(member && member->target->picker->by_lease))
            break;
    }
    return NULL;
}

struct pool_lease *pool__oldest_taker(const struct pool_host *host)
{
    struct pool_lease *oldest = host->line.n ? first_taker(host, NULL, &host->line) : NULL;

    for (const struct pool_membership *member = host->memberships; member; member = member->next) {
        struct pool_lease *lease = member->target->line.n ? first_taker(host, member, &member->target->line) : NULL;
        if (lease && (!oldest || pool__claim(lease)->ticket < pool__claim(oldest)->ticket))
            oldest = lease;
    }
    return oldest;
}

void pool__serve(struct pool_host *host)
{
    struct pool *pool = pool__of(host);
    struct pool_lease *lease;
    struct channel *channel;

    if (pool->serving) /* a hook of a link that is being taken called up: the loop below goes on with what it said */
        return;
    pool->serving = true;
    while (pool->n_waiting && pool__free_link(host) && (lease = pool__oldest_taker(host)))
        if ((channel = pool__take(host, lease)))
            pool__give(lease, channel);
        else if (lease->status == LINKPOOL_ENOMEM)
            pool__fail(lease, LINKPOOL_ENOMEM);
    pool->serving = false;
}

/* Whoever comes to the head of its line meanwhile may be one for a host that was passed already: once more then. */
void pool__serve_target(struct pool_target *target)
{
    const struct pool_membership *member;
    unsigned n;

    do {
        n = target->line.n;
        for (member = target->lending; member && target->line.n; member = member->lend_next)
            pool__serve(member->host);
    } while (target->line.n && target->line.n < n);
}

void pool__serve_all(struct pool_host *host)
{
    if (!pool__of(host)->n_waiting)
        return;
    pool__serve(host);
    for (const struct pool_membership *member = host->memberships; member; member = member->next)
        pool__serve_target(member->target);
}
