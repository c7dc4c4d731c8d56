/* network.c - the network may be another one: all that was learned of it is doubted.
 *
 * No link is lent again before it has answered, or before it has been replaced; nothing that failed counts any more;
 * nothing is awaited that was begun before. Nobody is told of anything here: what follows comes with the next turns. */
#include <utlist.h>

#include "pool/internal.h"

/* One that cannot be asked is replaced: a lease that fails on it costs more than another connection. */
static void doubt_links(struct pool_host *host)
{
    struct link *link, *next;

    for (int place = PLACE_IDLE; place <= PLACE_BUSY; place++)
        DL_FOREACH_SAFE (host->lists[place], link, next)
            if (link__state(link) != LINK_DRAINING && !link->retire && !link__doubt(link))
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

void pool_network_changed(struct pool *pool)
{
    struct pool_host *host;

    if (pool->freed)
        return;
    pool->network_changes++;
    link__enter(&pool->core);
    for (host = pool->hosts; host; host = host->hh.next)
        if (!host->draining) { /* it has none that are lent again */
            give_up_attempts(host);
            doubt_links(host);
            pool__begin_anew(host);
        }
    link__leave(&pool->core);
    pool__check(pool);
}
