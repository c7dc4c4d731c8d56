/* scenes_target.c - scenarios of targets: made, changed, sharing hosts, drained, removed. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>

#include "tests/faults/scenes.h"

static void target(struct scene *scene)
{
    scene_ask_target(scene, 0, scene_pair(scene, "target", NULL));
}
SCENARIO(target);

static void target_first_of_two(struct scene *scene)
{
    struct pool_target *pair = scene_pair(scene, "target", &pool_pick_first);

    scene->natural = true;
    scene_ask_target(scene, 0, pair);
    scene_run(scene, 1);
    testing_peer_behave(scene_peer(scene, ADDRESS), TESTING_REFUSE);
    testing_peer_cut(scene_peer(scene, ADDRESS), LINK_RESET);
    scene_run(scene, 1);
    scene_give_all_back(scene);
    scene_ask_target(scene, 1, pair);
}
SCENARIO(target_first_of_two);

static void target_updated(struct scene *scene)
{
    struct pool_target *pair = scene_pair(scene, "target", NULL);

    scene_ask_target(scene, 0, pair);
    scene_run(scene, 0.01);
    scene_update(scene, pair, (const char *const[]){OTHER, THIRD}, 2);
    scene_ask_target(scene, 1, pair);
}
SCENARIO(target_updated);

static void target_updated_while_it_opens(struct scene *scene)
{
    struct pool_target *pair = scene_pair(scene, "target", NULL);

    testing_peer_delay(scene_peer(scene, ADDRESS), 0.1, 0);
    scene_ask_target(scene, 0, pair);
    scene_ask_target(scene, 1, pair);
    scene_run(scene, 0.05);
    scene_update(scene, pair, (const char *const[]){THIRD}, 1);
}
SCENARIO(target_updated_while_it_opens);

static void target_of_the_same_twice(struct scene *scene)
{
    struct pool_target *pair = scene_pair(scene, "target", NULL);

    scene_update(scene, pair, (const char *const[]){OTHER, OTHER, ADDRESS, OTHER}, 4);
    scene_ask_target(scene, 0, pair);
}
SCENARIO(target_of_the_same_twice);

static void target_emptied(struct scene *scene)
{
    struct pool_target *pair = scene_pair(scene, "target", NULL);

    scene->ends_leases = scene->natural = true;
    scene_ask_target(scene, 0, pair);
    scene_run(scene, 0.01);
    scene_update(scene, pair, NULL, 0);
    scene->users[1].lease.flags = POOL_WAIT_FOR_READY;
    scene_ask_target(scene, 1, pair);
    scene_update(scene, pair, (const char *const[]){THIRD}, 1);
}
SCENARIO(target_emptied);

static void target_without_a_list(struct scene *scene)
{
    struct pool_target_options options;
    struct pool_target *unknown;

    pool_target_options_init(&options);
    unknown = scene_target(scene, "target", &options);
    scene_ask_target(scene, 0, unknown);
    scene_run(scene, 0.01);
    scene_update(scene, unknown, (const char *const[]){ADDRESS, OTHER, THIRD}, 3);
}
SCENARIO(target_without_a_list);

static void target_with_options(struct scene *scene)
{
    struct pool_endpoint endpoints[2];
    struct pool_target_options options;
    struct pool_host_options host = scene->world.host;

    host.min_links = 1;
    host.max_links = 2;
    fake_endpoints(endpoints, (const char *const[]){OTHER, THIRD}, 2);
    pool_target_options_init(&options);
    options.endpoints = endpoints;
    options.n_endpoints = 2;
    options.host = &host;
    options.wait_timeout = 3;
    scene_ask_target(scene, 0, scene_target(scene, "target", &options));
}
SCENARIO(target_with_options);

/* A host of the list has other options already: refused, and nothing is left of the hosts before it. */
static void target_refused(struct scene *scene)
{
    struct pool_host_options host = scene->world.host;
    struct pool_endpoint endpoints[2];
    struct pool_target_options options;

    scene_host(scene, OTHER);
    host.max_links = 3;
    fake_endpoints(endpoints, (const char *const[]){THIRD, OTHER}, 2);
    pool_target_options_init(&options);
    options.endpoints = endpoints;
    options.n_endpoints = 2;
    options.host = &host;
    if (scene->world.pool && pool_next_host(scene->world.pool, NULL))
        cr_assert(eq(ptr, pool_target_add(scene->world.pool, "target", &options), NULL));
    scene_check(scene);
}
SCENARIO(target_refused);

