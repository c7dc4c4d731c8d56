/* scenes_use.c - scenarios of use and return, of what ends links, and of a pool's own life. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "tests/fakes/session.h"
#include "tests/faults/scenes.h"

/* ---- return ---- */

static void used_again(struct scene *scene)
{
    for (unsigned i = 0; i < 4; i++) {
        scene_ask(scene, i % 2, ADDRESS);
        scene_run(scene, 0.01);
        scene_exchange(scene);
        scene_release(scene, i % 2, POOL_REUSE);
    }
}
SCENARIO(used_again);

static void discarded(struct scene *scene)
{
    for (unsigned i = 0; i < 4; i++) {
        scene_ask(scene, i % 2, ADDRESS);
        scene_run(scene, 0.01);
        scene_release(scene, i % 2, POOL_DISCARD);
    }
}
SCENARIO(discarded);

/* The answer is not waited for: the link is no use to anybody else. */
static void given_back_unclean(struct scene *scene)
{
    char byte = 'u';

    for (unsigned i = 0; i < 3; i++) {
        scene_ask(scene, i, ADDRESS);
        scene_run(scene, 0.01);
        if (scene->users[i].lease.channel)
            channel_writev(scene->users[i].lease.channel, &(struct iovec){&byte, 1}, 1);
        scene_release(scene, i, POOL_REUSE);
    }
}
SCENARIO(given_back_unclean);

static void half_closed(struct scene *scene)
{
    struct fake_user *user = scene_ask(scene, 0, ADDRESS);
    char byte;

    scene_run(scene, 0.01);
    scene_exchange(scene);
    if (user->lease.channel && channel_shutdown(user->lease.channel) == LINKPOOL_ELOST)
        cr_assert(ne(int, user->lease.reason, LINK_NO_REASON));
    scene_run(scene, 0.01);
    if (user->lease.channel)
        channel_read(user->lease.channel, &byte, 1);
    scene->natural = true; /* the peer has closed as well */
    scene_release(scene, 0, POOL_REUSE);
    scene_ask(scene, 1, ADDRESS);
}
SCENARIO(half_closed);

static void cleaned_between_holders(struct scene *scene)
{
    struct pool_host *host = scene_protocol(scene, ADDRESS, &fake_session);

    for (unsigned i = 0; i < 3; i++) {
        scene_ask_host(scene, i, host);
        scene_run(scene, 0.01);
        scene_exchange(scene);
        scene_release(scene, i, POOL_REUSE);
        scene_run(scene, 0.01);
    }
}
SCENARIO(cleaned_between_holders);

/* ---- what a holder listens for ---- */

static void on_readable(struct channel *channel)
{
    char bytes[8];

    channel_read(channel, bytes, sizeof bytes);
}

static void on_writable(struct channel *channel)
{
    char byte = 'w';

    channel_want(channel, LINKPOOL_READ);
    channel_writev(channel, &(struct iovec){&byte, 1}, 1);
}

static const struct channel_events listens = {.readable = on_readable, .writable = on_writable};

static void listened_to(struct scene *scene)
{
    scene_ask(scene, 0, ADDRESS);
    scene_ask(scene, 1, OTHER);
    scene_run(scene, 0.01);
    for (unsigned i = 0; i < 2; i++)
        if (scene->users[i].lease.channel)
            channel_watch(scene->users[i].lease.channel, &listens, LINKPOOL_READ | LINKPOOL_WRITE);
    scene_run(scene, 1);
}
SCENARIO(listened_to);

static void narrow(struct scene *scene)
{
    testing_send_buffer(scene->world.t, 2);
}

static void listened_to_through_a_narrow_pipe(struct scene *scene)
{
    static char many[64];
    struct fake_user *user = scene_ask(scene, 0, ADDRESS);

    scene_run(scene, 0.01);
    if (!user->lease.channel)
        return;
    channel_writev(user->lease.channel, (struct iovec[]){{many, 1}, {many, 0}, {many, 63}}, 3);
    channel_watch(user->lease.channel, &listens, LINKPOOL_READ | LINKPOOL_WRITE);
    scene_run(scene, 1);
}
SCENARIO(listened_to_through_a_narrow_pipe, .options = narrow);

/* ---- what ends links ---- */

static void brief(struct scene *scene)
{
    scene->world.host.idle_timeout = 2;
    scene->world.host.max_uses = 2;
    scene->world.host.max_age = 5;
}

