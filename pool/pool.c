/* pool.c - the pool as a whole: birth, the end of each turn, drain, death.
 *
 * All that users are told of leases is told at the end of a turn, from turn() here; pool_free() is the one exception.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <utlist.h>

#include "link/options.h"
#include "pool/call.h"
#include "pool/internal.h"

static struct pool *of(struct link_core *core)
{
    return (struct pool *)core;
}

void pool__refuse(struct pool *pool, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(pool->refusal, sizeof pool->refusal, format, args);
    va_end(args);
}

/* ---- what links report ---- */

static unsigned is_socket(enum link_state state)
{
    return state >= LINK_CONNECTING && state <= LINK_DRAINING;
}

static unsigned is_attempt(enum link_state state)
{
    return state == LINK_CONNECTING || state == LINK_HANDSHAKING;
}

/* It takes nobody any more: the next one is looked for now, not when this one is over. */
static void replace(struct pool_host *host, struct link *link)
{
    pool__replaced_no_more(link);
    if (link->retire == LINK_CLOSED_BY_PEER)
        pool__spread_upkeep(host);
    pool__want_host(host);
}

static void on_moved(struct link *link, const struct link_transition *transition)
{
    struct pool_host *host = pool__host_of(link);
    struct pool *pool = pool__of(host);
    enum link_state from = transition->from, to = transition->to;

    if (from != LINK_IDLE)
        host->n[from]--;
    if (to != LINK_IDLE && to != LINK_CLOSED)
        host->n[to]++;
    pool->n_links = pool->n_links + is_socket(to) - is_socket(from);
    pool->n_opening = pool->n_opening + is_attempt(to) - is_attempt(from);
    if (is_attempt(from) && !is_attempt(to)) {
        pool__attempt_over(link);
        pool__link_gone(pool); /* an attempt may begin instead */
    }
    if (from == LINK_HANDSHAKING && to == LINK_READY)
        pool__succeeded(link);
    pool__place(link);
    pool__host_changed(host);
    if (is_socket(from) && !is_socket(to))
        pool__link_gone(pool);
    if (to == LINK_DRAINING)
        replace(host, link);
    if (from == LINK_HANDSHAKING && to == LINK_READY)
        pool__replaced(host);
    if (pool->observer.transition) {
        struct link_transition told = *transition;
        told.attempt = host->failures;
        pool->observer.transition(pool->observer.data, host, &told);
    }
}

static void on_served(struct link *link)
{
    struct pool_host *host = pool__host_of(link);
    struct pool *pool = pool__of(host);
    bool tells_of_room = link__is_shared(link) && !link->uses;

    if (link->bits & LINK_ENDING)
        return;
    if (link__is_shared(link))
        host->expected_room = link__shared(link)->said ? link__shared(link)->said : 1;
    pool__place(link);
    if (link->retire && !link__held(link)) {
        link__end(link, (enum link_reason)link->retire, 0);
        return;
    }
    if (!link__held(link))
        pool__arm_idle(host, link->idle_since);
    pool__serve(host);
    if (tells_of_room) /* after those who wait: its protocol may refuse each of them */
        pool__see_room(link);
    if (!link__held(link) && pool->starving.n && pool__must_make_room(link)) {
        link__end(link, LINK_MADE_ROOM, 0); /* nobody took it here, and elsewhere somebody waits for its place */
        return;
    }
    if ((pool->draining || host->draining) && !link__held(link) && !pool__oldest_taker(host)) {
        link__part(link, LINK_DRAINED);
        return;
    }
    pool__want_host(host);
}

static void on_settled(struct link *link, const struct link_end *end)
{
    struct pool_host *host = pool__host_of(link);
    struct pool *pool = pool__of(host);

    if (link__state(link) == LINK_IDLE)
        link__free(link);
    if (pool->freed)
        return;
    if (end->reason == LINK_MADE_ROOM)
        pool__pause_upkeep(host); /* it would take the place back at once */
    pool__want_host(
        host); /* and free channels are looked at again, at the end of the turn: nobody is served inside an end */
    pool__see_host(host);
    if (pool->draining)
        link__later(&pool->core);
}

