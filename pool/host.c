/* host.c - the pool's entry for one endpoint: its coming and going, its times, its state, its options. */
#include <errno.h>
#include <string.h>
#include <utlist.h>

#include "link/options.h"
#include "pool/internal.h"

/* ---- making and finding ---- */

static size_t size_of(size_t key_size)
{
    return sizeof(struct pool_host) + key_size;
}

static void set_owner(struct pool_host *host, struct pool *pool, const struct pool_key *key,
    const struct pool_endpoint *endpoint, struct pool_settings *settings)
{
    char *bytes = memcpy(host + 1, key->bytes, key->size);

    host->owner = (struct link_owner){.core = &pool->core,
        .terms = &settings->terms,
        .address_text = bytes + key->address_text,
        .server_name = (uint16_t)(key->server_name - key->address_text),
        .local = (uint16_t)(key->local - key->address_text),
        .transport = endpoint->transport ? endpoint->transport : settings->options.transport,
        .protocol = endpoint->protocol ? endpoint->protocol : settings->options.protocol};
    pool__host_times(host);
}

void pool__host_times(struct pool_host *host)
{
    const struct pool_host_options *options = pool__options(host);

    host->is_shared = host->owner.protocol->flags & PROTOCOL_SHARED;
    host->lends_top = !host->is_shared && !options->spread_links;
    host->lends_held = host->is_shared && !options->spread_links && !options->max_uses;
    host->is_plain = !host->is_shared && !options->max_uses && !host->owner.protocol->released &&
                     !host->owner.transport->reset && !host->owner.transport->pending;
    if (host->connect_limit > options->max_connecting)
        host->connect_limit = (uint16_t)options->max_connecting;
}

static uint32_t room_of(const struct protocol *protocol)
{
    return protocol->flags & PROTOCOL_SHARED && protocol->max_channels ? protocol->max_channels : 1;
}

static void init(struct pool_host *host)
{
    host->timer.kind = POOL_NODE_HOST;
    host->connect_limit = (uint16_t)pool__options(host)->first_connecting;
    host->expected_room = room_of(host->owner.protocol);
    host->halved_at = -INFINITY;
    host->state = LINK_IDLE;
    host->unneeded_since = pool__now(pool__of(host));
    pool__line_init(&host->line, host, NULL);
}

static int hold_heaps(struct pool *pool)
{
    if (pool__line_hold(pool))
        return LINKPOOL_ENOMEM;
    if (link__heap_hold(&pool->core.timers, pool->core.env))
        goto no_timer;
    if (link__heap_hold(&pool->coldest, pool->core.env))
        goto no_coldest;
    return 0;
no_coldest:
    link__heap_drop(&pool->core.timers);
no_timer:
    link__heap_drop(&pool->core.timers);
    link__heap_drop(&pool->starving);
    return LINKPOOL_ENOMEM;
}

static void drop_heaps(struct pool_host *host)
{
    struct pool *pool = pool__of(host);

    link__heap_clear(&pool->coldest, &host->coldest);
    link__timer_clear(&pool->core, &host->timer);
    pool__line_drop(pool, &host->line);
    link__heap_drop(&pool->coldest);
    link__heap_drop(&pool->core.timers);
}

static struct pool_host *make(
    struct pool *pool, const struct pool_key *key, const struct pool_endpoint *endpoint, struct pool_settings *settings)
{
    const struct linkpool_env *env = pool->core.env;
    struct pool_host *host = link__alloc(env, size_of(key->size));

    if (!host)
        return NULL;
    if (hold_heaps(pool)) {
        link__release(env, host, size_of(key->size));
        return NULL;
    }
    set_owner(host, pool, key, endpoint, settings);
    init(host);
    HASH_ADD_KEYPTR(hh, pool->hosts, (char *)(host + 1), key->size, host);
    if (!host->hh.tbl) {
        drop_heaps(host);
        link__release(env, host, size_of(key->size));
        return NULL;
    }
    link__widen(pool->hosts->hh.tbl, pool->core.env);
    settings->refs++;
    pool->n_hosts++;
    pool__arm_host(host);
    return host;
}

int pool__host_find(struct pool *pool, const struct pool_endpoint *endpoint, const struct pool_host_options *options,
    struct pool_settings *settings, struct pool_host **found)
{
    struct pool_host *host;
    struct pool_key key;
    char why[160];
    int error;

