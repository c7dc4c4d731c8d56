/* check.c - what always holds, spelled out; runs after public calls and callbacks in debug builds.
 *
 * A host is looked at each time it is touched; all of them every 64th time. */
#include "pool/call.h"

#ifdef LINKPOOL_CHECK
#include <assert.h>
#include <utlist.h>

static void check_link(const struct pool_host *host, const struct link *link, enum pool_place place)
{
    assert(link->owner == &host->owner);
    assert(link->place == place);
    assert((link->transport.fd >= 0 || !(link->bits & LINK_WATCHED)));
    if (!link__is_shared(link))
        assert(!link__held(link) == (link->channel.lease == NULL));
    else
        assert(link__promised(link) == link__shared(link)->n_promised);
    switch (link__state(link)) {
    case LINK_CONNECTING:
    case LINK_HANDSHAKING:
        assert(place == PLACE_OPENING);
        assert(link__node_is_set(&link->timer) || link->bits & LINK_ENDING);
        break;
    case LINK_READY:
        assert(place <= PLACE_BUSY);
        assert(link__held(link) ? place >= PLACE_PARTIAL : place <= PLACE_RESERVE || link->retire);
        assert(link__is_shared(link) || !link__held(link) || !link__owes(link));
        break;
    case LINK_RESETTING:
    case LINK_DRAINING:
        assert(place == PLACE_BUSY);
        assert(link__node_is_set(&link->timer));
        break;
    case LINK_BACKOFF:
        assert(place == PLACE_RESTING);
        assert(link__node_is_set(&link->timer) || host->probe_due);
        break;
    case LINK_OFFLINE:
        assert(place == PLACE_RESTING);
        assert(!link__node_is_set(&link->timer));
        break;
    default:
        assert(false && "a link without a state that a list is for");
    }
}

/* Bytes that calls on a shared link have still to send. */
static size_t unsent_on(const struct link *link)
{
    const struct link_stream *stream;
    size_t unsent = 0;

    DL_FOREACH (link__shared(link)->used, stream) {
        if (stream->channel.state == CHANNEL_HELD && !stream->channel.promised)
            unsent += call__unsent_bytes(stream->channel.lease);
    }
    return unsent;
}

static unsigned held_leases(const struct link *link)
{
    const struct link_stream *stream;
    unsigned n = 0;

    if (!link__is_shared(link))
        return link->channel.state == CHANNEL_HELD;
    DL_FOREACH (link__shared(link)->used, stream)
        n += stream->channel.state == CHANNEL_HELD;
    return n;
}

static void check_lists(const struct pool_host *host)
{
    uint32_t n[LINK_STATES] = {0}, held = 0, idle = 0, replacing = 0;
    const struct link *link;

    for (int place = 0; place < PLACES; place++)
        DL_FOREACH (host->lists[place], link) {
            check_link(host, link, (enum pool_place)place);
            n[link__state(link)]++;
            held += held_leases(link);
            idle += place <= PLACE_RESERVE;
            replacing += pool__is_to_be_replaced(link);
            assert(place != PLACE_IDLE || !link->next || link->idle_since >= link->next->idle_since);
            assert(place != PLACE_IDLE || (link__has_room(link) && !link__is_suspect(link)));
            assert(place != PLACE_PARTIAL || !link->next || !link__is_suspect(link) || link__is_suspect(link->next));
        }
    for (int state = 0; state < LINK_CLOSED; state++)
        assert(n[state] == host->n[state]);
    assert(held == host->n_leased);
    assert(idle == host->n_idle);
    assert(replacing == host->n_replacing);
    assert(n[LINK_BACKOFF] + n[LINK_OFFLINE] <= 1);
}

static void check_line(const struct pool_line *line)
{
    const struct pool_claim *claim;
    uint64_t ticket = 0;
    unsigned n = 0;

    DL_FOREACH (line->first, claim) {
        assert(claim->state == CLAIM_WAITING);
        assert(claim->line == line);
        assert(claim->ticket > ticket);
        ticket = claim->ticket;
        n++;
    }
    assert(n == line->n);
    assert(line->is_starving ? !line->prev && link__node_is_set(&line->starving) : line->prev || !line->unseen_prev);
    if (line->usual) {
        assert(link__node_is_set(&line->timer));
        assert(line->timer.due <= line->usual->deadline);
    }
}

static bool may_open(const struct pool *pool, const struct pool_host *host)
{
    return !host->probe_due && pool__can_open(host) && pool__opening(host) < (pool->options.max_connecting + 1) / 2;
}

static bool is_ours(const struct pool_picker *picker)
{
    return picker == &pool_round_robin || picker == &pool_pick_first;
}

/* Whoever waits without an attempt for it is looked at at the end of the turn, or nothing may be opened for it. (What a
 * user's picker would ask for is its own.) */
