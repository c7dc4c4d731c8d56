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

void pool__note_lending(struct pool_host *host)
{
    bool may_lend = host->lists[PLACE_IDLE] || host->lists[PLACE_RESERVE] || host->lists[PLACE_PARTIAL];

    if (may_lend == host->may_lend)
        return;
    host->may_lend = may_lend;
    for (struct pool_membership *member = host->memberships; member; member = member->next)
        member->target->n_lending += may_lend ? 1 : -1U;
}

static void unlist(struct pool_host *host, struct link *link)
{
    if (link->place == PLACE_NONE)
        return;
    DL_DELETE(host->lists[link->place], link);
    host->n_idle -= is_idle(link);
    link->place = PLACE_NONE;
}

void pool__unlist(struct link *link)
{
    unlist(pool__host_of(link), link);
    pool__note_lending(pool__host_of(link));
}

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
    unlist(host, link);
    link->place = (uint8_t)place;
    if (place == PLACE_IDLE)
        place_idle(host, link);
    else if (place == PLACE_PARTIAL)
        place_partial(host, link);
    else if (place != PLACE_NONE)
        DL_PREPEND(host->lists[place], link);
    host->n_idle += is_idle(link);
    pool__note_lending(host);
}
