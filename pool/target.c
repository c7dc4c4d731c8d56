/* target.c - a named set of hosts with a policy: its list, its state, its picks. */
#include <errno.h>
#include <string.h>
#include <utlist.h>

#include "link/options.h"
#include "pool/internal.h"

/* ---- picking ---- */

enum pool_host_can pool__can(const struct pool_host *host)
{
    if (pool__is_down(host))
        return POOL_HOST_DOWN;
    if (pool__free_link(host))
        return POOL_HOST_CAN_SERVE;
    if (pool__sockets(host) + host->n[LINK_BACKOFF] < pool__options(host)->max_links || pool__opening(host))
        return POOL_HOST_CAN_OPEN;
    return POOL_HOST_FULL;
}

int pool__pick(struct pool_target *target, const struct pool_lease *lease)
{
    uint64_t draw = target->draw;

    target->draw = 0;
    if (!target->pick.n)
        return POOL_PICK_DOWN;
    return target->picker->pick(&target->pick, lease, draw);
}

bool pool__takes(struct pool_target *target, const struct pool_lease *lease, size_t i)
{
    return !target->picker->takes || target->picker->takes(&target->pick, lease, i);
}

/* ---- use ---- */

void pool__use_target(struct pool_target *target)
{
    double now = pool__now(target->pool);
    bool was_kept_up = !target->picker->keeps_up || now < pool__used_until(target);

    target->used_at = now;
    if (!was_kept_up)
        for (size_t i = 0; i < target->pick.n; i++)
            pool__want(&target->hosts[i]->line);
}

/* ---- state ---- */

static enum link_state best(const struct pool_target *target)
{
    const uint32_t *in = target->in_state;

    if (target->draining || target->removed || target->pool->draining || target->pool->freed)
        return LINK_CLOSED;
    if (!target->known)
        return target->line.n ? LINK_CONNECTING : LINK_IDLE;
    if (!target->pick.n)
        return LINK_BACKOFF;
    if (in[LINK_READY])
        return LINK_READY;
    if (in[LINK_CONNECTING])
        return target->stuck ? LINK_BACKOFF : LINK_CONNECTING;
    if (in[LINK_IDLE]) /* an attempt is at hand while somebody waits */
        return target->stuck ? LINK_BACKOFF : target->line.n ? LINK_CONNECTING : LINK_IDLE;
    return in[LINK_BACKOFF] ? LINK_BACKOFF : LINK_OFFLINE;
}

void pool__target_see(struct pool_target *target)
{
    enum link_state from = (enum link_state)target->state, to = best(target);
    const struct pool_observer *observer = &target->pool->observer;

    target->stuck = target->known && target->pick.n && (to == LINK_BACKOFF || to == LINK_OFFLINE);
    if (from == to)
        return;
    target->state = (uint8_t)to;
    if (observer->target)
        observer->target(observer->data, target, from, to);
}

static bool all_down(const struct pool_target *target) { return target->known && target->n_down == target->pick.n; }

/* Drawn here, and not when it is asked: leasing makes no system call. */
static uint64_t random_bits(const struct pool *pool)
{
    return pool->core.env->random(pool->core.env->data);
}

static void tell_picker(struct pool_target *target)
{
    if (target->picker->changed)
        target->picker->changed(&target->pick);
    target->draw = random_bits(target->pool);
}

void pool__target_host_changed(
    struct pool_target *target, enum link_state from, enum link_state to, bool was_down, bool is_down)
{
    target->in_state[from]--;
    target->in_state[to]++;
    target->n_down += (uint32_t)is_down;
    target->n_down -= (uint32_t)was_down;
    tell_picker(target);
    pool__target_see(target);
    if (is_down && !was_down && all_down(target))
        pool__fail_line(&target->line, LINKPOOL_EUNAVAILABLE, true);
    if (target->line.n)
        pool__want(&target->line);
}

/* ---- its list ---- */

