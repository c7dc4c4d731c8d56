/* scene.c - what scenarios are made of; see scene.h. */
#include "tests/faults/scene.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <string.h>
#include <utlist.h>

#include "pool/internal.h"
#include "tests/faults/sweep.h"

/* ---- asking and giving back ---- */

static struct fake_user *asked(struct scene *scene, unsigned i)
{
    sweep_is_right(scene, &scene->users[i].lease);
    scene_check(scene);
    return &scene->users[i];
}

struct fake_user *scene_ask(struct scene *scene, unsigned i, const char *text)
{
    if (scene->world.pool)
        fake_ask(&scene->world, &scene->users[i], text);
    return asked(scene, i);
}

struct fake_user *scene_ask_host(struct scene *scene, unsigned i, struct pool_host *host)
{
    if (host)
        fake_ask_host(&scene->world, &scene->users[i], host);
    return asked(scene, i);
}

struct fake_user *scene_ask_target(struct scene *scene, unsigned i, struct pool_target *target)
{
    if (target)
        fake_ask_target(&scene->world, &scene->users[i], target);
    return asked(scene, i);
}

void scene_cancel(struct scene *scene, unsigned i)
{
    if (!pool_cancel(&scene->users[i].lease))
        scene->users[i].lease.status = 0;
    scene_check(scene);
}

void scene_release(struct scene *scene, unsigned i, enum pool_disposition disposition)
{
    pool_release(&scene->users[i].lease, disposition);
    scene_check(scene);
}

void scene_give_all_back(struct scene *scene)
{
    for (unsigned i = 0; i < USERS; i++) {
        struct pool_lease *lease = &scene->users[i].lease;

        sweep_is_right(scene, lease);
        if (lease->channel)
            cr_assert(eq(int, pool_release(lease, POOL_REUSE), 0));
        else if (lease->status == POOL_PENDING)
            cr_assert(eq(int, pool_cancel(lease), 0));
        lease->status = 0;
    }
    scene_check(scene);
}

/* ---- using ---- */

static void met_its_end(struct scene *scene, const struct pool_lease *lease)
{
    cr_assert(ne(int, lease->reason, LINK_NO_REASON));
    sweep_is_right(scene, lease);
}

static void say(struct scene *scene, struct fake_user *user)
{
    struct channel *channel = user->lease.channel;
    char byte = 'm';

    if (link__is_shared(channel->link))
        channel_send(channel, &byte, 1);
    else if (channel_writev(channel, &(struct iovec){&byte, 1}, 1) == LINKPOOL_ELOST)
        met_its_end(scene, &user->lease);
}

static void hear(struct scene *scene, struct fake_user *user)
{
    struct channel *channel = user->lease.channel;
    char bytes[8];

    if (channel && !link__is_shared(channel->link) && channel_read(channel, bytes, sizeof bytes) == LINKPOOL_ELOST)
        met_its_end(scene, &user->lease);
}

void scene_exchange(struct scene *scene)
{
    for (unsigned i = 0; i < USERS; i++)
        if (scene->users[i].lease.channel)
            say(scene, &scene->users[i]);
    scene_run(scene, 0.001);
    for (unsigned i = 0; i < USERS; i++)
        hear(scene, &scene->users[i]);
    scene_check(scene);
}

void scene_run(struct scene *scene, double seconds)
{
    fake_run(&scene->world, seconds);
    scene_check(scene);
}

/* ---- what holds in any case ---- */

static unsigned own_times(const struct pool_line *line)
{
    const struct pool_claim *claim;
    unsigned n = 0;

    DL_FOREACH (line->first, claim)
        n += claim->has_own_time && claim->deadline < INFINITY;
    return n;
}

static void add_targets(const struct pool_target *first, unsigned *lines, unsigned *timers)
{
    const struct pool_target *target;

    DL_FOREACH (first, target) {
        ++*lines;
        *timers += 2 + own_times(&target->line);
    }
}

static size_t names_of(const struct pool *pool)
{
    return pool->names ? pool->names->hh.tbl->num_items : 0;
}

/* Whoever holds a place in a heap is there: none is lost by a failure half-way. */
static void check_places(const struct scene *scene)
{
    const struct pool *pool = scene->world.pool;
    unsigned timers = 3, lines = 0, hosts = 0; /* the drain's, the calls', and a changed network's */

    for (const struct pool_host *host = pool->hosts; host; host = host->hh.next) {
        hosts++;
        cr_assert(not(host->is_listed)); /* that is of a list while it is made */
        timers += 2 + host->n_memory + own_times(&host->line);
    }
    add_targets(pool->targets, &lines, &timers);
    add_targets(pool->removed, &lines, &timers);
    timers += scene->own_timers ? scene->own_timers() : 0;
    cr_assert(eq(uint, pool->core.timers.held, timers));
    cr_assert(eq(uint, pool->starving.held, hosts + lines));
    cr_assert(eq(uint, pool->coldest.held, hosts));
    cr_assert(eq(uint, pool->n_hosts, hosts));
    cr_assert(eq(sz, (size_t)pool->n_names, names_of(pool)));
}

