/* scenes_wait.c - scenarios of waiting: in line, told, cancelled, too late, and for what is full or down. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <limits.h>

#include "tests/faults/scenes.h"

/* ---- in line ---- */

static void waiters(struct scene *scene)
{
    for (unsigned i = 0; i < USERS; i++)
        scene_ask(scene, i, ADDRESS);
}
SCENARIO(waiters);

static void waiters_with_times(struct scene *scene)
{
    for (unsigned i = 0; i < USERS; i++) {
        scene->users[i].lease.timeout = 2; /* a time of its own: a timer of its own */
        scene_ask(scene, i, ADDRESS);
    }
}
SCENARIO(waiters_with_times);

static void waiters_in_vain(struct scene *scene)
{
    scene->natural = true;
    for (unsigned i = 0; i < 6; i++) {
        scene->users[i].lease.timeout = i % 2 ? 1 + i : 0;
        scene->users[i].lease.flags = i % 3 ? POOL_WAIT_FOR_READY : 0;
        scene_ask(scene, i, SILENT);
    }
    scene_run(scene, 6);
}
SCENARIO(waiters_in_vain);

static void waiters_who_give_up(struct scene *scene)
{
    for (unsigned i = 0; i < 6; i++) {
        scene->users[i].lease.timeout = i % 2;
        scene_ask(scene, i, ADDRESS);
    }
    for (unsigned i = 0; i < 6; i += 2)
        scene_cancel(scene, i);
    scene_run(scene, 0.01);
    scene_ask(scene, 0, ADDRESS);
}
SCENARIO(waiters_who_give_up);

static void short_line(struct scene *scene)
{
    scene->world.options.max_line = 2;
    scene->world.options.max_waiting = 3;
}

static void full_lines(struct scene *scene)
{
    scene->ends_leases = true;
    for (unsigned i = 0; i < 6; i++)
        scene_ask(scene, i, i % 2 ? ADDRESS : OTHER);
}
SCENARIO(full_lines, .options = short_line);

/* ---- told ---- */

/* One turn for the answer to come, in which the winner is decided; it is told at its end, or the next. */
static void cancelled_as_it_wins(struct scene *scene)
{
    scene->users[0].lease.timeout = 3;
    scene_ask(scene, 0, ADDRESS);
    scene_ask(scene, 1, ADDRESS);
    for (unsigned i = 0; i < 3; i++) {
        testing_turn(scene->world.t);
        scene_check(scene);
        scene_cancel(scene, i);
    }
    scene_run(scene, 0.1);
    scene_ask(scene, 2, ADDRESS);
}
SCENARIO(cancelled_as_it_wins);

static void one_link(struct scene *scene)
{
    scene->world.host.max_links = 1;
}

/* A holder gives back and its peer resets in that turn: the next in line has won a link that dies before it is told. */
static void won_and_lost(struct scene *scene)
{
    scene->natural = true;
    for (unsigned i = 0; i < 4; i++) {
        scene->users[i].lease.timeout = 4;
        scene_ask(scene, i, ADDRESS);
    }
    scene_run(scene, 0.1);
    scene_exchange(scene);
    testing_peer_cut(scene_peer(scene, ADDRESS), LINK_RESET);
    for (unsigned i = 0; i < 4; i++)
        if (scene->users[i].lease.channel)
            scene_release(scene, i, POOL_REUSE);
    scene_run(scene, 1);
}
SCENARIO(won_and_lost, .options = one_link);

/* ---- down ---- */

static void down_and_up_again(struct scene *scene)
{
    scene->natural = true;
    testing_peer_behave(scene_peer(scene, ADDRESS), TESTING_REFUSE);
    scene_ask(scene, 0, ADDRESS);
    scene->users[1].lease.flags = POOL_WAIT_FOR_READY;
    scene_ask(scene, 1, ADDRESS);
    scene_run(scene, 1);
    scene_ask(scene, 2, ADDRESS);
    testing_peer_behave(scene_peer(scene, ADDRESS), TESTING_ACCEPT);
    scene_run(scene, 3);
    scene_ask(scene, 3, ADDRESS);
}
SCENARIO(down_and_up_again);