    if (!settings)
        settings = pool->settings;
    if ((error = pool__key_make(&key, endpoint, &settings->options, why, sizeof why))) {
        pool__refuse(pool, "%s: %s", endpoint->address ? endpoint->address : "endpoint", why);
        return error;
    }
    HASH_FIND(hh, pool->hosts, key.bytes, key.size, host);
    if (host && options && !pool__settings_are(pool__settings(host), options)) {
        pool__refuse(pool, "%s: its host has other options already", endpoint->address);
        return LINKPOOL_ESTATE;
    }
    if (!host && pool->n_hosts >= pool->options.max_hosts) {
        pool__refuse(pool, "%s: max_hosts (%u) is reached", endpoint->address, pool->options.max_hosts);
        return LINKPOOL_EFULL;
    }
    if (!host && !(host = make(pool, &key, endpoint, settings)))
        return LINKPOOL_ENOMEM;
    *found = host;
    return 0;
}

int pool__host_by_text(struct pool *pool, const char *text, struct pool_host **host)
{
    struct pool_endpoint endpoint = {.size = sizeof endpoint, .address = text};
    int error;

    if (!strpbrk(text, ":/"))
        return LINKPOOL_EADDRESS;
    if ((error = pool__host_find(pool, &endpoint, NULL, NULL, host)))
        return error;
    pool__name_add(pool, text, *host, NULL); /* without memory it is parsed again the next time */
    return 0;
}

/* ---- going ---- */

static bool is_kept(const struct pool_host *host)
{
    return host->pins || host->memberships || host->n_leased || host->n_memory || host->start_asked;
}

static bool is_needed(const struct pool_host *host)
{
    return is_kept(host) || host->line.n;
}

void pool__host_remove(struct pool_host *host)
{
    struct pool *pool = pool__of(host);
    const struct linkpool_env *env = pool->core.env;

    pool__names_forget(host);
    drop_heaps(host);
    link__note(&host->owner, NULL);
    HASH_DELETE(hh, pool->hosts, host);
    pool->n_hosts--;
    pool__settings_drop(env, pool__settings(host));
    link__release(env, host, size_of(host->hh.keylen));
}

void pool__see_host(struct pool_host *host)
{
    struct pool *pool = pool__of(host);

    if (pool->freed)
        return;
    if (host->draining && !host->line.n && (host->lists[PLACE_OPENING] || host->n_idle))
        pool__close_unneeded(host);
    if (!is_needed(host)) {
        host->unneeded_since = pool__now(pool);
        pool__arm_host(host);
    }
}

/* An idle link; one whose message is being heard ends once that is over, and leads back here. */
static struct link *first_unneeded(struct pool_host *host)
{
    struct link *link;

    for (int place = PLACE_IDLE; place <= PLACE_RESERVE; place++)
        DL_FOREACH (host->lists[place], link) {
            if (!link__is_delivering(link))
                return link;
            link->retire = LINK_DRAINED;
        }
    return NULL;
}

/* A drain without an end, or whose time has come, is bounded by nothing but its peer. */
static bool drains_in_time(const struct pool_host *host)
{
    return (host->draining && host->drain_due < INFINITY) || link__node_is_set(&pool__of(host)->drain_timer);
}

static void let_finish(struct link *link, bool is_unasked)
{
    if (!link->retire)
        pool__retire(link, LINK_DRAINED);
    if (link->is_unasked == is_unasked)
        return;
    link->is_unasked = is_unasked;
    link__heartbeat_sooner(link);
}

/* Ending a link leads back here: once is enough, however many there are. */
void pool__close_unneeded(struct pool_host *host)
{
    struct link *link, *next;

    if (host->closing)
        return;
    host->closing = true;
    while (host->lists[PLACE_OPENING])
        link__end(host->lists[PLACE_OPENING], LINK_STOPPED, 0);
    while ((link = first_unneeded(host)))
        link__part(link, LINK_DRAINED);
    for (int place = PLACE_PARTIAL; place <= PLACE_BUSY; place++)
        DL_FOREACH_SAFE (host->lists[place], link, next)
            if (link__state(link) == LINK_READY && link__held(link))
                let_finish(link, drains_in_time(host));
    if ((link = host->lists[PLACE_RESTING]) && !link->tells) {
        link__stop(link, LINK_STOPPED);
        link__free(link);
        host->failed = host->probe_due = false;
        pool__host_changed(host);
    }
    host->closing = false;
}

/* ---- time ---- */

/* At most as many are looked at as matter. */
bool pool__enough_last(const struct pool_host *host, unsigned live, unsigned enough)
{
    const struct link *link;
    unsigned last = 0;

    if (live < enough)
        return false;
    DL_FOREACH (host->lists[PLACE_BUSY], link) {
        if (link__state(link) != LINK_READY)
            continue;
        if (link->retire && --live < enough)
            return false;
        if (!link->retire && ++last >= enough)
            break;
    }
    return true;
}

bool pool__one_less_is_too_few(const struct pool_host *host)
{
    unsigned kept_up = pool__kept_up(host);

    return kept_up && !pool__enough_last(host, host->n[LINK_READY] + host->n[LINK_RESETTING] - 1, kept_up);
}

