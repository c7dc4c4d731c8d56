/* scenes_host.c - scenarios of hosts: made by text, by handle, with options, going and coming back. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>

#include "tests/faults/scenes.h"

/* ---- by text ---- */

static void by_text(struct scene *scene)
{
    scene_ask(scene, 0, ADDRESS);
    scene_ask(scene, 1, OTHER);
}
SCENARIO(by_text);

static void by_unix_path(struct scene *scene)
{
    scene_ask(scene, 0, SOCKET);
    scene_ask(scene, 1, SOCKET);
}
SCENARIO(by_unix_path);

/* The same host by texts that are spelled in other ways: a name each. */
static void by_many_spellings(struct scene *scene)
{
    scene_ask(scene, 0, SIXTH);
    scene_ask(scene, 1, "[FD00::1]:80");
    scene_ask(scene, 2, "[fd00:0::1]:80");
    scene_run(scene, 0.01);
    scene_ask(scene, 3, "[fd00:0:0:0:0:0:0:1]:80");
}
SCENARIO(by_many_spellings);

static void few_names(struct scene *scene)
{
    scene->world.options.max_names = 1;
}
SCENARIO_OF(by_text_that_is_not_remembered, .options = few_names, .play = by_text);

static void many_hosts(struct scene *scene)
{
    char text[32];

    for (unsigned i = 0; i < 10; i++) {
        snprintf(text, sizeof text, "10.0.0.%u:80", i % 3 + 1);
        scene_ask(scene, i, text);
        snprintf(text, sizeof text, "10.0.1.%u:80", i);
        scene_host(scene, text);
    }
}
SCENARIO(many_hosts);

static void hosts_that_go(struct scene *scene)
{
    scene_ask(scene, 0, ADDRESS);
    scene_ask(scene, 1, OTHER);
    scene_run(scene, 1);
    scene_give_all_back(scene);
    scene_run(scene, 500); /* idle_timeout, then host_timeout: both are forgotten */
    scene_ask(scene, 0, ADDRESS);
}
SCENARIO(hosts_that_go);

/* ---- by handle ---- */

static void by_handle(struct scene *scene)
{
    struct pool_host *host = scene_host(scene, ADDRESS);

    scene_ask_host(scene, 0, host);
    scene_run(scene, 0);
    pool_host_drop(host);
}
SCENARIO(by_handle);

static void with_options(struct scene *scene)
{
    struct pool_endpoint endpoint = {.size = sizeof endpoint, .address = ADDRESS, .tag = "of its own"};
    struct pool_host_options options = scene->world.host;
    struct pool_host *host, *same;

    options.max_links = 7;
    options.min_links = 2;
    host = scene_host_for(scene, &endpoint, &options);
    same = scene_host_for(scene, &endpoint, &options);
    if (host && same)
        cr_assert(eq(ptr, host, same));
    scene_ask_host(scene, 0, host);
}
SCENARIO(with_options);

static void with_options_changed(struct scene *scene)
{
    struct pool_host *host = scene_host(scene, ADDRESS);
    struct pool_host_options options = scene->world.host;

    for (unsigned i = 0; i < 3; i++) {
        options.max_links = 2 + i;
        options.max_age = 5 * (i + 1);
        if (host && pool_host_set_options(host, &options))
            cr_assert(eq(int, pool_host_set_options(host, &options) == 0 || scene->fault.from_then, 1));
        scene_ask_host(scene, i, host);
        scene_run(scene, 0.01);
    }
}
SCENARIO(with_options_changed);

static void with_all_parts(struct scene *scene)
{
    struct pool_endpoint endpoint = {.size = sizeof endpoint,
        .address = ADDRESS,
        .tag = "tenant",
        .server_name = "a.example",
        .local = "127.0.0.1:0"};

    scene_ask_host(scene, 0, scene_host_for(scene, &endpoint, NULL));
    endpoint.tag = "another tenant";
    scene_ask_host(scene, 1, scene_host_for(scene, &endpoint, NULL));
}
SCENARIO(with_all_parts);

static void keep_up_three(struct scene *scene)
{
    scene->world.host.min_links = 3;
}

static void kept_up(struct scene *scene)
{
    struct pool_host *host = scene_host(scene, ADDRESS);

    scene_run(scene, 3);
    testing_peer_cut(scene_peer(scene, ADDRESS), LINK_CLOSED_BY_PEER);
    scene_run(scene, 5);
    scene_ask_host(scene, 0, host);
}
SCENARIO(kept_up, .options = keep_up_three);

/* ---- out of service, and back ---- */

static void drained_and_started(struct scene *scene)
{
    struct pool_host *host = scene_host(scene, ADDRESS);

    scene->ends_leases = true;
    scene_ask_host(scene, 0, host);
    scene_run(scene, 0.01);
    if (host)
        cr_assert(eq(int, pool_host_drain(host, 1), 0));
    scene_run(scene, 2);
    scene_ask_host(scene, 1, host);
    if (host)
        cr_assert(eq(int, pool_host_start(host), 0));
    scene_run(scene, 1);
    scene_ask_host(scene, 2, host);
}
SCENARIO(drained_and_started);

static void recycled(struct scene *scene)
{
    struct pool_host *host = scene_host(scene, ADDRESS);

    for (unsigned i = 0; i < 4; i++)
        scene_ask_host(scene, i, host);
    scene_run(scene, 0.1);
    if (host)
        cr_assert(eq(int, pool_host_recycle(host, 2), 0));
    scene_run(scene, 3);
    scene_exchange(scene);
    scene_give_all_back(scene);
    for (unsigned i = 0; i < 4; i++)
        scene_ask_host(scene, i, host);
}
SCENARIO(recycled);

static void give_up_soon(struct scene *scene)
{
    scene->world.backoff.max_attempts = 2;
}

static void offline_and_started(struct scene *scene)
{
    struct pool_host *host = scene_host(scene, ADDRESS);

    scene->natural = true;
    testing_peer_behave(scene_peer(scene, ADDRESS), TESTING_REFUSE);
    scene->users[0].lease.flags = POOL_WAIT_FOR_READY;
    scene_ask_host(scene, 0, host);
    scene_run(scene, 10);
    testing_peer_behave(scene_peer(scene, ADDRESS), TESTING_ACCEPT);
    if (host)
        cr_assert(eq(int, pool_host_start(host), 0));
    scene_run(scene, 1);
    scene_ask_host(scene, 1, host);
    scene->serves = OTHER; /* without memory it may be out of service again */
}
SCENARIO(offline_and_started, .options = give_up_soon);
