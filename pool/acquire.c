/* acquire.c - asking for a channel: the path that must be short.
 *
 * With a ready link at hand a lease touches its host, the link and itself: list moves and counters, no allocation, no
 * system call, no timer. A newcomer overtakes nobody: as long as somebody waits, no link that would do is free. */
#include <math.h>
#include <string.h>
#include <utlist.h>

#include "link/options.h"
#include "pool/call.h"
#include "pool/internal.h"

/* ---- taking a channel ---- */

struct link *pool__fresh_link(const struct pool_host *host)
{
    struct link *link;

    DL_FOREACH (host->lists[PLACE_IDLE], link)
        if (!link->uses)
            return link;
    return NULL;
}

static struct link *next_link(const struct pool_host *host, const struct pool_lease *lease)
{
    struct link *idle = host->lists[PLACE_IDLE];

    if (lease->flags & POOL_FRESH)
        return pool__fresh_link(host);
    return idle && pool__options(host)->spread_links ? idle->prev : pool__free_link(host);
}

static struct link *take_link(const struct pool_host *host, const struct pool_lease *lease)
{
    struct link *link = next_link(host, lease);

    if (link && link->place != PLACE_IDLE && pool__options(host)->spread_links)
        pool__place_anew(link); /* the next one's turn */
    return link;
}

/* A call goes behind those that have won and were not told: requests leave a link in the order in which they came. Who
 * is in line has its place already. */
static bool must_wait(const struct pool_host *host, const struct pool_lease *lease)
{
    const struct pool_claim *claim = pool__claim(lease);
    const struct link *link;

    if (!claim->in_order || !host->is_shared || claim->state == CLAIM_WAITING)
        return false;
    return (link = next_link(host, lease)) && link__shared(link)->n_promised;
}

/* Lent from within a callback, this pool's or another's. */
static inline bool is_within_a_turn(const struct pool *pool)
{
    return pool->core.driver->telling || pool->core.depth;
}

/* Then something may have come for the link with this poll that it has still to be told of. */
static bool may_have_news(const struct pool *pool, const struct link *link)
{
    struct driver *driver = pool->core.driver;

    if (!is_within_a_turn(pool) || link__held(link))
        return false;
    return !driver->ops->io_pending || driver->ops->io_pending(driver, &link->io);
}

/* Lent again before the loop has polled since it came back, or has told of what it found then: it may have something
 * unread, or be gone. */