static void close_idle(struct pool_host *host)
{
    double timeout = pool__options(host)->idle_timeout, now = pool__now(pool__of(host));
    struct link *coldest;

    while (timeout > 0 && (coldest = pool__coldest(host)) && coldest->idle_since + timeout <= now &&
           !pool__one_less_is_too_few(host))
        link__end(coldest, LINK_IDLE_TIMEOUT, 0);
}

static double idle_due(const struct pool_host *host)
{
    double timeout = pool__options(host)->idle_timeout, now = pool__now(pool__of(host)), due;

    if (timeout <= 0 || !host->n_idle)
        return INFINITY;
    due = pool__coldest(host)->idle_since + timeout;
    if (due > now)
        return due;
    due = pool__kept_up_until(host); /* exempt for now: looked at again */
    return due > now && due < INFINITY ? due : now + timeout;
}

void pool__arm_idle_late(struct pool_host *host, double idle_since)
{
    if (!link__node_is_set(&host->coldest))
        link__heap_set(&pool__of(host)->coldest, &host->coldest, idle_since);
    if (!link__node_is_set(&host->timer))
        pool__arm_host(host);
}

/* Links that nobody waits for: they are not opened before `keep_after`. */
static bool is_kept_up(const struct pool_host *host)
{
    return host->start_asked || host->n_replacing || pool__kept_up(host);
}

void pool__arm_host(struct pool_host *host)
{
    double due = idle_due(host), now = pool__now(pool__of(host)), other;

    if (host->keep_after > now && host->keep_after < due && is_kept_up(host))
        due = host->keep_after;
    if (host->draining && host->drain_due >= now && host->drain_due < due)
        due = host->drain_due;
    other = host->unneeded_since + pool__of(host)->options.host_timeout;
    if (!is_kept(host) && other < due) /* with somebody in line it is looked at again then */
        due = other;
    /* Never later than a link that falls idle from now on: what is set need not be touched then. */
    other = now + pool__options(host)->idle_timeout;
    if (due < INFINITY && other > now && other < due)
        due = other;
    link__timer_set(&pool__of(host)->core, &host->timer, due);
}

/* The time of its drain is up. */
static void end_all(struct pool_host *host)
{
    struct link *link, *next;

    pool__close_unneeded(host);
    host->closing = true;
    DL_FOREACH_SAFE (host->lists[PLACE_BUSY], link, next)
        link__end(link, LINK_DRAINED, 0);
    host->closing = false;
    pool__fail_line(
        &host->line, LINKPOOL_ECLOSED, false); /* after the links: winners that were not told are back in line */
}

void pool__host_rang(struct pool_host *host)
{
    double now = pool__now(pool__of(host));

    close_idle(host);
    if (host->draining && host->drain_due <= now) {
        host->drain_due = INFINITY;
        end_all(host);
    }
    if (host->keep_after <= now && is_kept_up(host))
        pool__want(&host->line);
    if (!is_kept(host) && host->line.n)
        host->unneeded_since = now; /* from the last of those in line on */
    if (!is_needed(host) && now >= host->unneeded_since + pool__of(host)->options.host_timeout)
        pool__host_remove(host);
    else
        pool__arm_host(host);
}

/* ---- its links ---- */

struct link *pool__link_new(struct pool_host *host)
{
    struct link *link = link__new(&host->owner);

    if (link) {
        link->place = PLACE_NONE;
        host->n_memory++;
    }
    return link;
}

/* ---- its state ---- */

static enum link_state state_of(const struct pool_host *host)
{
    if (host->draining)
        return LINK_DRAINING;
    if (pool__has_ready(host))
        return LINK_READY;
    if (host->n[LINK_OFFLINE])
        return LINK_OFFLINE;
    if (host->failed)
        return LINK_BACKOFF;
    return pool__opening(host) || host->n[LINK_BACKOFF] ? LINK_CONNECTING : LINK_IDLE;
}

void pool__host_changed(struct pool_host *host)
{
    enum link_state from = (enum link_state)host->state, to = state_of(host);
    bool was_down = host->is_down, is_down = pool__is_down(host);

    if (from == to && was_down == is_down)
        return;
    host->state = (uint8_t)to;
    host->is_down = is_down;
    if (is_down && !was_down && !host->draining)
        pool__fail_line(&host->line, LINKPOOL_EUNAVAILABLE, true);
    for (struct pool_membership *member = host->memberships; member; member = member->next)
        pool__target_host_changed(member->target, from, to, was_down, is_down);
}

/* ---- its public face ---- */

static struct pool_host *refused(int error)
{
    errno = error == LINKPOOL_EFULL     ? ENOSPC
            : error == LINKPOOL_ENOMEM  ? ENOMEM
            : error == LINKPOOL_ESTATE  ? EEXIST
            : error == LINKPOOL_ECLOSED ? ESHUTDOWN
                                        : EINVAL;
    return NULL;
}