void pool__retire(struct link *link, enum link_reason reason)
{
    pool__replaced_no_more(link);
    link->retire = (uint8_t)reason;
    if (link__state(link) != LINK_READY)
        return; /* looked at again when it is */
    if (!link__held(link) && !link__is_delivering(link)) {
        link__end(link, reason, 0);
        return;
    }
    pool__place(link); /* a shared one takes no new leases */
    pool__want_host(pool__host_of(link));
}

/* It is asked, has missed an answer, or is heard of again. This may be inside a user's call: who waits for it is served
 * at the end of the turn. */
static void on_trusted(struct link *link)
{
    if (link->bits & LINK_ENDING || link__state(link) != LINK_READY)
        return;
    pool__place_anew(link);
    if (link__has_room(link))
        pool__look_again_at(pool__host_of(link));
}

static void on_many_probes(struct link_core *core, unsigned due)
{
    const struct pool *pool = of(core);

    if (pool->observer.many_probes)
        pool->observer.many_probes(pool->observer.data, due);
}

static void on_aged(struct link *link)
{
    enum link_reason reason = (enum link_reason)link->retire;

    if (reason == LINK_DRAINED && pool__is_replaced_first(link)) {
        link->retire = LINK_NO_REASON;
        link__arm_ready(link);
        return;
    }
    pool__retire(link, reason);
}

static void on_ending(struct link *link)
{
    pool__replaced_no_more(link);
    pool__unlist(link);
}

static void on_rang(struct link_core *core, struct link_node *node)
{
    struct pool *pool = of(core);
    char *at = (char *)node;

    switch (node->kind) {
    case POOL_NODE_LEASE:
        pool__time_out(pool__lease((struct pool_claim *)(at - offsetof(struct pool_claim, wait.timer))));
        break;
    case POOL_NODE_LINE:
        pool__line_rang(pool, (struct pool_line *)(at - offsetof(struct pool_line, timer)));
        break;
    case POOL_NODE_HOST:
        pool__host_rang((struct pool_host *)(at - offsetof(struct pool_host, timer)));
        break;
    case POOL_NODE_TARGET:
        pool__target_rang((struct pool_target *)(at - offsetof(struct pool_target, timer)));
        break;
    case POOL_NODE_CALL:
        call__rang(node);
        break;
    case POOL_NODE_CALLS:
        call__clock_rang(pool);
        break;
    case POOL_NODE_NETWORK:
        pool__network_begin_anew(pool);
        break;
    case POOL_NODE_FANOUT:
        fanout__rang(node);
        break;
    default:
        pool__end_all(pool);
        break;
    }
}

static void on_buried(struct link_owner *owner)
{
    struct pool_host *host = (struct pool_host *)owner;

    host->n_memory--;
    pool__see_host(host);
}

/* ---- the end of a turn ---- */

static void close_for_drain(struct pool *pool)
{
    struct pool_host *host;

    if (pool->n_waiting)
        return;
    for (host = pool->hosts; host; host = host->hh.next)
        pool__close_unneeded(host);
}

static void see_drain(struct pool *pool)
{
    if (!pool->draining || pool->drain_told)
        return;
    close_for_drain(pool);
    if (pool->n_links || pool->n_leased || pool->n_waiting || pool->to_tell)
        return;
    pool->drain_told = true;
    link__timer_clear(&pool->core, &pool->drain_timer);
    if (pool->drained)
        pool->drained(pool, pool->drained_data);
}

static void see_targets(struct pool *pool)
{
    struct pool_target *target, *next;

    DL_FOREACH_SAFE (pool->removed, target, next) {
        if (target->n_held || target->line.n || target->n_calls)
            continue;
        DL_DELETE(pool->removed, target);
        pool__target_free(target);
    }
    for (target = pool->targets; target; target = next) {
        next = target->next;
        if (!target->drained || !target->draining || target->n_held || target->line.n)
            continue;
        void (*drained)(struct pool_target *, void *) = target->drained;
        target->drained = NULL;
        link__timer_clear(&pool->core, &target->timer);
        drained(target, target->drained_data);
        if (pool->freed)
            return;
        next = pool->targets; /* that may have removed any: from the front; each is told once */
    }
}

