/* lease.c - acquire, cancel, release: the path that must be short.
 *
 * With a ready link at hand a lease touches its host, the link and itself: list moves and counters, no allocation, no
 * system call, no timer. A newcomer overtakes nobody: as long as somebody waits, no link that would do is free. */
#include <math.h>
#include <string.h>
#include <utlist.h>

#include "link/options.h"
#include "pool/internal.h"

/* ---- taking a channel ---- */

/* An unused link that is free, for a lease that wants no other. */
static struct link *fresh_link(const struct pool_host *host)
{
    struct link *link;

    DL_FOREACH(host->lists[PLACE_IDLE], link)
        if (!link->uses)
            return link;
    return NULL;
}

static struct link *free_link_for(const struct pool_host *host, const struct pool_lease *lease)
{
    if (lease->flags & POOL_FRESH)
        return fresh_link(host);
    if (host->lists[PLACE_PARTIAL] || !host->lists[PLACE_IDLE])
        return host->lists[PLACE_PARTIAL];
    return pool__options(host)->spread_links ? host->lists[PLACE_IDLE]->prev : host->lists[PLACE_IDLE];
}

/* Lent again before the loop has polled since it came back: it may have something unread, or be gone. */
static bool is_still_clean(struct pool *pool, struct link *link)
{
    bool same_turn = link->turn == (uint32_t)pool->core.driver->turn;

    link->bits = (uint16_t)(link->bits & ~LINK_UNSURE);
    if (!same_turn)
        return true;
    pool->peeked++;
    link__enter(&pool->core); /* its protocol's hook may end it */
    bool clean = link__look(link);
    link__leave(&pool->core);
    return clean;
}

/* Moves an exclusive link from one list to the other: pool__place() for the two moves of every lease. */
static void idle_to_busy(struct pool_host *host, struct link *link)
{
    DL_DELETE(host->lists[PLACE_IDLE], link);
    DL_PREPEND(host->lists[PLACE_BUSY], link);
    link->place = PLACE_BUSY;
    host->n_idle--;
}

static void busy_to_idle(struct pool_host *host, struct link *link)
{
    DL_DELETE(host->lists[PLACE_BUSY], link);
    DL_PREPEND(host->lists[PLACE_IDLE], link);
    link->place = PLACE_IDLE;
    host->n_idle++;
}

static struct channel *take_stream(struct link *link, struct pool_lease *lease)
{
    const struct pool_host_options *options = pool__options(pool__host_of(link));
    struct link_core *core = link__core(link);
    struct channel *channel;

    link__enter(core); /* its protocol's hook may end it */
    channel = link__lease(link, lease);
    if (!channel && link__has_room(link))
        lease->status = LINKPOOL_ENOMEM; /* the next would meet the same */
    if (channel && options->max_uses && link->uses >= options->max_uses)
        link->retire = LINK_USED_UP;
    pool__place(link); /* without a channel as well: its protocol has no room after all */
    link__leave(core);
    return channel;
}

/* Leases a channel of the host to the lease, or answers NULL: none is free. */
static struct channel *take(struct pool_host *host, struct pool_lease *lease)
{
    struct pool *pool = pool__of(host);
    uint8_t state = pool__claim(lease)->state;
    struct channel *channel;
    struct link *link;

    /* A link that turns out to be dead may be its host's last: then a lease in line has failed, and wants no other. */
    while (pool__claim(lease)->state == state && (link = free_link_for(host, lease))) {
        if (link->bits & LINK_UNSURE && !is_still_clean(pool, link))
            continue;
        if (host->is_shared) {
            if (!(channel = take_stream(link, lease)) && lease->status == LINKPOOL_ENOMEM)
                return NULL;
            if (!channel)
                continue;
        } else {
            channel = link__lease_whole(link, lease);
            idle_to_busy(host, link);
        }
        lease->reused = link->uses > 1;
        host->uses++;
        host->n_leased++;
        pool->n_leased++;
        return channel;
    }
    return NULL;
}

static inline void hold(struct pool_lease *lease, struct channel *channel)
{
    struct pool_claim *claim = pool__claim(lease);

    claim->state = CLAIM_HELD;
    claim->channel = lease->channel = channel;
    lease->host = pool__host_of(channel->link);
    lease->status = POOL_READY;
    if (!lease->reused)
        pool__of(lease->host)->first_uses++;
}

/* ---- asking ---- */

static inline int check_lease(const struct pool_lease *lease)
{
    if (!lease->done || lease->flags & ~(unsigned)(POOL_WAIT_FOR_READY | POOL_FRESH))
        return LINKPOOL_EINVAL;
    if (lease->timeout == 0) /* most leases: the line's own */
        return 0;
    if (!(lease->timeout > 0) || (lease->timeout > LINK_TEN_YEARS && lease->timeout != INFINITY))
        return LINKPOOL_EINVAL;
    return 0;
}