static void join(struct pool_target *target, struct pool_membership *member, struct pool_host *host, size_t i, unsigned weight)
{
    member->host = host;
    member->target = target;
    member->index = i;
    DL_APPEND(host->memberships, member);
    target->members[i] = member;
    target->hosts[i] = host;
    target->weights[i] = weight ? weight : 1;
    target->in_state[host->state]++;
    target->n_down += host->is_down;
}

/* Hosts that lost their last target, and that nobody pinned: their links end when nobody holds them. */
static void leave(struct pool_target *target, struct pool_host *host)
{
    struct link *link, *next;

    pool__forget_line(host, &target->line);
    if (!host->memberships && !host->pins) {
        while (!host->line.n && host->lists[PLACE_OPENING])
            link__end(host->lists[PLACE_OPENING], LINK_STOPPED, 0);
        for (int place = PLACE_IDLE; place <= PLACE_BUSY; place++)
            DL_FOREACH_SAFE(host->lists[place], link, next)
                if (link__state(link) != LINK_DRAINING)
                    pool__retire(link, LINK_DRAINED);
    }
    pool__see_host(host);
}

/** A list as it is being made; nothing of the target has changed until it is put in place. */
struct list {
    size_t n, room;
    struct pool_host **hosts; /* pinned meanwhile */
    unsigned *weights;
    struct pool_membership **members;
};

static void free_list(struct pool *pool, struct list *list)
{
    const struct linkpool_env *env = pool->core.env;

    link__release(env, list->hosts, list->room * sizeof *list->hosts);
    link__release(env, list->weights, list->room * sizeof *list->weights);
    link__release(env, list->members, list->room * sizeof *list->members);
}

static void give_up(struct pool *pool, struct list *list)
{
    const struct linkpool_env *env = pool->core.env;

    for (size_t i = 0; i < list->room && list->members; i++)
        link__release(env, list->members[i], sizeof *list->members[i]);
    for (size_t i = 0; i < list->n; i++)
        pool_host_drop(list->hosts[i]);
    free_list(pool, list);
}

static int add_endpoint(struct pool_target *target, struct list *list, size_t i, const struct pool_endpoint *given)
{
    struct pool *pool = target->pool;
    struct pool_settings *settings = target->settings;
    struct pool_endpoint endpoint;
    struct pool_host *host;
    char why[160];
    int error;

    pool__endpoint_take(&endpoint, given);
    if ((error = pool__endpoint_check(&endpoint, why, sizeof why))) {
        pool__refuse(pool, "endpoint %zu: %s", i, why);
        return error;
    }
    if ((error = pool__host_find(pool, &endpoint, settings ? &settings->options : NULL, settings, &host)))
        return error;
    if (host->is_listed) /* twice in one list: once in the target */
        return 0;
    host->is_listed = true;
    host->pins++;
    list->weights[list->n] = endpoint.weight;
    list->hosts[list->n++] = host;
    return 0;
}

static int make_room(struct pool *pool, struct list *list, size_t n)
{
    const struct linkpool_env *env = pool->core.env;

    *list = (struct list){.room = n};
    if (!n)
        return 0;
    list->hosts = link__alloc(env, n * sizeof *list->hosts);
    list->weights = link__alloc(env, n * sizeof *list->weights);
    list->members = link__alloc(env, n * sizeof *list->members);
    if (!list->hosts || !list->weights || !list->members)
        return LINKPOOL_ENOMEM;
    for (size_t i = 0; i < n; i++)
        if (!(list->members[i] = link__alloc(env, sizeof *list->members[i])))
            return LINKPOOL_ENOMEM;
    return 0;
}

static int make_list(struct pool_target *target, const struct pool_endpoint *endpoints, size_t n, struct list *list)
{
    const char *at = (const char *)endpoints;
    int error = make_room(target->pool, list, n);

    for (size_t i = 0; i < n && !error; i++) { /* older callers' endpoints are shorter: their size is the step */
        const struct pool_endpoint *endpoint = (const struct pool_endpoint *)(const void *)at;
        error = add_endpoint(target, list, i, endpoint);
        at += endpoint->size;
    }
    for (size_t i = 0; i < list->n; i++)
        list->hosts[i]->is_listed = false;
    if (error)
        give_up(target->pool, list);
    return error;
}