static void turn(struct link_core *core)
{
    struct pool *pool = of(core);
    uint32_t limit = pool->decided;

    while (!pool->freed && pool__tell_one(pool, limit))
        ;
    fanout__tell(pool);
    if (!pool->freed)
        see_targets(pool);
    if (!pool->freed)
        pool__open_wanted(pool);
    if (!pool->freed)
        see_drain(pool);
    if (pool->freed)
        return;
    if (pool->to_tell || pool->groups)
        link__later(core);
    pool__check_calls(pool);
    pool__check(pool);
}

/* ---- birth ---- */

static bool over(struct link_core *core)
{
    return of(core)->freed;
}

static void gone(struct link_core *core);

static void on_slept(struct link_core *core)
{
    pool_network_changed(of(core));
}

const struct link_keeper pool__keeper = {
    .ending = on_ending,
    .ended = pool__ended,
    .moved = on_moved,
    .served = on_served,
    .settled = on_settled,
    .lost = pool__lost,
    .sent_away = pool__sent_away,
    .proven = pool__proven,
    .trusted = on_trusted,
    .many_probes = on_many_probes,
    .retry = pool__retry,
    .aged = on_aged,
    .rang = on_rang,
    .turn = turn,
    .slept = on_slept,
    .buried = on_buried,
    .over = over,
    .gone = gone,
};

enum {
    OWN_TIMERS = 3 /* the drain's, the calls', and a changed network's */
};

struct pool *pool_new_on(struct driver *driver, const struct pool_options *given)
{
    struct pool_options options;
    struct pool *pool;

    pool__options_take(&options, given);
    if (!driver || driver->owner || pool_options_check(&options, NULL, 0)) {
        errno = EINVAL;
        return NULL;
    }
    if (!(pool = link__alloc(options.env, sizeof *pool)))
        goto no_pool;
    if (!(pool->settings = pool__settings_new(options.env, options.host)))
        goto no_settings;
    link__core_init(&pool->core, driver, options.env, &pool__keeper);
    for (int i = 0; i < OWN_TIMERS; i++)
        if (link__heap_hold(&pool->core.timers, options.env))
            goto no_timer;
    pool->options = options;
    pool->options.host = NULL;
    if (options.observer)
        link__take_observer(&pool->observer, options.observer);
    pool->drain_timer.kind = POOL_NODE_DRAIN;
    pool->call_timer.kind = POOL_NODE_CALLS;
    pool->network_timer.kind = POOL_NODE_NETWORK;
    return pool;
no_timer:
    link__core_free(&pool->core);
    pool__settings_drop(options.env, pool->settings);
no_settings:
    link__release(options.env, pool, sizeof *pool);
no_pool:
    errno = ENOMEM;
    return NULL;
}

struct pool *pool_new(struct ev_loop *loop, const struct pool_options *options)
{
    struct driver *driver = driver_ev_new(loop);
    struct pool *pool = driver ? pool_new_on(driver, options) : NULL;

    if (driver && !pool) {
        int error = errno;
        driver_free(driver);
        errno = error;
    }
    return pool;
}

/* ---- death ---- */

static void fail_all(struct pool *pool)
{
    struct pool_target *target;
    struct pool_host *host;

    DL_FOREACH (pool->targets, target)
        pool__fail_line(&target->line, LINKPOOL_ECLOSED, false);
    for (host = pool->hosts; host; host = host->hh.next)
        pool__fail_line(&host->line, LINKPOOL_ECLOSED, false);
}

static void close_targets(struct pool *pool)
{
    struct pool_target *target;

    DL_FOREACH (pool->targets, target)
        pool__target_see(target);
}

static void stop_links(struct pool_host *host, bool quietly)
{
    struct link *link;

    for (int place = 0; place < PLACES; place++)
        while ((link = host->lists[place])) {
            if (quietly)
                link__forget(link);
            else
                link__stop(link, LINK_STOPPED);
            link__free(link);
        }
    host->failed = host->holding = host->probe_due = host->start_asked = false;
    pool__host_changed(host);
}

void pool__end_all(struct pool *pool)
{
    struct pool_host *host;

    for (host = pool->hosts; host; host = host->hh.next)
        stop_links(host, false);
    fail_all(pool); /* after the links: winners that were not told are back in line */
    link__later(&pool->core);
}