static inline int begin(struct pool *pool, struct pool_target *target, struct pool_lease *lease)
{
    struct pool_claim *claim = pool__claim(lease);

    if (claim->state != CLAIM_OVER)
        return LINKPOOL_ESTATE;
    /* The out members, from the first to the library's own: 0 is "nothing yet" of each. */
    memset(&lease->channel, 0, offsetof(struct pool_lease, lib) - offsetof(struct pool_lease, channel));
    claim->pool = pool;
    claim->target = target;
    if ((lease->status = check_lease(lease)))
        return lease->status;
    return lease->status = pool->draining || pool->freed ? LINKPOOL_ECLOSED : 0;
}

static bool is_down(const struct pool_line *line)
{
    return line->host ? pool__is_down(line->host) : line->target->known && line->target->n_down == line->target->pick.n;
}

static int full(struct pool *pool, struct pool_lease *lease, enum pool_bound bound)
{
    pool->full++;
    lease->bound = bound;
    return lease->status = LINKPOOL_EFULL;
}

/* Nothing is ready: in line, or an error at once. */
static int wait_or_fail(struct pool *pool, struct pool_line *line, struct pool_lease *lease)
{
    unsigned own = line->target ? line->target->max_line : 0, max_line = own ? own : pool->options.max_line;

    link__later(&pool->core); /* first: outside a turn it brings the clock up to date */
    pool__claim(lease)->ticket = ++pool->ticket;
    *(line->host ? &line->host->asked_at : &line->target->asked_at) = (uint32_t)pool->ticket;
    if (is_down(line) && !(lease->flags & POOL_WAIT_FOR_READY)) {
        pool->failed_fast++;
        pool__explain_failure(lease, line);
        return lease->status = LINKPOOL_EUNAVAILABLE;
    }
    if (line->n >= max_line)
        return full(pool, lease, POOL_BOUND_LINE);
    if (pool->n_waiting >= pool->options.max_waiting)
        return full(pool, lease, POOL_BOUND_POOL_WAITING);
    if ((lease->status = pool__wait(pool, line, lease)) == POOL_PENDING)
        pool__want(line);
    return lease->status;
}

static int acquire_host(struct pool_host *host, struct pool_lease *lease)
{
    struct pool *pool = pool__of(host);
    struct channel *channel;
    int error = begin(pool, NULL, lease);

    if (error)
        return error;
    if (host->draining)
        return lease->status = LINKPOOL_ECLOSED;
    if (pool->wanting) /* who came back in line in this turn goes first */
        pool__serve(host);
    if ((channel = take(host, lease))) {
        hold(lease, channel);
        pool->acquired_ready++;
        return POOL_READY;
    }
    return lease->status ? lease->status : wait_or_fail(pool, &host->line, lease);
}

/* A lease that wants an unused link takes one where it finds it: pickers see only that a channel is free. */
static struct channel *take_fresh(struct pool_target *target, struct pool_lease *lease)
{
    struct channel *channel;

    for (size_t i = 0; i < target->pick.n; i++)
        if (!pool__is_down(target->hosts[i]) && pool__takes(target, lease, i) && (channel = take(target->hosts[i], lease)))
            return channel;
    return NULL;
}

/* Without a free link the picker is left alone: it is asked when one is opened, and its turn goes on once a lease. */
static bool any_is_free(const struct pool_target *target)
{
    for (size_t i = 0; i < target->pick.n; i++)
        if (pool__free_link(target->hosts[i]))
            return true;
    return false;
}

static struct channel *take_picked(struct pool_target *target, struct pool_lease *lease)
{
    struct channel *channel;
    int i;

    if (lease->flags & POOL_FRESH)
        return take_fresh(target, lease);
    /* A host whose free link turns out to be dead is asked again for another, or passed over. */
    while (any_is_free(target) && (i = pool__pick(target, lease)) >= 0 && pool__free_link(target->hosts[i]))
        if ((channel = take(target->hosts[i], lease)) || lease->status)
            return channel;
    return NULL;
}

static int acquire_target(struct pool_target *target, struct pool_lease *lease)
{
    struct pool *pool = target->pool;
    struct channel *channel;
    int error = begin(pool, target, lease);

    if (error)
        return error;
    if (target->draining || target->removed)
        return lease->status = LINKPOOL_ECLOSED;
    pool__use_target(target);
    if (pool->wanting)
        pool__serve_target(target);
    if (!(channel = take_picked(target, lease)))
        return lease->status ? lease->status : wait_or_fail(pool, &target->line, lease);
    hold(lease, channel);
    target->n_held++;
    pool->acquired_ready++;
    return POOL_READY;
}

int pool_acquire_host(struct pool_host *host, struct pool_lease *lease)
{
    int status = acquire_host(host, lease);

    pool__check_host(pool__of(host), host);
    return status;
}

int pool_acquire_target(struct pool_target *target, struct pool_lease *lease)
{
    int status = acquire_target(target, lease);

    pool__check(target->pool);
    return status;
}

/* A text that is not remembered: an address met for the first time, or nothing. */
static int acquire_unknown(struct pool *pool, const char *text, struct pool_lease *lease)
{
    struct pool_host *host = NULL;
    int error = begin(pool, NULL, lease);

    if (error)
        return error;
    if (!text)
        return lease->status = LINKPOOL_EINVAL;
    if (!(error = pool__host_by_text(pool, text, &host)))
        return acquire_host(host, lease);
    return error == LINKPOOL_EFULL ? full(pool, lease, POOL_BOUND_HOSTS) : (lease->status = error);
}