struct pool_host *pool_host_for(
    struct pool *pool, const struct pool_endpoint *given, const struct pool_host_options *options)
{
    struct pool_settings *settings = NULL;
    struct pool_endpoint endpoint;
    struct pool_host *host = NULL;
    char why[160];
    int error;

    pool->refusal[0] = '\0';
    if (pool->draining || pool->freed)
        return refused(LINKPOOL_ECLOSED);
    if (!given || (options && pool_host_options_check(options, why, sizeof why))) {
        pool__refuse(pool, "%s", given ? why : "no endpoint is given");
        return refused(LINKPOOL_EINVAL);
    }
    if (pool__endpoint_take(&endpoint, given, why, sizeof why)) {
        pool__refuse(pool, "%s", why);
        return refused(LINKPOOL_EINVAL);
    }
    if (options && !(settings = pool__settings_new(pool->core.env, options)))
        return refused(LINKPOOL_ENOMEM);
    error = pool__host_find(pool, &endpoint, options, settings, &host);
    if (settings)
        pool__settings_drop(pool->core.env, settings);
    if (error)
        return refused(error);
    host->pins++;
    pool__keep_up(host);
    return host;
}

struct pool_host *pool_host(struct pool *pool, const char *address)
{
    return pool_host_for(pool, &(struct pool_endpoint){.size = sizeof(struct pool_endpoint), .address = address}, NULL);
}

void pool_host_drop(struct pool_host *host)
{
    if (!host || !host->pins)
        return;
    host->pins--;
    pool__see_host(host);
}

int pool_host_start(struct pool_host *host)
{
    if (pool__of(host)->draining || pool__of(host)->freed)
        return LINKPOOL_ECLOSED;
    if (host->draining)
        host->halved_at = -INFINITY; /* it was drain_due */
    host->draining = false;
    pool__bring_back(host);
    pool__host_changed(host);
    return 0;
}

int pool_host_drain(struct pool_host *host, double timeout)
{
    if (!(timeout >= 0) || (timeout > LINK_TEN_YEARS && timeout != INFINITY))
        return LINKPOOL_EINVAL;
    if (pool__of(host)->freed)
        return 0;
    host->draining = true;
    host->start_asked = false;
    host->drain_due = pool__now(pool__of(host)) + timeout;
    link__enter(&pool__of(host)->core);
    pool__host_changed(host);
    pool__serve_all(host);
    if (!host->line.n)
        pool__close_unneeded(host);
    pool__arm_host(host);
    link__leave(&pool__of(host)->core);
    return 0;
}

/* ---- its options ---- */

static void bound_room(struct link *link)
{
    if (!link__is_shared(link))
        return;
    link__set_room(link, link__shared(link)->said);
    pool__place(link);
}

/* Their age is another, their heartbeat, or their bound. */
static void take_terms(struct pool_host *host)
{
    struct link *link, *next;

    for (int place = PLACE_IDLE; place <= PLACE_OPENING; place++)
        DL_FOREACH_SAFE (host->lists[place], link, next) {
            bound_room(link);
            if (link__is_doubted(link) && !link->retire && !link__can_be_asked(link))
                pool__retire(link, LINK_DRAINED); /* its doubt would never end */
            else if (link->bits & LINK_RECYCLED && !pool__is_to_be_replaced(link))
                link__heartbeat_sooner(link);
            else if (link__state(link) == LINK_READY)
                link__arm_ready(link);
        }
}

int pool_host_set_options(struct pool_host *host, const struct pool_host_options *given)
{
    struct pool *pool = pool__of(host);
    struct pool_host_options options;
    struct pool_settings *settings;

    pool__host_options_take(&options, given);
    options.backoff = pool__options(host)->backoff;
    options.transport = pool__options(host)->transport;
    options.protocol = pool__options(host)->protocol;
    if (pool_host_options_check(&options, pool->refusal, sizeof pool->refusal))
        return LINKPOOL_EINVAL;
    if (!(settings = pool__settings_new(pool->core.env, &options)))
        return LINKPOOL_ENOMEM;
    pool__settings_drop(pool->core.env, pool__settings(host));
    host->owner.terms = &settings->terms;
    pool->bounds_lowered = true;
    pool__host_times(host);
    link__enter(&pool->core);
    take_terms(host);
    pool__serve_all(host); /* its links may carry more: now, before anybody who comes in this turn */
    link__leave(&pool->core);
    pool__arm_host(host);
    pool__want_host(host);
    pool__look_again_at(host);
    return 0;
}

enum link_state pool_host_state(const struct pool_host *host)
{
    return state_of(host);
}
const char *pool_host_address(const struct pool_host *host)
{
    return host->owner.address_text;
}
