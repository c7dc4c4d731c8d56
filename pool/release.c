/* release.c - giving a channel back, giving up the wish, and having it taken away.
 *
 * A link is lent again only when it is clean and nothing is decided against it. Most returns take the short way: list
 * moves and counters. */
#include <utlist.h>

#include "pool/internal.h"

/* ---- giving back ---- */

static void busy_to_idle(struct pool_host *host, struct link *link)
{
    DL_DELETE(host->lists[PLACE_BUSY], link);
    DL_PREPEND(host->lists[PLACE_IDLE], link);
    link->place = PLACE_IDLE;
    host->n_idle++;
    if (!host->may_lend)
        pool__lends(host);
}

static enum link_reason ends_at_return(const struct pool_host *host, const struct link *link)
{
    const struct pool *pool = pool__of(host);
    const struct pool_host_options *options = pool__options(host);

    if (options->max_uses && link->uses >= options->max_uses)
        return LINK_USED_UP;
    if (pool->n_links > pool->options.max_links || pool__sockets(host) > options->max_links)
        return LINK_DRAINED; /* the bound was lowered */
    if ((host->draining || pool->draining) && !pool__oldest_taker(host))
        return LINK_DRAINED;
    if (pool->starving.n && pool__must_make_room(link))
        return LINK_MADE_ROOM;
    return LINK_NO_REASON;
}

static void back_to_idle(struct pool_host *host, struct link *link)
{
    struct pool *pool = pool__of(host);

    link->idle_since = pool__now(pool);
    pool__place(link);
    pool__arm_idle(host, link->idle_since);
    if (!pool->n_waiting)
        return;
    pool__serve(host);
    if (link->place <= PLACE_RESERVE) /* those who want an unused one may have its place */
        pool__want_host(host);
}

/* Nobody holds it: it ends, but not before the message is heard that is being delivered. */
static void end_unheld(struct pool_host *host, struct link *link, enum link_reason reason)
{
    if (!link__is_delivering(link)) {
        link__end(link, reason, 0);
        return;
    }
    link->retire = (uint8_t)reason;
    link->idle_since = pool__now(pool__of(host));
    pool__place(link);
    pool__arm_idle(host, link->idle_since);
}

/* A stream of a shared link: the link goes on, unless it was only waiting for this. */
static void stream_back(struct pool_host *host, struct link *link)
{
    enum link_reason reason;

    if (link__state(link) == LINK_DRAINING)
        link__drained(link);
    else if (!link__held(link) && (reason = link->retire ? (enum link_reason)link->retire : ends_at_return(host, link)))
        end_unheld(host, link, reason);
    else
        back_to_idle(host, link);
}

void pool__told(struct channel *channel)
{
    struct link *link = channel->link;
    struct link_core *core = link__core(link);

    link__enter(core);
    link__told(channel);
    if (link__is_shared(link) && link__is_open(link) && !(link->bits & LINK_ENDING))
        stream_back(pool__host_of(link), link);
    link__leave(core);
}

/* Nothing is against the link, and nothing of the host or pool is in its way: most returns. */
static bool is_plain_return(const struct pool *pool, const struct pool_host *host, const struct link *link)
{
    return host->is_plain && link__is_spotless(link) && !pool->n_waiting && !pool->starving.n && !pool->draining &&
           !host->draining && !pool->bounds_lowered;
}

static void plain_return(struct pool *pool, struct pool_host *host, struct link *link)
{
    link__free_whole(link, pool->core.driver);
    link->idle_since = pool__now(pool);
    busy_to_idle(host, link);
    host->n_leased--;
    pool->n_leased--;
    pool__arm_idle(host, link->idle_since);
}

/* A stream of a shared link that others hold, and that stays what it is: most returns of such. */
static bool is_held_on(const struct pool *pool, const struct pool_host *host, const struct link *link)
{
    return link->place == PLACE_PARTIAL && link__held(link) > 1 && !pool->n_waiting && !pool->draining &&
           !host->draining;
}

static void stream_return(struct pool *pool, struct pool_host *host, struct channel *channel, bool discard)
{
    struct link *link = channel->link;

    host->n_leased--;
    pool->n_leased--;
    link->idle_since = pool__now(pool);
    link__enter(&pool->core); /* hooks may end the link */
    link__give_stream_back(channel, discard);
    link__leave(&pool->core);
}

static void take_back(
    struct pool_host *host, struct channel *channel, enum pool_disposition disposition, int system_errno)
{
    struct link *link = channel->link;
    enum link_reason reason = LINK_NO_REASON;
    bool faulted = link->fault;
    enum link_give_back how = link__give_back(channel, disposition == POOL_DISCARD, &reason);

