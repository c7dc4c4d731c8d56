/* target.c - a named set of hosts with a policy: its picks, its state, its coming and going. */
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
    target->pick.all_busy = !pool__lending(target);
    int i = target->picker->pick(&target->pick, lease, draw);
    return i < (int)target->pick.n
               ? i
               : POOL_PICK_WAIT; /* a user's picker may be wrong, and must not reach past the list */
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

    if (target->draining || target->pool->draining || target->pool->freed)
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

/* Drawn here, and not when it is asked: leasing makes no system call. */
static uint64_t random_bits(const struct pool *pool)
{
    return pool->core.env->random(pool->core.env->data);
}

void pool__tell_picker(struct pool_target *target)
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
    pool__tell_picker(target);
    pool__target_see(target);
    if (is_down && !was_down && pool__all_down(target))
        pool__fail_line(&target->line, LINKPOOL_EUNAVAILABLE, true);
    if (target->line.n)
        pool__look_again(&target->line); /* its picker may take another now, be it in want of a link or not */
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
    errno = error == LINKPOOL_EFULL     ? ENOSPC
            : error == LINKPOOL_ENOMEM  ? ENOMEM
            : error == LINKPOOL_ESTATE  ? EEXIST
            : error == LINKPOOL_ECLOSED ? ESHUTDOWN
                                        : EINVAL;
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
    struct pool_members list = {0};
    int error;

    pool->refusal[0] = '\0';
    pool__target_options_take(&options, given);
    if ((error = check(pool, name, &options)))
        return refused(error);
    if (!(target = make(pool, name, &options)))
        return refused(LINKPOOL_ENOMEM);
    if (options.endpoints && (error = pool__members_make(target, options.endpoints, options.n_endpoints, &list)))
        goto failed;
    if ((error = pool__name_add(pool, target->name, NULL, target))) {
        if (options.endpoints)
            pool__members_give_up(pool, &list);
        goto failed;
    }
    DL_APPEND(pool->targets, target);
    pool->n_targets++;
    if (options.endpoints) {
        pool__members_put(target, &list);
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
    struct pool_name *name = pool__name_find(pool, target->name);

    link__enter(&pool->core);
    target->removed = target->over = target->draining = true;
    pool__target_see(target);
    pool__fail_line(&target->line, LINKPOOL_ECLOSED, false);
    pool__name_remove(pool, name);
    pool__members_clear(target);
    DL_DELETE(pool->targets, target);
    pool->n_targets--;
    DL_APPEND(pool->removed, target);
    link__later(&pool->core); /* it goes at the end of the turn, when those who waited have been told */
    link__leave(&pool->core);
}

int pool_target_drain(
    struct pool_target *target, double timeout, void (*done)(struct pool_target *target, void *data), void *data)
{
    struct pool *pool = target->pool;

    if (!(timeout >= 0) || (timeout > LINK_TEN_YEARS && timeout != INFINITY))
        return LINKPOOL_EINVAL;
    if (target->draining || pool->freed)
        return LINKPOOL_ESTATE;
    target->draining = true;
    target->drained = done;
    target->drained_data = data;
    link__timer_set(&pool->core, &target->timer, pool__now(pool) + timeout);
    pool__target_see(target);
    pool__see_target_drain(target);
    return 0;
}

void pool__see_target_drain(struct pool_target *target)
{
    link__later(&target->pool->core);
}

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
    DL_FOREACH_SAFE (link__shared(link)->used, stream, next)
        if (is_out_by(&stream->channel, target))
            link__lose(&stream->channel, LINK_DRAINED, 0, LINK_LOST_BY_US);
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
            DL_FOREACH_SAFE (host->lists[place], link, next)
                end_leases(link, target);
    pool__see_target_drain(target);
}

/* ---- its public face ---- */

int pool_target_start(struct pool_target *target)
{
    if (target->pool->draining || target->pool->freed || target->draining)
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

enum link_state pool_target_state(const struct pool_target *target)
{
    return best(target);
}
const char *pool_target_name(const struct pool_target *target)
{
    return target->name;
}
struct pool_host *pool_target_host(const struct pool_target *target, size_t i)
{
    return i < target->pick.n ? target->hosts[i] : NULL;
}