void pool_free(struct pool *pool)
{
    if (!pool || pool->freed)
        return;
    link__enter(&pool->core);
    pool->freed = true;
    close_targets(pool);
    pool__end_all(pool);
    while (pool__tell_one(pool, pool->decided))
        ;
    fanout__tell(pool);
    link__leave(&pool->core); /* the memory goes here, or with the outermost call under way */
}

static void free_targets(struct pool *pool)
{
    struct pool_target *target;

    while ((target = pool->targets)) {
        pool_target_remove(target);
    }
    while ((target = pool->removed)) {
        DL_DELETE(pool->removed, target);
        pool__target_free(target);
    }
}

static void gone(struct link_core *core)
{
    struct pool *pool = of(core);
    const struct linkpool_env *env = core->env;
    struct driver *driver = core->driver;

    core->depth++; /* what is done here frees nothing twice */
    free_targets(pool);
    while (pool->hosts)
        pool__host_remove(pool->hosts);
    link__heap_drop(&core->timers);
    link__heap_free(&pool->starving, env);
    link__heap_free(&pool->coldest, env);
    link__core_free(core);
    pool__settings_drop(env, pool->settings);
    link__release(env, pool, sizeof *pool);
    driver_free(driver);
}

int pool_drain(struct pool *pool, double timeout, void (*done)(struct pool *pool, void *data), void *data)
{
    if (!(timeout >= 0) || (timeout > LINK_TEN_YEARS && timeout != INFINITY))
        return LINKPOOL_EINVAL;
    if (pool->draining || pool->freed)
        return LINKPOOL_ESTATE;
    link__enter(&pool->core);
    pool->draining = true;
    pool->drained = done;
    pool->drained_data = data;
    close_targets(pool);
    if (timeout > 0)
        link__timer_set(&pool->core, &pool->drain_timer, pool__now(pool) + timeout);
    else
        pool__end_all(pool);
    close_for_drain(pool);
    link__later(&pool->core);
    link__leave(&pool->core);
    return 0;
}

/* A child has its parent's sockets: it forgets them, and nobody is told. */
void pool_after_fork(struct pool *pool)
{
    struct pool_observer observer = pool->observer;
    struct pool_host *host;

    link__enter(&pool->core);
    pool->observer = (struct pool_observer){0}; /* nobody looks on: these are not its links */
    for (host = pool->hosts; host; host = host->hh.next)
        stop_links(host, true);
    fail_all(pool);
    for (struct pool_target *target = pool->targets; target; target = target->next)
        target->drained = NULL; /* what the parent asked to be told */
    pool->draining = pool->drain_told = false;
    pool->drained = NULL;
    link__timer_clear(&pool->core, &pool->call_timer);
    link__timer_clear(&pool->core, &pool->network_timer);
    link__timer_clear(&pool->core, &pool->drain_timer);
    while (pool->to_tell) {
        struct pool_claim *claim = pool->to_tell;
        DL_DELETE(pool->to_tell, claim);
        if (claim->state == CLAIM_LOST)
            link__told(claim->channel);
        claim->state = CLAIM_OVER;
        pool__lease(claim)->channel = NULL;
        pool__lease(claim)->status = LINKPOOL_ECLOSED;
        call__forget(pool__lease(claim));
    }
    fanout__forget_all(pool);
    pool->observer = observer;
    link__leave(&pool->core);
}

/* ---- the rest of its public face ---- */

void pool_reset_backoff(struct pool *pool)
{
    struct pool_host *host;

    for (host = pool->hosts; host; host = host->hh.next)
        pool__reset_host_backoff(host);
}

double pool_now(const struct pool *pool)
{
    return pool__now(pool);
}

int pool_set_options(struct pool *pool, const struct pool_options *given)
{
    struct pool_options options;

    pool__options_take(&options, given);
    if (pool_options_check(&options, pool->refusal, sizeof pool->refusal))
        return LINKPOOL_EINVAL;
    options.env = pool->options.env;
    options.host = NULL;
    options.observer = pool->options.observer;
    pool->options = options;
    pool->bounds_lowered = true;
    for (struct pool_host *host = pool->hosts; host; host = host->hh.next)
        pool__want_host(host);
    return 0;
}

const char *pool_last_refusal(const struct pool *pool)
{
    return pool->refusal;
}