static bool is_member(const struct pool_target *target, const struct pool_host *host)
{
    for (const struct pool_membership *member = host->memberships; member; member = member->next)
        if (member->target == target)
            return true;
    return false;
}

static void drop_old(struct pool_target *target, const struct list *old)
{
    const struct linkpool_env *env = target->pool->core.env;

    for (size_t i = 0; i < old->n; i++) {
        DL_DELETE(old->hosts[i]->memberships, old->members[i]);
        link__release(env, old->members[i], sizeof *old->members[i]);
    }
    for (size_t i = 0; i < old->n; i++)
        if (!is_member(target, old->hosts[i]))
            leave(target, old->hosts[i]);
}

static struct list list_of(const struct pool_target *target)
{
    return (struct list){.n = target->pick.n, .room = target->room, .hosts = target->hosts, .weights = target->weights,
        .members = target->members};
}

/* Takes a list over, and gives the former one up. */
static void put_in_place(struct pool_target *target, struct list *list)
{
    const struct linkpool_env *env = target->pool->core.env;
    struct list old = list_of(target);

    memset(target->in_state, 0, sizeof target->in_state);
    target->n_down = 0;
    target->hosts = list->hosts;
    target->weights = list->weights;
    target->members = list->members;
    target->room = list->room;
    for (size_t i = 0; i < list->n; i++)
        join(target, list->members[i], list->hosts[i], i, list->weights[i]);
    for (size_t i = list->n; i < list->room; i++) { /* of endpoints that were given twice */
        link__release(env, list->members[i], sizeof *list->members[i]);
        list->members[i] = NULL;
    }
    target->pick.n = list->n;
    target->pick.hosts = target->hosts;
    target->pick.weights = target->weights;
    target->known = true;
    drop_old(target, &old);
    free_list(target->pool, &old);
    for (size_t i = 0; i < list->n; i++)
        pool_host_drop(list->hosts[i]);
}

static void list_changed(struct pool_target *target)
{
    tell_picker(target);
    target->stuck = false; /* another list, another verdict */
    pool__target_see(target);
    if (all_down(target))
        pool__fail_line(&target->line, LINKPOOL_EUNAVAILABLE, true);
    for (size_t i = 0; i < target->pick.n; i++) {
        if (pool__kept_up(target->hosts[i]))
            pool__want(&target->hosts[i]->line);
        if (target->line.n)
            pool__serve(target->hosts[i]);
    }
    if (target->line.n)
        pool__want(&target->line);
}

int pool_target_update(struct pool_target *target, const struct pool_endpoint *endpoints, size_t n)
{
    struct list list;
    int error;

    target->pool->refusal[0] = '\0';
    if (target->pool->draining || target->pool->freed || target->draining || target->removed)
        return LINKPOOL_ECLOSED;
    if (n && !endpoints)
        return LINKPOOL_EINVAL;
    if ((error = make_list(target, endpoints, n, &list)))
        return error;
    link__enter(&target->pool->core);
    put_in_place(target, &list);
    list_changed(target);
    link__leave(&target->pool->core);
    return 0;
}

/* ---- coming ---- */

static bool is_name(const char *name)
{
    size_t length = name ? strlen(name) : 0;

    return length && length <= 255 && !strpbrk(name, ":/");
}

static struct pool_target *make(struct pool *pool, const char *name, const struct pool_target_options *options)
{
    const struct linkpool_env *env = pool->core.env;
    struct pool_target *target = link__alloc(env, sizeof *target);

