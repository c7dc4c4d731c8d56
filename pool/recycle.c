/* recycle.c - links that are replaced though nothing is wrong with them: made before broken, where they would be
 * missed.
 *
 * One that waits for another to be up in its place has LINK_RECYCLED and no time any more (pool__is_to_be_replaced()),
 * and its host counts it in `n_replacing`. */
#include <assert.h>
#include <utlist.h>

#include "pool/internal.h"

void pool__replaced_no_more(struct link *link)
{
    if (!pool__is_to_be_replaced(link))
        return;
    pool__host_of(link)->n_replacing--;
    link__set_bits(link, LINK_RECYCLED, 0);
}

static bool another_has_room(const struct pool_host *host, const struct link *but)
{
    const struct link *link;

    for (int place = PLACE_IDLE; place <= PLACE_PARTIAL; place++)
        DL_FOREACH (host->lists[place], link)
            if (link != but && link__has_room(link) && !pool__is_to_be_replaced(link))
                return true;
    return false;
}

/* Whoever comes while the next one is opened would wait for it: several use this one, and no other has room; or it is
 * one of those that are kept up. */
static bool would_be_missed(const struct link *link)
{
    const struct pool_host *host = pool__host_of(link);

    return (link__is_shared(link) && link__held(link) && !another_has_room(host, link)) ||
           pool__one_less_is_too_few(host);
}

static bool has_room_for_one_more(const struct pool_host *host)
{
    const struct pool *pool = pool__of(host);

    return pool__sockets(host) < pool__options(host)->max_links && pool->n_links < pool->options.max_links &&
           host->n_replacing < UINT8_MAX;
}

bool pool__is_replaced_first(struct link *link)
{
    struct pool_host *host = pool__host_of(link);

    if (host->draining || pool__of(host)->draining || !would_be_missed(link) || !has_room_for_one_more(host))
        return false;
    link->recycled_after = INFINITY;
    host->n_replacing++;
    pool__arm_host(host);
    pool__want(&host->line);
    return true;
}

void pool__replaced(struct pool_host *host)
{
    struct link *oldest = NULL, *link;

    if (!host->n_replacing)
        return;
    for (int place = PLACE_IDLE; place <= PLACE_BUSY; place++)
        DL_FOREACH (host->lists[place], link)
            if (pool__is_to_be_replaced(link) && (!oldest || link->id < oldest->id))
                oldest = link;
    assert(oldest); /* each that is counted is in one of these lists */
    pool__retire(oldest, LINK_DRAINED);
}

int pool_host_recycle(struct pool_host *host, double rate)
{
    struct link *link, *next;
    double due = pool__now(pool__of(host));

    if (!(rate >= 0))
        return LINKPOOL_EINVAL;
    link__enter(&pool__of(host)->core);
    for (int place = PLACE_IDLE; place <= PLACE_BUSY; place++)
        DL_FOREACH_SAFE (host->lists[place], link, next) {
            if (link__state(link) == LINK_DRAINING)
                continue;
            pool__replaced_no_more(link);
            if (rate > 0)
                link__retire_at(link, due += 1 / rate);
            else
                pool__retire(link, LINK_DRAINED);
        }
    link__leave(&pool__of(host)->core);
    return 0;
}