static bool is_still_clean(struct pool *pool, struct link *link)
{
    bool unsure = link->bits & LINK_UNSURE && link->turn == (uint32_t)pool->core.driver->turn;

    link__set_bits(link, LINK_UNSURE, 0);
    if (!unsure && !may_have_news(pool, link))
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

/* Its last use, perhaps: it ends with the last of those who hold it, and where it would be missed another comes. */
static void note_use(struct link *link)
{
    const struct pool_host_options *options = pool__options(pool__host_of(link));

    if (options->max_uses && link->uses >= options->max_uses) {
        link->retire = LINK_USED_UP;
        pool__want(&pool__host_of(link)->line); /* it may be one of those that are kept up */
    }
}

static struct channel *take_stream(struct link *link, struct pool_lease *lease)
{
    struct link_core *core = link__core(link);
    struct channel *channel;

    link__enter(core); /* its protocol's hook may end it */
    if ((channel = link__lease_stream(link, lease)))
        note_use(link);
    else if (link__has_room(link))
        lease->status = LINKPOOL_ENOMEM; /* the next would meet the same */
    /* Most: it stays where it is. Without a channel as well: its protocol may have no room after all. */
    if (link->place != PLACE_PARTIAL || link->retire || link__is_full(link))
        pool__place(link);
    link__leave(core);
    return channel;
}

/* The pool is handed on, where it is known: finding it by the host would touch one more line of cache. */
static inline struct channel *counted(
    struct pool *pool, struct pool_host *host, struct link *link, struct pool_lease *lease, struct channel *channel)
{
    lease->reused = link->uses > 1;
    host->uses++;
    host->n_leased++;
    pool->n_leased++;
    return channel;
}

static inline struct channel *lend_whole(
    struct pool *pool, struct pool_host *host, struct link *link, struct pool_lease *lease)
{
    struct channel *channel = link__lease_whole(link, lease);

    idle_to_busy(host, link);
    return counted(pool, host, link, lease, channel);
}

/* The link on top, where nothing is to be weighed: most leases. NULL: look again. */
static inline struct channel *take_top(struct pool *pool, struct pool_host *host, struct pool_lease *lease)
{
    struct link *link = host->lists[PLACE_IDLE];

    if (!link || !host->lends_top || link->bits & LINK_UNSURE || is_within_a_turn(pool) || lease->flags & POOL_FRESH)
        return NULL;
    return lend_whole(pool, host, link, lease);
}

/* The same of shared links, one that others hold: it has no news for us, and nobody who won a channel of it is before
 * us. NULL: look again. */
static inline struct channel *take_held(struct pool *pool, struct pool_host *host, struct pool_lease *lease)
{
    struct link *link = host->lists[PLACE_PARTIAL];
    struct channel *channel;

    if (!link || !host->lends_held || lease->flags & POOL_FRESH || link__is_suspect(link) ||
        link__shared(link)->n_promised || !(channel = take_stream(link, lease)))
        return NULL;
    return counted(pool, host, link, lease, channel);
}

/* What most leases are given, without a look at the rest. NULL: look again. */
static inline struct channel *take_first(struct pool *pool, struct pool_host *host, struct pool_lease *lease)
{
    return host->is_shared ? take_held(pool, host, lease) : take_top(pool, host, lease);
}

struct channel *pool__take(struct pool_host *host, struct pool_lease *lease)
{
    struct pool *pool = pool__of(host);
    uint8_t state = pool__claim(lease)->state;
    struct channel *channel;
    struct link *link;

    /* A link that turns out to be dead may be its host's last: then a lease in line has failed, and wants no other. */
    while (pool__claim(lease)->state == state && !must_wait(host, lease) && (link = take_link(host, lease))) {
        if ((link->bits & LINK_UNSURE || is_within_a_turn(pool)) && !is_still_clean(pool, link))
            continue;
        if (!host->is_shared)
            return lend_whole(pool, host, link, lease);
        if ((channel = take_stream(link, lease)))
            return counted(pool, host, link, lease, channel);
        if (lease->status == LINKPOOL_ENOMEM)
            return NULL;
    }
    return NULL;
}

static inline void hold(struct pool *pool, struct pool_lease *lease, struct channel *channel)
{
    struct pool_claim *claim = pool__claim(lease);

    claim->state = CLAIM_HELD;
    claim->channel = lease->channel = channel;
    lease->host = pool__host_of(channel->link);
    lease->status = POOL_READY;
    if (!lease->reused)
        pool->first_uses++;
}

/* ---- asking ---- */

static inline int check_lease(const struct pool_lease *lease)
{
    if (!lease->done || lease->flags & ~(unsigned)(POOL_WAIT_FOR_READY | POOL_FRESH))
        return LINKPOOL_EINVAL;
    if (lease->timeout == 0) /* most leases: the line's own */
        return 0;
    return link__is_timeout(lease->timeout) ? 0 : LINKPOOL_EINVAL;
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

/* A channel may be free that it did not get: its picker named another host, or those who won one go first. */
static bool may_wait_in_vain(const struct pool_line *line, const struct pool_lease *lease)
{
    return pool__claim(lease)->in_order || (line->target && pool__lending(line->target));
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
    if (pool__claim(lease)->in_order && call__waits_with_too_much(lease))
        return full(pool, lease, POOL_BOUND_CALL_BYTES);
    if ((lease->status = pool__wait(pool, line, lease)) != POOL_PENDING)
        return lease->status;
    if (may_wait_in_vain(line, lease))
        pool__look_again(line); /* its line may starve for a link */
    else
        pool__want(line);
    return lease->status;
}

/* Who came back in line in this turn, or has had news in it, has still to be looked at, and goes first. */
static inline void serve_those_before(const struct pool *pool, struct pool_host *host)
{
    if (pool->unseen)
        pool__serve(host);
}

static int acquire_host(struct pool *pool, struct pool_host *host, struct pool_lease *lease)
{
    struct channel *channel;
    int error = begin(pool, NULL, lease);

    if (error)
        return error;
    if (host->draining)
        return lease->status = LINKPOOL_ECLOSED;
    serve_those_before(pool, host);
    if (!(channel = take_first(pool, host, lease)) && !lease->status)
        channel = pool__take(host, lease);
    if (channel) {
        hold(pool, lease, channel);
        pool->acquired_ready++;
        return POOL_READY;
    }
    return lease->status ? lease->status : wait_or_fail(pool, &host->line, lease);
}

/* A lease that wants an unused link takes one where it finds it: pickers see only that a channel is free. */
static struct channel *take_fresh(struct pool_target *target, struct pool_lease *lease)
{
    struct channel *channel;

    for (size_t i = 0; i < target->pick.n && pool__lending(target); i++) {
        if (pool__is_down(target->hosts[i]) || !pool__takes(target, lease, i))
            continue;
        serve_those_before(target->pool, target->hosts[i]);
        if ((channel = pool__take(target->hosts[i], lease)))
            return channel;
    }
    return NULL;
}

static struct channel *take_picked(struct pool_target *target, struct pool_lease *lease)
{
    struct channel *channel;
    int i;

    if (lease->flags & POOL_FRESH)
        return take_fresh(target, lease);
    /* Without a free link the picker is left alone: it is asked when one is opened, and its turn goes on once a lease.
     * A host whose free link turns out to be dead is asked again for another, or passed over. */
    while (pool__lending(target) && (i = pool__pick(target, lease)) >= 0 && pool__free_link(target->hosts[i])) {
        serve_those_before(target->pool, target->hosts[i]);
        if (must_wait(target->hosts[i], lease))
            return NULL;
        if ((channel = pool__take(target->hosts[i], lease)) || lease->status)
            return channel;
    }
    return NULL;
}

static int acquire_target(struct pool_target *target, struct pool_lease *lease)
{
    struct pool *pool = target->pool;
    struct channel *channel;
    int error = begin(pool, target, lease);

    if (error)
        return error;
    if (target->draining)
        return lease->status = LINKPOOL_ECLOSED;
    pool__use_target(target);
    if (!(channel = take_picked(target, lease)))
        return lease->status ? lease->status : wait_or_fail(pool, &target->line, lease);
    hold(pool, lease, channel);
    target->n_held++;
    pool->acquired_ready++;
    return POOL_READY;
}

int pool_acquire_host(struct pool_host *host, struct pool_lease *lease)
{
    int status = acquire_host(pool__of(host), host, lease);

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
LINK_RARE static int acquire_unknown(struct pool *pool, const char *text, struct pool_lease *lease)
{
    struct pool_host *host = NULL;
    int error = begin(pool, NULL, lease);

    if (error)
        return error;
    if (!text)
        return lease->status = LINKPOOL_EINVAL;
    if (!(error = pool__host_by_text(pool, text, &host)))
        return acquire_host(pool, host, lease);
    return error == LINKPOOL_EFULL ? full(pool, lease, POOL_BOUND_HOSTS) : (lease->status = error);
}

int pool_acquire(struct pool *pool, const char *target_or_address, struct pool_lease *lease)
{
    const struct pool_name *name = target_or_address ? pool__name_find(pool, target_or_address) : NULL;
    int status = !name        ? acquire_unknown(pool, target_or_address, lease)
                 : name->host ? acquire_host(pool, name->host, lease)
                              : acquire_target(name->target, lease);

    pool__check(pool);
    return status;
}