int pool_acquire(struct pool *pool, const char *target_or_address, struct pool_lease *lease)
{
    const struct pool_name *name = target_or_address ? pool__name_find(pool, target_or_address) : NULL;
    int status = !name ? acquire_unknown(pool, target_or_address, lease)
        : name->host   ? acquire_host(name->host, lease)
                       : acquire_target(name->target, lease);

    pool__check(pool);
    return status;
}

/* ---- serving those who wait ---- */

/* May the lease, waiting in this line, have the link that is free on the host? */
static bool would_do(const struct pool_host *host, const struct pool_membership *member, const struct pool_lease *lease)
{
    if (member && (pool__is_down(host) || !pool__takes(member->target, lease, member->index)))
        return false;
    return !(lease->flags & POOL_FRESH) || fresh_link(host);
}

/* The first of a line that would do; one with wishes of its own that are not met lets those behind it pass. */
static struct pool_lease *first_taker(
    const struct pool_host *host, const struct pool_membership *member, const struct pool_line *line)
{
    for (const struct pool_claim *claim = line->first; claim; claim = claim->next) {
        struct pool_lease *lease = pool__lease(claim);
        if (would_do(host, member, lease))
            return lease;
        if (!(lease->flags & POOL_FRESH) && !lease->avoid)
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
    struct pool_lease *lease;
    struct channel *channel;

    while (pool__of(host)->n_waiting && pool__free_link(host) && (lease = pool__oldest_taker(host)))
        if ((channel = take(host, lease)))
            pool__give(lease, channel);
        else if (lease->status == LINKPOOL_ENOMEM)
            pool__fail(lease, LINKPOOL_ENOMEM);
}

void pool__serve_target(struct pool_target *target)
{
    for (size_t i = 0; i < target->pick.n && target->line.n; i++)
        pool__serve(target->hosts[i]);
}

void pool__serve_all(struct pool_host *host)
{
    if (!pool__of(host)->n_waiting)
        return;
    pool__serve(host);
    for (const struct pool_membership *member = host->memberships; member; member = member->next)
        pool__serve_target(member->target);
}

/* ---- giving back ---- */

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
    if (pool->starving.n && pool__must_make_room(host))
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
    if (link->place == PLACE_IDLE) /* those who want an unused one may have its place */
        pool__want_host(host);
}

/* A stream of a shared link: the link goes on, unless it was only waiting for this. */
static void stream_back(struct pool_host *host, struct link *link)
{
    enum link_reason reason;

    if (link__state(link) == LINK_DRAINING)
        link__drained(link);
    else if (!link__held(link) && (reason = link->retire ? (enum link_reason)link->retire : ends_at_return(host, link)))
        link__end(link, reason, 0);
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
static bool is_plain_return(const struct pool_host *host, const struct link *link)
{
    const struct pool *pool = pool__of(host);

    return host->is_plain && link__is_spotless(link) && !pool->n_waiting && !pool->starving.n && !pool->draining &&
        !host->draining && !pool->bounds_lowered;
}

static void plain_return(struct pool_host *host, struct link *link)
{
    struct pool *pool = pool__of(host);

    link__free_whole(link, pool->core.driver);
    link->idle_since = pool__now(pool);
    busy_to_idle(host, link);
    host->n_leased--;
    pool->n_leased--;
    pool__arm_idle(host, link->idle_since);
}

static void take_back(struct pool_host *host, struct channel *channel, enum pool_disposition disposition, int system_errno)
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
    if (link__state(link) == LINK_DRAINING && how != LINK_UNCLEAN)
        reason = link->retire ? (enum link_reason)link->retire : LINK_DRAINED;
    else if (how != LINK_UNCLEAN)
        reason = ends_at_return(host, link);
    if (reason)
        link__end(link, reason, faulted ? system_errno : 0);
    else if (how == LINK_CLEANING)
        link__clean(link);
    else
        back_to_idle(host, link);
}

static void give_back(struct pool_host *host, struct channel *channel, enum pool_disposition disposition, int system_errno)
{
    struct link_core *core = &pool__of(host)->core;

    link__enter(core); /* hooks may end the link */
    take_back(host, channel, disposition, system_errno);
    link__leave(core);
}

static void count_bytes(struct pool_lease *lease)
{
    lease->host->bytes_sent += lease->bytes_sent;
    lease->host->bytes_received += lease->bytes_received;
}

static void leave_target(struct pool_claim *claim)
{
    if (!claim->target)
        return;
    claim->target->n_held--;
    if (claim->target->draining || claim->target->removed)
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
    struct pool *pool = pool__of(host);
    count_bytes(lease);
    claim->state = CLAIM_OVER;
    lease->channel = NULL;
    leave_target(claim);
    if (disposition == POOL_REUSE && is_plain_return(host, claim->channel->link))
        plain_return(host, claim->channel->link);
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
    claim->state = CLAIM_OVER;
    link->uses--;
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
        if (claim->target)
            claim->target->n_held--;
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