static void targets_that_share_hosts(struct scene *scene)
{
    struct pool_target *one = scene_pair(scene, "one", NULL), *other = scene_pair(scene, "other", &pool_pick_first);

    for (unsigned i = 0; i < 6; i++)
        scene_ask_target(scene, i, i % 2 ? one : other);
    scene_ask(scene, 6, ADDRESS);
    scene_run(scene, 0.01);
    scene_update(scene, one, (const char *const[]){THIRD, ADDRESS}, 2);
    pool_target_remove(other);
    scene_check(scene);
}
SCENARIO(targets_that_share_hosts);

static void target_removed_and_back(struct scene *scene)
{
    struct pool_target *pair = scene_pair(scene, "target", NULL);

    scene->ends_leases = true;
    scene_ask_target(scene, 0, pair);
    scene_run(scene, 0.01);
    scene_ask_target(scene, 1, pair);
    pool_target_remove(pair);
    scene_ask_target(scene, 2, scene_pair(scene, "target", &pool_pick_first));
}
SCENARIO(target_removed_and_back);

static void on_drained(struct pool_target *drained, void *data)
{
    (void)data;
    pool_target_remove(drained);
}

static void target_drained(struct scene *scene)
{
    struct pool_target *pair = scene_pair(scene, "target", NULL);

    scene->ends_leases = true;
    scene_ask_target(scene, 0, pair);
    scene_run(scene, 0.01);
    scene_ask_target(scene, 1, pair);
    if (pair)
        cr_assert(eq(int, pool_target_drain(pair, 1, on_drained, NULL), 0));
    scene_run(scene, 2);
}
SCENARIO(target_drained);

static void target_started(struct scene *scene)
{
    struct pool_target *one = scene_pair(scene, "one", NULL), *other = scene_pair(scene, "other", &pool_pick_first);

    if (one)
        cr_assert(eq(int, pool_target_start(one), 0));
    if (other)
        cr_assert(eq(int, pool_target_start(other), 0));
    scene_run(scene, 1);
    scene_ask_target(scene, 0, one);
    scene_ask_target(scene, 1, other);
}
SCENARIO(target_started);

/* ---- a policy of the user's own, with a state ---- */

static int pick_last(const struct pool_pick *pick, const struct pool_lease *lease, uint64_t draw)
{
    (void)lease, (void)draw;
    for (size_t i = pick->n; i-- > 0;)
        if (pick->can(pick->hosts[i]) != POOL_HOST_DOWN)
            return (int)i;
    return POOL_PICK_DOWN;
}

static void count_changes(const struct pool_pick *pick)
{
    ++*(unsigned *)pick->state;
}

static const struct pool_picker last = {
    .size = sizeof last, .name = "last", .state_size = 24, .pick = pick_last, .changed = count_changes};

static void target_of_an_own_picker(struct scene *scene)
{
    struct pool_target *pair = scene_pair(scene, "target", &last);

    scene_ask_target(scene, 0, pair);
    scene_run(scene, 0.01);
    scene_update(scene, pair, (const char *const[]){ADDRESS, OTHER, THIRD}, 3);
    scene_ask_target(scene, 1, pair);
}
SCENARIO(target_of_an_own_picker);

static void many_targets(struct scene *scene)
{
    char name[32];

    for (unsigned i = 0; i < 10; i++) {
        snprintf(name, sizeof name, "target%u", i);
        scene_ask_target(scene, i, scene_pair(scene, name, i % 2 ? &pool_pick_first : NULL));
    }
}
SCENARIO(many_targets);