static void check_opening(const struct pool *pool, const struct pool_line *line)
{
    if (line->n <= line->served_by || line->prev || line->is_starving)
        return;
    if (pool->n_opening >= pool->options.max_connecting || pool->n_links >= pool->options.max_links)
        return;
    if (line->host)
        assert(!may_open(pool, line->host));
    if (!line->target || !is_ours(line->target->picker))
        return;
    for (size_t i = 0; i < line->target->pick.n; i++)
        if (!pool__is_down(line->target->hosts[i]) && pool__takes(line->target, pool__lease(line->first), i))
            assert(!may_open(pool, line->target->hosts[i]));
}

/* Nobody waits while a link that would do is free, but for those who are looked at at the end of this turn. */
static void check_nobody_waits(const struct pool_host *host)
{
    const struct pool_lease *lease = pool__oldest_taker(host);
    const struct pool_line *line = lease ? pool__claim(lease)->line : NULL;

    assert(!line || pool__is_unseen(line)); /* or it is looked at at the end of the turn */
}

void pool__check_host(struct pool *pool, const struct pool_host *host)
{
    if (pool->freed || pool->core.depth > 1)
        return;
    check_lists(host);
    check_line(&host->line);
    check_opening(pool, &host->line);
    assert(host->connect_limit >= 1);
    assert(host->state == pool_host_state(host));
    assert(host->is_down == pool__is_down(host));
    assert(!host->failed || host->lists[PLACE_RESTING] || pool__opening(host)); /* or nobody would take it back */
    assert(!host->n_idle || link__node_is_set(&host->coldest));
    if (host->n_idle && pool__options(host)->idle_timeout > 0)
        assert(link__node_is_set(&host->timer));
    if (pool__free_link(host))
        check_nobody_waits(host);
}

static void check_targets(const struct pool *pool)
{
    const struct pool_target *target;

    DL_FOREACH (pool->targets, target) {
        uint32_t in[LINK_STATES] = {0}, n_down = 0;
        check_line(&target->line);
        check_opening(pool, &target->line);
        for (size_t i = 0; i < target->pick.n; i++) {
            in[target->hosts[i]->state]++;
            n_down += target->hosts[i]->is_down;
            assert(target->members[i]->lend_prev || !(target->hosts[i]->may_lend || pool__free_link(target->hosts[i])));
            assert(target->members[i]->host == target->hosts[i] && target->members[i]->index == i);
        }
        for (int state = 0; state < LINK_STATES; state++)
            assert(in[state] == target->in_state[state]);
        assert(n_down == target->n_down);
    }
}

static size_t unsent_in(const struct pool_claim *list)
{
    const struct pool_claim *claim;
    size_t unsent = 0;

    DL_FOREACH (list, claim)
        unsent += call__unsent_bytes(pool__lease(claim));
    return unsent;
}

/* Each byte that counts against max_call_bytes is of a call that waits, or has won, or has still to send. At the end of
 * a turn, where no call is on its way from one to the other. */
void pool__check_calls(const struct pool *pool)
{
    size_t unsent = unsent_in(pool->to_tell);
    const struct pool_target *target;
    const struct pool_host *host;

    if (pool->n_hosts > 16 && pool->checks % 64) /* each time where that is cheap */
        return;
    DL_FOREACH (pool->targets, target)
        unsent += unsent_in(target->line.first);
    DL_FOREACH (pool->removed, target)
        unsent += unsent_in(target->line.first);
    for (host = pool->hosts; host; host = host->hh.next) {
        const struct link *link;
        unsent += unsent_in(host->line.first);
        for (int place = 0; host->is_shared && place < PLACES; place++)
            DL_FOREACH (host->lists[place], link)
                unsent += unsent_on(link);
    }
    assert(unsent == pool->call_bytes);
}

static void check_all(struct pool *pool)
{
    unsigned links = 0, opening = 0, leased = 0, idle = 0, waiting = 0, hosts = 0;
    const struct pool_target *target;
    const struct pool_host *host;

    for (host = pool->hosts; host; host = host->hh.next) {
        pool__check_host(pool, host);
        links += pool__sockets(host);
        opening += pool__opening(host);
        leased += host->n_leased;
        idle += host->n_idle;
        waiting += host->line.n;
        hosts++;
    }
    DL_FOREACH (pool->targets, target)
        waiting += target->line.n;
    check_targets(pool);
    assert(links == pool->n_links);
    assert(opening == pool->n_opening);
    assert(leased == pool->n_leased);
    assert(idle == pool__idle(pool));
    assert(waiting == pool->n_waiting);
    assert(hosts == pool->n_hosts);
    assert(opening <= pool->options.max_connecting || pool->bounds_lowered);
    assert(links <= pool->options.max_links || pool->bounds_lowered);
    assert(hosts <= pool->options.max_hosts || pool->bounds_lowered);
    assert(pool->core.counts.impossible == 0);
}

void pool__check(struct pool *pool)
{
    if (pool->freed || pool->core.depth > 1)
        return;
    if (pool->checks++ % 64 == 0)
        check_all(pool);
}
#else
extern int pool__no_check; /* an empty translation unit is not C */
#endif
