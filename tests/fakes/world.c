/* world.c - a pool in virtual time for tests; see world.h. */
#include "tests/fakes/world.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

/* ---- the world ---- */

void fake_world_begin(struct fake_world *world)
{
    fake_world_begin_with(world, 1);
}

void fake_world_begin_with(struct fake_world *world, uint64_t seed)
{
    *world = (struct fake_world){.t = testing_new(seed), .backoff = backoff_default};
    cr_assert(ne(ptr, world->t, NULL));
    pool_options_init(&world->options);
    pool_host_options_init(&world->host);
    world->host.backoff = &world->backoff;
    world->options.host = &world->host;
    world->options.env = testing_env(world->t);
}

void fake_world_open(struct fake_world *world)
{
    struct driver *driver = testing_driver(world->t);

    world->pool = pool_new_on(driver, &world->options);
    cr_assert(ne(ptr, world->pool, NULL));
}

void fake_world_end(struct fake_world *world)
{
    pool_free(world->pool);
    world->pool = NULL;
    cr_assert(eq(str, (char *)testing_last_misuse(world->t), ""));
    cr_assert(eq(uint, testing_misuses(world->t), 0));
    cr_assert(eq(uint, testing_open_descriptors(world->t), 0));
    cr_assert(eq(sz, testing_blocks(world->t), 0));
    cr_assert(not(testing_stuck(world->t)));
    testing_free(world->t);
    world->t = NULL;
}

struct testing_peer *fake_peer(struct fake_world *world, const char *address, enum testing_behaviour behaviour)
{
    struct testing_peer *peer = testing_peer_add(world->t, address, behaviour);

    cr_assert(ne(ptr, peer, NULL));
    return peer;
}

struct testing_peer *fake_echo(struct fake_world *world, const char *address)
{
    struct testing_peer *peer = fake_peer(world, address, TESTING_ACCEPT);

    testing_peer_serve(peer, testing_echo, NULL);
    return peer;
}

/* ---- users ---- */

static void note(struct fake_user *user)
{
    user->told_at = testing_now(user->world->t);
    user->place = ++user->world->told;
}

static void on_done(struct pool_lease *lease)
{
    struct fake_user *user = lease->data;

    user->done++;
    user->status = lease->status;
    note(user);
}

static void on_closed(struct pool_lease *lease)
{
    struct fake_user *user = lease->data;

    user->closed++;
    note(user);
}

static struct pool_lease *prepared(struct fake_world *world, struct fake_user *user)
{
    user->world = world;
    user->lease.data = user;
    user->lease.done = on_done;
    user->lease.closed = on_closed;
    return &user->lease;
}

int fake_ask(struct fake_world *world, struct fake_user *user, const char *text)
{
    return user->status = pool_acquire(world->pool, text, prepared(world, user));
}

int fake_ask_host(struct fake_world *world, struct fake_user *user, struct pool_host *host)
{
    return user->status = pool_acquire_host(host, prepared(world, user));
}

int fake_ask_target(struct fake_world *world, struct fake_user *user, struct pool_target *target)
{
    return user->status = pool_acquire_target(target, prepared(world, user));
}

static bool has_channel(void *data)
{
    return ((struct fake_user *)data)->lease.channel != NULL;
}

void fake_hold(struct fake_world *world, struct fake_user *user, const char *text)
{
    cr_assert(ge(int, fake_ask(world, user, text), POOL_READY));
    cr_assert(testing_run_until(world->t, has_channel, user, 1));
}

void fake_send(struct fake_user *user, const char *bytes)
{
    struct iovec part = {(void *)bytes, strlen(bytes)};

    cr_assert(eq(long, channel_writev(user->lease.channel, &part, 1), (long)strlen(bytes)));
}

void fake_exchange(struct fake_world *world, struct fake_user *user)
{
    char answer[8];

    fake_send(user, "x");
    fake_settle(world);
    cr_assert(eq(long, channel_read(user->lease.channel, answer, sizeof answer), 1));
}

void fake_give_back(struct fake_user *user)
{
    cr_assert(eq(int, pool_release(&user->lease, POOL_REUSE), 0));
}

/* ---- time ---- */

void fake_settle(struct fake_world *world)
{
    fake_run(world, 1e-6);
}

void fake_run(struct fake_world *world, double seconds)
{
    cr_assert(testing_run_for(world->t, seconds));
}

void fake_turn(struct fake_world *world)
{
    cr_assert(testing_turn(world->t));
}

/* ---- the pool ---- */

struct pool_stats fake_stats(const struct fake_world *world)
{
    struct pool_stats stats;

    pool_stats(world->pool, &stats, sizeof stats);
    return stats;
}

struct pool_host_stats fake_host_stats(const struct pool_host *host)
{
    struct pool_host_stats stats;

    pool_host_stats(host, &stats, sizeof stats);
    return stats;
}

struct pool_host *fake_host(const struct fake_world *world, const char *address)
{
    struct pool_host *host = NULL;

    while ((host = pool_next_host(world->pool, host)))
        if (!strcmp(pool_host_address(host), address))
            return host;
    return NULL;
}

void fake_endpoints(struct pool_endpoint *endpoints, const char *const *addresses, size_t n)
{
    for (size_t i = 0; i < n; i++)
        endpoints[i] = (struct pool_endpoint){.size = sizeof *endpoints, .address = addresses[i]};
}

int fake_pick_by_hash(const struct pool_pick *pick, const struct pool_lease *lease, uint64_t draw)
{
    return (int)((lease ? lease->hash : draw) % pick->n);
}

bool fake_takes_by_hash(const struct pool_pick *pick, const struct pool_lease *lease, size_t i)
{
    return fake_pick_by_hash(pick, lease, 0) == (int)i;
}

struct pool_target *fake_target(struct fake_world *world, const char *name, const struct pool_picker *picker,
    const char *const *addresses, size_t n)
{
    struct pool_endpoint endpoints[64];
    struct pool_target_options options;
    struct pool_target *target;

    cr_assert(le(sz, n, 64));
    fake_endpoints(endpoints, addresses, n);
    pool_target_options_init(&options);
    options.picker = picker;
    options.endpoints = endpoints;
    options.n_endpoints = n;
    target = pool_target_add(world->pool, name, &options);
    cr_assert(ne(ptr, target, NULL));
    return target;
}
