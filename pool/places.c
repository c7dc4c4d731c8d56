/* places.c - where a host's links lie: each open one in one list, by what may be had of it.
 *
 * Whoever changes what a link's place hangs on (its state, its room, its trust, `retire`) calls pool__place(). */
#include <utlist.h>

#include "pool/internal.h"

static enum pool_place place_of(const struct link *link)
{
    if (link->bits & LINK_ENDING)
        return PLACE_NONE;
    switch (link__state(link)) {
    case LINK_CONNECTING:
    case LINK_HANDSHAKING:
        return PLACE_OPENING;
    case LINK_READY:
        if (link->retire || (link__held(link) && !link__has_room(link)))
            return PLACE_BUSY;
        if (link__held(link))
            return PLACE_PARTIAL;
        return link__has_room(link) && !link__is_suspect(link) ? PLACE_IDLE : PLACE_RESERVE;
    case LINK_RESETTING:
    case LINK_DRAINING:
        return PLACE_BUSY;
    case LINK_BACKOFF:
    case LINK_OFFLINE:
        return PLACE_RESTING;
    default:
        return PLACE_NONE;
    }
}

static bool is_idle(const struct link *link)
{
    return link->place == PLACE_IDLE || link->place == PLACE_RESERVE;
}

void pool__unlist(struct link *link)
{
    struct pool_host *host = pool__host_of(link);

    if (link->place == PLACE_NONE)
        return;
    DL_DELETE(host->lists[link->place], link);
    host->n_idle -= is_idle(link);
    link->place = PLACE_NONE;
}

/* ---- the hosts of a target that may lend ---- */

/* Who falls free enters the target's list, who is found busy leaves it: leasing need not look at its host's targets. */
static bool may_lend(const struct pool_host *host)
{
    return host->lists[PLACE_IDLE] || host->lists[PLACE_RESERVE] || host->lists[PLACE_PARTIAL];
}

void pool__lends(struct pool_host *host)
{
    host->may_lend = true;
    for (struct pool_membership *member = host->memberships; member; member = member->next)
        if (!member->lend_prev)
            DL_APPEND2(member->target->lending, member, lend_prev, lend_next);
}

void pool__lends_no_more(struct pool_membership *member)
{
    member->host->may_lend = false;
    if (member->lend_prev)
        DL_DELETE2(member->target->lending, member, lend_prev, lend_next);
    member->lend_prev = NULL;
}

const struct pool_membership *pool__lending(struct pool_target *target)
{
    struct pool_membership *member, *next;

    DL_FOREACH_SAFE2 (target->lending, member, next, lend_next)
        if (pool__free_link(member->host))
            return member;
        else if (!may_lend(member->host))
            pool__lends_no_more(member);
    return NULL;
}

/* ---- places ---- */

/* The latest used first: nearly always the very first, but for one that comes from the reserve, whose place is looked
 * for from both ends. */
static void place_idle(struct pool_host *host, struct link *link)
{
    struct link **list = &host->lists[PLACE_IDLE], *colder = *list, *hotter = colder ? colder->prev : NULL;

    while (colder && colder->idle_since > link->idle_since && hotter->idle_since <= link->idle_since) {
        colder = colder->next;
        hotter = hotter->prev;
    }
    if (!colder || colder->idle_since <= link->idle_since)
        DL_PREPEND_ELEM(*list, colder, link);
    else
        DL_APPEND_ELEM(*list, hotter, link);
}

/* Does it stay before one that comes to the list? Those that have missed an answer are after all others. */
static bool stays_before(const struct link *other, const struct link *link, bool in_turn)
{
    if (link__is_suspect(link) != link__is_suspect(other))
        return link__is_suspect(link);
    return in_turn || other->id < link->id;
}

/* The oldest first; where links are to be spread, in turn. From the end, where the youngest are. */
static void place_partial(struct pool_host *host, struct link *link)
{
    struct link **list = &host->lists[PLACE_PARTIAL], *before = *list ? (*list)->prev : NULL;
    bool in_turn = pool__options(host)->spread_links;

    while (before && !stays_before(before, link, in_turn))
        before = before == *list ? NULL : before->prev;
    if (before)
        DL_APPEND_ELEM(*list, before, link);
    else
        DL_PREPEND(*list, link);
}

void pool__place_anew(struct link *link)
{
    pool__unlist(link);
    pool__place(link);
}

struct link *pool__last_resort(const struct pool_host *host)
{
    struct link *link;

    DL_FOREACH (host->lists[PLACE_RESERVE], link)
        if (link__has_room(link))
            return link;
    return NULL;
}

struct link *pool__coldest(const struct pool_host *host)
{
    struct link *coldest = host->lists[PLACE_IDLE] ? host->lists[PLACE_IDLE]->prev : NULL, *link;

    DL_FOREACH (host->lists[PLACE_RESERVE], link)
        if (!coldest || link->idle_since < coldest->idle_since)
            coldest = link;
    return coldest;
}

void pool__place(struct link *link)
{
    struct pool_host *host = pool__host_of(link);
    enum pool_place place = place_of(link);

    if (link->place == place)
        return;
    pool__unlist(link);
    link->place = (uint8_t)place;
    if (place == PLACE_IDLE)
        place_idle(host, link);
    else if (place == PLACE_PARTIAL)
        place_partial(host, link);
    else if (place != PLACE_NONE)
        DL_PREPEND(host->lists[place], link);
    host->n_idle += is_idle(link);
    if (!host->may_lend && may_lend(host))
        pool__lends(host);
}