    if (!target)
        return NULL;
    target->pool = pool;
    target->picker = options->picker;
    target->pick.can = pool__can;
    target->timer.kind = POOL_NODE_TARGET;
    target->used_at = -1;
    target->state = LINK_IDLE;
    target->draw = random_bits(pool);
    pool__line_init(&target->line, NULL, target);
    target->max_line = options->max_line;
    target->wait_timeout = options->wait_timeout;
    if (pool__line_hold(pool))
        goto no_line;
    if (link__heap_hold(&pool->core.timers, env))
        goto no_timer;
    if (!(target->name = link__alloc(env, strlen(name) + 1)))
        goto no_name;
    strcpy(target->name, name);
    if (options->picker->state_size && !(target->pick.state = link__alloc(env, options->picker->state_size)))
        goto no_state;
    if (options->host && !(target->settings = pool__settings_new(env, options->host)))
        goto no_settings;
    return target;
no_settings:
    link__release(env, target->pick.state, options->picker->state_size);
no_state:
    link__release(env, target->name, strlen(name) + 1);
no_name:
    link__heap_drop(&pool->core.timers);
no_timer:
    pool__line_drop(pool, &target->line);
no_line:
    link__release(env, target, sizeof *target);
    return NULL;
}

void pool__target_free(struct pool_target *target)
{
    struct pool *pool = target->pool;
    const struct linkpool_env *env = pool->core.env;

    link__timer_clear(&pool->core, &target->timer);
    pool__line_drop(pool, &target->line);
    link__heap_drop(&pool->core.timers);
    if (target->settings)
        pool__settings_drop(env, target->settings);
    link__release(env, target->pick.state, target->picker->state_size);
    link__release(env, target->name, strlen(target->name) + 1);
    link__release(env, target, sizeof *target);
}

static struct pool_target *refused(int error)
{
    errno = error == LINKPOOL_EFULL ? ENOSPC : error == LINKPOOL_ENOMEM ? ENOMEM : error == LINKPOOL_ESTATE ? EEXIST
        : error == LINKPOOL_ECLOSED ? ESHUTDOWN : EINVAL;
    return NULL;
}

static int check(struct pool *pool, const char *name, const struct pool_target_options *options)
{
    char why[200];

    if (pool->draining || pool->freed)
        return LINKPOOL_ECLOSED;
    if (!is_name(name)) {
        pool__refuse(pool, "a target's name has 1 to 255 bytes without ':' or '/'");
        return LINKPOOL_EINVAL;
    }
    if (pool_target_options_check(options, why, sizeof why)) {
        pool__refuse(pool, "%s: %s", name, why);
        return LINKPOOL_EINVAL;
    }
    if (pool__name_find(pool, name)) {
        pool__refuse(pool, "%s: the name is taken", name);
        return LINKPOOL_ESTATE;
    }
    return 0;
}

struct pool_target *pool_target_add(struct pool *pool, const char *name, const struct pool_target_options *given)
{
    struct pool_target_options options;
    struct pool_target *target;
    struct list list = {0};
    int error;

    pool->refusal[0] = '\0';
    pool__target_options_take(&options, given);
    if ((error = check(pool, name, &options)))
        return refused(error);
    if (!(target = make(pool, name, &options)))
        return refused(LINKPOOL_ENOMEM);
    if (options.endpoints && (error = make_list(target, options.endpoints, options.n_endpoints, &list)))
        goto failed;
    if ((error = pool__name_add(pool, target->name, NULL, target))) {
        if (options.endpoints)
            give_up(pool, &list);
        goto failed;
    }
    DL_APPEND(pool->targets, target);
    pool->n_targets++;
    if (options.endpoints) {
        put_in_place(target, &list);
        list_changed(target);
    }
    return target;
failed:
    pool__target_free(target);
    return refused(error);
}

/* ---- going ---- */

