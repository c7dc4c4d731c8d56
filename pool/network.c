/* network.c - the network may be another one: all that was learned of it is doubted.
 *
 * No link is lent again before it has answered, or before it has been replaced; nothing that failed counts any more;
 * nothing is awaited that was begun before. Nobody is told of anything here: what follows comes with the next turns. */
#include <utlist.h>

#include "pool/internal.h"

static bool is_lent_on(const struct link *link)
{
    return !link->retire; /* one that drains is to retire */
}

static void ask_links(struct pool_host *host)
{
    struct link *link, *next;

    for (int place = PLACE_IDLE; place <= PLACE_BUSY; place++)
        DL_FOREACH_SAFE (host->lists[place], link, next)
            if (is_lent_on(link))
                link__doubt(link);
}

/* Those that cannot be asked: a lease that fails on one costs more than another connection. */
static void replace_links(struct pool_host *host)
{
    struct link *link, *next;

    for (int place = PLACE_IDLE; place <= PLACE_BUSY; place++)
        DL_FOREACH_SAFE (host->lists[place], link, next)
            if (is_lent_on(link) && !link__can_be_asked(link))
                pool__retire(link, LINK_DRAINED);
}

/* A packet that was lost on the old network is sent again after seconds, if at all, and from an address that may be
 * gone: a new attempt is sooner. One that was for nobody who waits, nor kept up, was asked for by pool_host_start(). */
static void give_up_attempts(struct pool_host *host)
{
    struct link *link;

    while ((link = host->lists[PLACE_OPENING])) {
        host->start_asked = host->start_asked || (!link->channel.data && !pool__has_ready(host));
        link__end(link, LINK_STOPPED, 0);
    }
}

/* Seconds: news come in bunches, and what is begun anew with each of them never comes up. */
static const double bunch = 1;

void pool__network_begin_anew(struct pool *pool)
{
    struct pool_host *host;

    pool->begun_anew = pool__now(pool);
    link__timer_clear(&pool->core, &pool->network_timer);
    for (host = pool->hosts; host; host = host->hh.next)
        if (!host->draining) { /* it has none that are lent again */
            give_up_attempts(host);
            replace_links(host);
            pool__begin_anew(host);
        }
}

void pool_network_changed(struct pool *pool)
{
    struct pool_host *host;

    if (pool->freed)
        return;
    link__enter(&pool->core);
    for (host = pool->hosts; host; host = host->hh.next)
        if (!host->draining)
            ask_links(host);
    if (!pool->network_changes++ || pool__now(pool) >= pool->begun_anew + bunch)
        pool__network_begin_anew(pool);
    else if (pool__now(pool) > pool->begun_anew &&
             !link__node_is_set(&pool->network_timer)) /* something may have begun */
        link__timer_set(&pool->core, &pool->network_timer, pool->begun_anew + bunch);
    link__leave(&pool->core);
    pool__check(pool);
}