    host->n_leased--;
    pool__of(host)->n_leased--;
    if (pool__of(host)->draining || host->draining)
        link__later(&pool__of(host)->core);
    if (link__is_shared(link)) {
        stream_back(host, link);
        return;
    }
    if (how != LINK_UNCLEAN) /* one that drains is not clean: it is to retire */
        reason = ends_at_return(host, link);
    if (reason)
        link__end(link, reason, faulted ? system_errno : 0);
    else if (how == LINK_CLEANING)
        link__clean(link);
    else
        back_to_idle(host, link);
}

static void give_back(
    struct pool_host *host, struct channel *channel, enum pool_disposition disposition, int system_errno)
{
    struct link_core *core = &pool__of(host)->core;

    link__enter(core); /* hooks may end the link */
    take_back(host, channel, disposition, system_errno);
    link__leave(core);
}

static void count_bytes(struct pool_lease *lease)
{
    if (!lease->bytes_sent && !lease->bytes_received)
        return;
    lease->host->bytes_sent += lease->bytes_sent;
    lease->host->bytes_received += lease->bytes_received;
}

static void leave_target(struct pool_claim *claim)
{
    if (!claim->target)
        return;
    claim->target->n_held--;
    if (claim->target->draining)
        pool__see_target_drain(claim->target);
    claim->target = NULL;
}

/* Its channel was taken away, and its holder gives it up before it has been told: that ends it as well. */
static int release_lost(struct pool_lease *lease)
{
    struct pool_claim *claim = pool__claim(lease);

    pool__untell(claim->pool, lease);
    claim->state = CLAIM_OVER;
    lease->channel = NULL;
    pool__told(claim->channel);
    return 0;
}

int pool_release(struct pool_lease *lease, enum pool_disposition disposition)
{
    struct pool_claim *claim = pool__claim(lease);

    if (disposition != POOL_REUSE && disposition != POOL_DISCARD)
        return LINKPOOL_EINVAL;
    if (claim->state == CLAIM_LOST)
        return release_lost(lease);
    if (claim->state != CLAIM_HELD)
        return LINKPOOL_ESTATE;
    struct pool_host *host = lease->host;
    struct pool *pool = claim->pool;
    count_bytes(lease);
    claim->state = CLAIM_OVER;
    lease->channel = NULL;
    leave_target(claim);
    if (is_held_on(pool, host, claim->channel->link))
        stream_return(pool, host, claim->channel, disposition == POOL_DISCARD);
    else if (disposition == POOL_REUSE && is_plain_return(pool, host, claim->channel->link))
        plain_return(pool, host, claim->channel->link);
    else
        give_back(host, claim->channel, disposition, lease->system_errno);
    pool__check_host(pool, host);
    pool__check(pool);
    return 0;
}

/* A winner that gives up before it was told: the link was never used. */
static void pass_on(struct pool_lease *lease)
{
    struct pool_claim *claim = pool__claim(lease);
    struct link *link = claim->channel->link;

    pool__untell(claim->pool, lease);
    pool__won_no_more(claim);
    claim->state = CLAIM_OVER;
    link->uses--;
    if (link->retire == LINK_USED_UP)
        link->retire = LINK_NO_REASON;
    claim->channel->promised = false;
    leave_target(claim);
    give_back(pool__host_of(link), claim->channel, POOL_REUSE, 0);
}

int pool_cancel(struct pool_lease *lease)
{
    struct pool_claim *claim = pool__claim(lease);
    struct pool *pool = claim->pool;

    switch (claim->state) {
    case CLAIM_WAITING:
        pool__unwait(lease);
        claim->state = CLAIM_OVER;
        break;
    case CLAIM_WON:
        pass_on(lease);
        break;
    case CLAIM_FAILED:
        pool__untell(pool, lease);
        claim->state = CLAIM_OVER;
        break;
    default:
        return LINKPOOL_ESTATE;
    }
    pool->cancelled++;
    if (pool->draining)
        link__later(&pool->core);
    pool__check(pool);
    return 0;
}

/* ---- taken away ---- */

void pool__lost(struct channel *channel, enum link_reason reason, int system_errno, bool safe_to_repeat)
{
    struct pool_lease *lease = channel->lease;
    struct pool_claim *claim = pool__claim(lease);
    struct pool_host *host = pool__host_of(channel->link);
    struct pool *pool = pool__of(host);

    host->n_leased--;
    pool->n_leased--;
    if (claim->state == CLAIM_WON) { /* back to its place: it was never told */
        pool__untell(pool, lease);
        pool__won_no_more(claim);
        if (claim->target)
            claim->target->n_held--;
        channel->promised = false;
        pool__wait_again(lease);
        pool__told(channel);
        return;
    }
    lease->reason = reason;
    lease->system_errno = system_errno;
    lease->fate = link__fate(channel, safe_to_repeat);
    lease->status = pool->freed || reason == LINK_DRAINED || reason == LINK_STOPPED ? LINKPOOL_ECLOSED : LINKPOOL_ELOST;
    count_bytes(lease);
    leave_target(claim);
    claim->state = CLAIM_LOST;
    pool__to_tell(pool, lease);
}