void pool_target_remove(struct pool_target *target)
{
    if (!target || target->removed)
        return;
    struct pool *pool = target->pool;
    struct list old = list_of(target);
    struct pool_name *name = pool__name_find(pool, target->name);

    link__enter(&pool->core);
    target->removed = target->over = target->draining = true;
    pool__target_see(target);
    pool__fail_line(&target->line, LINKPOOL_ECLOSED, false);
    pool__name_remove(pool, name);
    target->pick.n = 0;
    drop_old(target, &old);
    free_list(pool, &old);
    target->hosts = NULL;
    target->weights = NULL;
    target->members = NULL;
    target->pick.hosts = NULL;
    target->pick.weights = NULL;
    target->room = 0;
    DL_DELETE(pool->targets, target);
    pool->n_targets--;
    DL_APPEND(pool->removed, target);
    link__later(&pool->core); /* it goes at the end of the turn, when those who waited have been told */
    link__leave(&pool->core);
}

int pool_target_drain(struct pool_target *target, double timeout, void (*done)(struct pool_target *target, void *data), void *data)
{
    struct pool *pool = target->pool;

    if (!(timeout >= 0) || (timeout > LINK_TEN_YEARS && timeout != INFINITY))
        return LINKPOOL_EINVAL;
    if (target->draining || target->removed || pool->freed)
        return LINKPOOL_ESTATE;
    target->draining = true;
    target->drained = done;
    target->drained_data = data;
    link__timer_set(&pool->core, &target->timer, pool__now(pool) + timeout);
    pool__target_see(target);
    pool__see_target_drain(target);
    return 0;
}

void pool__see_target_drain(struct pool_target *target) { link__later(&target->pool->core); }

static bool is_out_by(const struct channel *channel, const struct pool_target *target)
{
    return channel->state == CHANNEL_HELD && pool__claim(channel->lease)->target == target;
}

/* Of a shared link the target's channels end, and others' go on. */
static void end_leases(struct link *link, const struct pool_target *target)
{
    struct link_stream *stream, *next;

    if (!link__is_shared(link)) {
        if (is_out_by(&link->channel, target))
            link__end(link, LINK_DRAINED, 0);
        return;
    }
    DL_FOREACH_SAFE(link__shared(link)->used, stream, next)
        if (is_out_by(&stream->channel, target))
            link__lose(&stream->channel, LINK_DRAINED, 0, false);
}

/* The time of its drain is up: those who wait fail, and the leases of those who hold end. */
void pool__target_rang(struct pool_target *target)
{
    struct link *link, *next;

    target->over = true;
    pool__fail_line(&target->line, LINKPOOL_ECLOSED, false);
    /* Of all hosts: one may have left the list since. */
    for (struct pool_host *host = target->pool->hosts; host; host = host->hh.next)
        for (int place = PLACE_PARTIAL; place <= PLACE_BUSY; place++)
            DL_FOREACH_SAFE(host->lists[place], link, next)
                end_leases(link, target);
    pool__see_target_drain(target);
}

/* ---- its public face ---- */

int pool_target_start(struct pool_target *target)
{
    if (target->pool->draining || target->pool->freed || target->draining || target->removed)
        return LINKPOOL_ECLOSED;
    if (target->picker->keeps_up)
        target->used_at = pool__now(target->pool);
    for (size_t i = 0; i < target->pick.n; i++) {
        struct pool_host *host = target->hosts[i];
        if (!host->draining && (host->n[LINK_OFFLINE] || target->picker->keeps_up))
            pool__bring_back(host);
    }
    if (!target->picker->keeps_up && !target->in_state[LINK_READY]) {
        int i = pool__pick(target, NULL);
        if (i >= 0)
            pool__bring_back(target->hosts[i]);
    }
    return 0;
}

int pool_target_recycle(struct pool_target *target, double rate)
{
    int error = 0;

    for (size_t i = 0; i < target->pick.n && !error; i++)
        error = pool_host_recycle(target->hosts[i], rate);
    return rate >= 0 ? error : LINKPOOL_EINVAL;
}

enum link_state pool_target_state(const struct pool_target *target) { return best(target); }
const char *pool_target_name(const struct pool_target *target) { return target->name; }
struct pool_host *pool_target_host(const struct pool_target *target, size_t i) { return i < target->pick.n ? target->hosts[i] : NULL; }
