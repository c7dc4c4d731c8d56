/* members.c - the hosts of a target, as a set: a new list is made whole, then put in the place of the old one.
 *
 * Until it is put in place nothing of the target has changed; what stays, stays. */
#include <string.h>
#include <utlist.h>

#include "pool/internal.h"

static void join(
    struct pool_target *target, struct pool_membership *member, struct pool_host *host, size_t i, unsigned weight)
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
    DL_APPEND2(target->lending, member, lend_prev, lend_next);
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
            DL_FOREACH_SAFE (host->lists[place], link, next)
                if (link__state(link) != LINK_DRAINING)
                    pool__retire(link, LINK_DRAINED);
    }
    pool__see_host(host);
}

static void free_list(struct pool *pool, struct pool_members *list)
{
    const struct linkpool_env *env = pool->core.env;

    link__release(env, list->hosts, list->room * sizeof *list->hosts);
    link__release(env, list->weights, list->room * sizeof *list->weights);
    link__release(env, list->members, list->room * sizeof *list->members);
}

void pool__members_give_up(struct pool *pool, struct pool_members *list)
{
    const struct linkpool_env *env = pool->core.env;

    for (size_t i = 0; i < list->room && list->members; i++)
        link__release(env, list->members[i], sizeof *list->members[i]);
    for (size_t i = 0; i < list->n; i++)
        pool_host_drop(list->hosts[i]);
    free_list(pool, list);
}

static void note_listed(const struct pool_members *list, bool is_listed)
{
    for (size_t i = 0; i < list->n; i++)
        list->hosts[i]->is_listed = is_listed;
}

static int add_endpoint(
    struct pool_target *target, struct pool_members *list, size_t i, const struct pool_endpoint *given)
{
    struct pool *pool = target->pool;
    struct pool_settings *settings = target->settings;
    struct pool_endpoint endpoint;
    struct pool_host *host;
    char why[160];
    int error;

    if ((error = pool__endpoint_take(&endpoint, given, why, sizeof why))) {
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

static int allocate(struct pool *pool, struct pool_members *list, size_t n)
{
    const struct linkpool_env *env = pool->core.env;

    *list = (struct pool_members){.room = n};
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

int pool__members_make(
    struct pool_target *target, const struct pool_endpoint *endpoints, size_t n, struct pool_members *list)
{
    const char *at = (const char *)endpoints;
    int error = allocate(target->pool, list, n);

    for (size_t i = 0; i < n && !error; i++) { /* older callers' endpoints are shorter: their size is the step */
        const struct pool_endpoint *endpoint = (const struct pool_endpoint *)(const void *)at;
        error = add_endpoint(target, list, i, endpoint);
        at += endpoint->size;
    }
    note_listed(list, false);
    if (error)
        pool__members_give_up(target->pool, list);
    return error;
}

/* To the front those that the new list does not have. @return how many. */
static size_t sort_out(struct pool_members *old, const struct pool_members *list)
{
    size_t n = 0;

    note_listed(list, true);
    for (size_t i = 0; i < old->n; i++)
        if (!old->hosts[i]->is_listed)
            old->hosts[n++] = old->hosts[i];
    note_listed(list, false);
    return n;
}

static void drop_old(struct pool_target *target, struct pool_members *old, const struct pool_members *list)
{
    const struct linkpool_env *env = target->pool->core.env;

    for (size_t i = 0; i < old->n; i++) {
        pool__lends_no_more(old->members[i]);
        DL_DELETE(old->hosts[i]->memberships, old->members[i]);
        link__release(env, old->members[i], sizeof *old->members[i]);
    }
    size_t n = sort_out(old, list); /* first: an observer may have a list made meanwhile */
    for (size_t i = 0; i < n; i++)
        leave(target, old->hosts[i]);
}

static struct pool_members list_of(const struct pool_target *target)
{
    return (struct pool_members){.n = target->pick.n,
        .room = target->room,
        .hosts = target->hosts,
        .weights = target->weights,
        .members = target->members};
}

static void put_in_place(struct pool_target *target, struct pool_members *list)
{
    const struct linkpool_env *env = target->pool->core.env;
    struct pool_members old = list_of(target);

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
    drop_old(target, &old, list);
    free_list(target->pool, &old);
    for (size_t i = 0; i < list->n; i++)
        pool_host_drop(list->hosts[i]);
}

static void list_changed(struct pool_target *target)
{
    bool is_used = pool__used_until(target) > pool__now(target->pool);

    pool__tell_picker(target);
    target->stuck = false; /* another list, another verdict */
    pool__target_see(target);
    if (pool__all_down(target))
        pool__fail_line(&target->line, LINKPOOL_EUNAVAILABLE, true);
    for (size_t i = 0; i < target->pick.n; i++) {
        if (is_used || pool__options(target->hosts[i])->min_links) /* else it adds nothing to what is kept up */
            pool__keep_up(target->hosts[i]);
        if (target->line.n)
            pool__serve(target->hosts[i]);
    }
    if (target->line.n)
        pool__look_again(&target->line);
}

void pool__members_put(struct pool_target *target, struct pool_members *list)
{
    link__enter(&target->pool->core);
    put_in_place(target, list);
    list_changed(target);
    link__leave(&target->pool->core);
}

void pool__members_clear(struct pool_target *target)
{
    struct pool_members old = list_of(target), none = {0};

    target->pick = (struct pool_pick){.can = target->pick.can, .state = target->pick.state};
    drop_old(target, &old, &none);
    free_list(target->pool, &old);
    target->hosts = NULL;
    target->weights = NULL;
    target->members = NULL;
    target->room = 0;
}

int pool_target_update(struct pool_target *target, const struct pool_endpoint *endpoints, size_t n)
{
    struct pool_members list;
    int error;

    target->pool->refusal[0] = '\0';
    if (target->pool->draining || target->pool->freed || target->draining)
        return LINKPOOL_ECLOSED;
    if (n && !endpoints)
        return LINKPOOL_EINVAL;
    if ((error = pool__members_make(target, endpoints, n, &list)))
        return error;
    pool__members_put(target, &list);
    return 0;
}