static void backoff_forgotten(struct scene *scene)
{
    scene->natural = true;
    testing_peer_behave(scene_peer(scene, ADDRESS), TESTING_REFUSE);
    scene->users[0].lease.flags = POOL_WAIT_FOR_READY;
    scene_ask(scene, 0, ADDRESS);
    scene_run(scene, 1);
    testing_peer_behave(scene_peer(scene, ADDRESS), TESTING_ACCEPT);
    if (scene->world.pool)
        pool_reset_backoff(scene->world.pool);
    scene_run(scene, 0.1);
}
SCENARIO(backoff_forgotten);

/* Held, idle and under way; those that cannot be asked are replaced. */
static void network_changed(struct scene *scene)
{
    scene->natural = true;
    scene_ask(scene, 0, ADDRESS);
    scene_ask(scene, 1, ADDRESS);
    scene_run(scene, 0.1);
    scene_release(scene, 1, POOL_REUSE);
    scene_ask(scene, 2, SILENT);
    scene_run(scene, 0.1);
    if (scene->world.pool)
        pool_network_changed(scene->world.pool);
    scene_ask(scene, 1, ADDRESS);
    scene_run(scene, 1);
    testing_suspend(scene->world.t, 100);
    scene_run(scene, 8);
    scene_ask(scene, 3, ADDRESS);
}
SCENARIO(network_changed);

static void all_peers_fail(struct scene *scene)
{
    static const char *const bad[] = {REFUSES, SILENT, CLOSES, RESETS, "unix:/nobody"};

    scene->natural = true;
    scene->natural_errno = ENOENT;
    for (unsigned i = 0; i < 5; i++)
        scene_ask(scene, i, bad[i]);
    scene_run(scene, 8);
}
SCENARIO(all_peers_fail);

/* ---- room ---- */

static void one_link_in_all(struct scene *scene)
{
    scene->world.options.max_links = 1;
}

static void room_is_made(struct scene *scene)
{
    scene->natural = true;
    scene_ask(scene, 0, ADDRESS);
    scene_run(scene, 0.1);
    scene_give_all_back(scene);
    scene_ask(scene, 1, OTHER); /* ADDRESS's idle link makes room */
    scene_run(scene, 0.1);
    scene_ask(scene, 2, ADDRESS); /* it starves */
    scene_ask(scene, 3, THIRD);
    scene_run(scene, 0.1);
    scene_give_all_back(scene);
    scene_ask(scene, 4, THIRD);
}
SCENARIO(room_is_made, .options = one_link_in_all);

static void few_descriptors(struct scene *scene)
{
    scene->natural = true;
    scene_ask(scene, 0, ADDRESS);
    scene_run(scene, 0.1);
    scene_give_all_back(scene);
    testing_limit_descriptors(scene->world.t, 1);
    scene_ask(scene, 1, OTHER);
    scene_run(scene, 1);
    testing_limit_descriptors(scene->world.t, UINT_MAX);
}
SCENARIO(few_descriptors);

static void few_attempts(struct scene *scene)
{
    scene->world.options.max_connecting = 1;
    scene->world.host.first_connecting = 1;
}
SCENARIO_OF(one_attempt_at_a_time, .options = few_attempts, .play = waiters);

static void fresh_and_elsewhere(struct scene *scene)
{
    struct pool_target *pair = scene_pair(scene, "target", NULL);

    scene->natural = true;
    for (unsigned i = 0; i < 3; i++)
        scene_ask_target(scene, i, pair);
    scene_run(scene, 0.1);
    scene_exchange(scene);
    scene_give_all_back(scene);
    scene->users[3].lease.flags = POOL_FRESH;
    scene_ask_target(scene, 3, pair);
    scene->users[4].lease.avoid = pair ? pool_target_host(pair, 0) : NULL;
    scene_ask_target(scene, 4, pair);
    scene->users[5].lease.flags = POOL_FRESH;
    scene_ask(scene, 5, ADDRESS);
    scene_run(scene, 0.1);
    scene->users[4].lease.avoid = NULL;
}
SCENARIO(fresh_and_elsewhere, .options = one_link);