void scene_check(struct scene *scene)
{
    if (!scene->world.pool)
        return;
    check_places(scene);
#ifdef LINKPOOL_CHECK
    scene->world.pool->checks = 0; /* all of it */
#endif
    pool__check(scene->world.pool);
}

struct testing_peer *scene_peer(struct scene *scene, const char *address)
{
    for (unsigned i = 0; i < SCENE_PEERS; i++)
        if (!strcmp(testing_peer_address(scene->peers[i]), address))
            return scene->peers[i];
    cr_fatal("no peer at %s", address);
}

/* ---- hosts and targets ---- */

/* Handles alone pin: a list does so while it is made, and no longer. */
static unsigned pins(const struct pool *pool)
{
    unsigned n = 0;

    for (const struct pool_host *host = pool ? pool->hosts : NULL; host; host = host->hh.next)
        n += host->pins;
    return n;
}

struct pool_host *scene_host_for(
    struct scene *scene, const struct pool_endpoint *endpoint, const struct pool_host_options *options)
{
    struct pool_host *host = scene->world.pool ? pool_host_for(scene->world.pool, endpoint, options) : NULL;

    if (scene->world.pool && !host)
        cr_assert(eq(int, errno, ENOMEM));
    scene_check(scene);
    return host;
}

struct pool_host *scene_host(struct scene *scene, const char *address)
{
    return scene_host_for(
        scene, &(struct pool_endpoint){.size = sizeof(struct pool_endpoint), .address = address}, NULL);
}

struct pool_host *scene_protocol(struct scene *scene, const char *address, const struct protocol *protocol)
{
    struct pool_endpoint endpoint = {
        .size = sizeof(struct pool_endpoint), .address = address, .tag = "its own", .protocol = protocol};

    return scene_host_for(scene, &endpoint, NULL);
}

struct pool_target *scene_target(struct scene *scene, const char *name, const struct pool_target_options *options)
{
    unsigned pinned = pins(scene->world.pool);
    struct pool_target *target = scene->world.pool ? pool_target_add(scene->world.pool, name, options) : NULL;

    cr_assert(eq(uint, pins(scene->world.pool), pinned));
    if (scene->world.pool && !target)
        cr_assert(eq(int, errno, ENOMEM));
    scene_check(scene);
    return target;
}

struct pool_target *scene_pair(struct scene *scene, const char *name, const struct pool_picker *picker)
{
    struct pool_endpoint endpoints[2];
    struct pool_target_options options;

    fake_endpoints(endpoints, (const char *const[]){ADDRESS, OTHER}, 2);
    pool_target_options_init(&options);
    options.endpoints = endpoints;
    options.n_endpoints = 2;
    if (picker)
        options.picker = picker;
    return scene_target(scene, name, &options);
}

void scene_update(struct scene *scene, struct pool_target *target, const char *const *addresses, size_t n)
{
    struct pool_endpoint endpoints[16];
    struct pool_host *was = target ? pool_target_host(target, 0) : NULL;
    unsigned pinned;
    int error;

    if (!target)
        return;
    fake_endpoints(endpoints, addresses, n);
    pinned = pins(scene->world.pool);
    error = pool_target_update(target, endpoints, n);
    cr_assert(eq(uint, pins(scene->world.pool), pinned));
    if (error) { /* nothing has changed */
        cr_assert(eq(int, error, LINKPOOL_ENOMEM));
        cr_assert(eq(ptr, pool_target_host(target, 0), was));
    } else if (n) {
        cr_assert(eq(str, (char *)pool_host_address(pool_target_host(target, 0)), (char *)addresses[0]));
    }
    scene_check(scene);
}

/* ---- links on their own ---- */

static unsigned number_of(const struct scene *scene, const struct link *link)
{
    for (unsigned i = 0; i < SCENE_LINKS; i++)
        if (scene->links[i] == link)
            return i;
    return 0; /* told before link_new() has returned: not to be */
}

static void on_connected(struct link *link, struct channel *channel)
{
    struct scene *scene = link_data(link);

    (void)channel;
    scene->n_connected[number_of(scene, link)]++;
}

static void on_disconnected(struct link *link, enum link_reason reason)
{
    struct scene *scene = link_data(link);

    cr_assert(ne(int, reason, LINK_NO_REASON));
    scene->n_disconnected[number_of(scene, link)]++;
}

void scene_link_options(struct scene *scene, struct link_options *options)
{
    link_options_init(options);
    options->env = &scene->env;
    options->data = scene;
    options->connected = on_connected;
    options->disconnected = on_disconnected;
}

struct link *scene_link(struct scene *scene, unsigned i, const struct link_options *options)
{
    if (!scene->driver)
        scene->driver = testing_driver(scene->world.t);
    scene->links[i] = link_new(scene->driver, ADDRESS, options);
    if (scene->links[i])
        cr_assert(eq(int, link_start(scene->links[i]), 0));
    else
        cr_assert(eq(int, errno, ENOMEM));
    return scene->links[i];
}