static void short_lived(struct scene *scene)
{
    for (unsigned i = 0; i < 4; i++) {
        scene_ask(scene, i % 2, ADDRESS);
        scene_run(scene, i);
        scene_release(scene, i % 2, POOL_REUSE);
        scene_run(scene, i);
    }
}
SCENARIO(short_lived, .options = brief);

static void dies_idle(struct scene *scene)
{
    scene->natural = true;
    for (unsigned i = 0; i < 3; i++)
        scene_ask(scene, i, ADDRESS);
    scene_run(scene, 0.1);
    scene_exchange(scene);
    scene_give_all_back(scene);
    testing_peer_cut(scene_peer(scene, ADDRESS), LINK_CLOSED_BY_PEER);
    scene_ask(scene, 0, ADDRESS);
    scene_run(scene, 0.1);
}
SCENARIO(dies_idle);

static void dies_held(struct scene *scene)
{
    scene->natural = true;
    for (unsigned i = 0; i < 3; i++)
        scene_ask(scene, i, i % 2 ? OTHER : ADDRESS);
    scene_run(scene, 0.1);
    testing_peer_cut(scene_peer(scene, ADDRESS), LINK_RESET);
    testing_peer_cut(scene_peer(scene, OTHER), LINK_CLOSED_BY_PEER);
    scene_exchange(scene);
    scene_give_all_back(scene);
    scene_ask(scene, 3, ADDRESS);
}
SCENARIO(dies_held);

/* ---- a pool's own life ---- */

static void pool_drained(struct scene *scene)
{
    scene->pool_ends = true;
    scene_ask(scene, 0, ADDRESS);
    scene_run(scene, 0.01);
    scene_ask(scene, 1, OTHER);
    if (scene->world.pool)
        cr_assert(eq(int, pool_drain(scene->world.pool, 2, NULL, NULL), 0));
    scene_run(scene, 3);
    scene_ask(scene, 2, OTHER);
}
SCENARIO(pool_drained);

static void pool_forked(struct scene *scene)
{
    struct pool_target *pair = scene_pair(scene, "target", NULL);

    scene->ends_leases = true;
    for (unsigned i = 0; i < 3; i++)
        scene_ask_target(scene, i, pair);
    scene_run(scene, 0.01);
    scene_ask(scene, 3, THIRD);
    if (scene->world.pool)
        pool_after_fork(scene->world.pool);
    scene_check(scene);
    scene_ask(scene, 4, ADDRESS);
}
SCENARIO(pool_forked);

static void pool_with_other_bounds(struct scene *scene)
{
    for (unsigned i = 0; i < 6; i++)
        scene_ask(scene, i, ADDRESS);
    scene_run(scene, 0.1);
    scene->world.options.max_links = 2;
    if (scene->world.pool)
        cr_assert(eq(int, pool_set_options(scene->world.pool, &scene->world.options), 0));
    scene_exchange(scene);
    scene_give_all_back(scene);
    scene_ask(scene, 0, ADDRESS);
}
SCENARIO(pool_with_other_bounds);

static void on_transition(void *data, const struct pool_host *host, const struct link_transition *transition)
{
    char text[64];

    (void)data, (void)transition;
    if (host)
        pool_host_state(host);
    pool_explain(&(struct pool_lease){0}, text, sizeof text);
}

static void looked_on(struct scene *scene)
{
    scene->observer = (struct pool_observer){.size = sizeof(struct pool_observer), .transition = on_transition};
    scene->world.options.observer = &scene->observer;
}

static void explained(struct scene *scene)
{
    struct pool_target *pair = scene_pair(scene, "target", NULL);
    char text[256];

    scene_ask_target(scene, 0, pair);
    for (unsigned i = 0; i < 4; i++) {
        pool_explain(&scene->users[0].lease, text, sizeof text);
        if (pair)
            pool_target_explain(pair, text, sizeof text);
        scene_run(scene, 0.001);
    }
}
SCENARIO(explained, .options = looked_on);

/* ---- settings of sockets ---- */

static const struct transport_tcp_options all_settings = {.size = sizeof all_settings,
    .keepalive = true,
    .keepalive_idle = 10,
    .keepalive_interval = 3,
    .keepalive_probes = 4,
    .user_timeout = 20,
    .local = "127.0.0.1:0"};
static struct transport with_settings;

static void set_transport(struct scene *scene)
{
    with_settings = transport_tcp;
    with_settings.config = &all_settings;
    scene->world.host.transport = &with_settings;
}
SCENARIO_OF(sockets_with_settings, .options = set_transport, .play = used_again);
