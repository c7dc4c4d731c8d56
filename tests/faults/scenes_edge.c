/* scenes_edge.c - scenarios at the edge: whatever comes next makes a heap or a table grow, in this call and no other.
 *
 * A heap grows when one more is held than it has room for, and each caller that holds is to meet that. Before the
 * faults begin, leases in line with times of their own fill the timers up to the edge, or hosts the other two heaps. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "pool/call.h"
#include "tests/faults/scenes.h"

static unsigned left(const struct link_heap *heap)
{
    return heap->room ? heap->room - 1 - heap->held : 0;
}

/* Leases at an address that takes no connection, each with a timer, until only `spare` more timers have room. */
static void fill_timers(struct scene *scene, unsigned spare)
{
    struct link_heap *timers = &scene->world.pool->core.timers;

    scene_ask(scene, USERS - 1, SILENT);
    scene_run(scene, 0.01);
    for (unsigned i = 4; left(timers) != spare; i++) {
        cr_assert(lt(uint, i, USERS - 1));
        scene->users[i].lease.timeout = 2.5;
        scene->users[i].lease.flags = POOL_WAIT_FOR_READY;
        scene_ask(scene, i, SILENT);
    }
    scene->natural = true;
}

static void leave_0(struct scene *scene)
{
    fill_timers(scene, 0);
}
static void leave_1(struct scene *scene)
{
    fill_timers(scene, 1);
}
static void leave_2(struct scene *scene)
{
    fill_timers(scene, 2);
}

static void a_host(struct scene *scene)
{
    scene_ask_host(scene, 0, scene_host(scene, ADDRESS));
}
SCENARIO_OF(edge_first_timer_of_a_host, .before = leave_0, .play = a_host);
SCENARIO_OF(edge_second_timer_of_a_host, .before = leave_1, .play = a_host);
SCENARIO_OF(edge_timer_of_a_link, .before = leave_2, .play = a_host);

static void a_target(struct scene *scene)
{
    struct pool_target_options options;

    pool_target_options_init(&options);
    scene_ask_target(scene, 0, scene_target(scene, "target", &options));
    scene->ends_leases = true;
}
SCENARIO_OF(edge_first_timer_of_a_target, .before = leave_0, .play = a_target);
SCENARIO_OF(edge_second_timer_of_a_target, .before = leave_1, .play = a_target);

static void a_lease(struct scene *scene)
{
    scene->users[0].lease.timeout = 2;
    scene_ask(scene, 0, SILENT);
}
SCENARIO_OF(edge_timer_of_a_lease, .before = leave_0, .play = a_lease);

/* ---- a winner's way back to its line ---- */

/* One holder of the one link there may be, and one more in line for it. */
static void one_link(struct scene *scene)
{
    scene->world.host.max_links = 1;
}

static void hold_and_wait(struct scene *scene)
{
    scene_ask(scene, 0, ADDRESS);
    scene_run(scene, 0.1);
    scene->users[1].lease.timeout = 4;
    scene_ask(scene, 1, ADDRESS);
    fill_timers(scene, 0);
}

/* Its timer is given up when it wins; somebody else takes that, and then the link dies before it was told. */
static void back_in_line(struct scene *scene)
{
    struct link *link = channel_link(scene->users[0].lease.channel);

    scene_release(scene, 0, POOL_REUSE);
    a_lease(scene);
    link__end(link, LINK_RESET, 0);
    scene_check(scene);
    scene_run(scene, 1);
}
SCENARIO_OF(edge_timer_of_a_winner, .options = one_link, .before = hold_and_wait, .play = back_in_line);

/* ---- a call that is due before those made earlier, and a group: each has a timer of its own ---- */

static struct pool_call patient, hasty;
static struct pool_fanout group;
static unsigned told;

static void on_call(struct pool_call *call)
{
    (void)call;
    told++;
}

static void on_group(struct pool_fanout *over)
{
    (void)over;
    told++;
}

static unsigned timers_of_calls(void)
{
    bool has_one = hasty.status == POOL_PENDING && call__state(&hasty)->has_timer;

    return has_one + (group.status == POOL_PENDING);
}

static void a_call_before(struct scene *scene)
{
    patient = (struct pool_call){.to = SILENT, .timeout = 3, .done = on_call};
    hasty = (struct pool_call){.to = SILENT, .timeout = 1, .done = on_call};
    group = (struct pool_fanout){.calls = &hasty, .n = 1, .timeout = 1, .done = on_group};
    told = 0;
    fill_timers(scene, 0);
    scene->own_timers = timers_of_calls;
    cr_assert(eq(int, pool_call(scene->world.pool, &patient), POOL_PENDING));
}

static void expect_told(struct scene *scene, int status)
{
    cr_assert(status == POOL_PENDING || status == LINKPOOL_ENOMEM);
    scene_run(scene, 5);
    cr_assert(eq(uint, told, 1u + (status == POOL_PENDING)));
}

static void a_hasty_call(struct scene *scene)
{
    int status = pool_call(scene->world.pool, &hasty);

    expect_told(scene, status);
}
SCENARIO_OF(edge_timer_of_a_call, .before = a_call_before, .play = a_hasty_call);

static void a_group(struct scene *scene)
{
    int status;

    hasty.timeout = INFINITY;
    hasty.done = NULL;
    status = pool_fanout(scene->world.pool, &group);
    expect_told(scene, status);
}
SCENARIO_OF(edge_timer_of_a_group, .before = a_call_before, .play = a_group);

/* ---- the other heaps, and the tables ---- */

static void nth_host(struct scene *scene, unsigned i)
{
    char text[32];

    snprintf(text, sizeof text, "10.1.%u.%u:80", i / 200, i % 200 + 1);
    scene_host(scene, text);
}

/* Each host is held in both. */
static void fill_hosts(struct scene *scene)
{
    for (unsigned i = 0; i < 4 || left(&scene->world.pool->coldest) != 0; i++)
        nth_host(scene, i);
}
SCENARIO_OF(edge_heaps_of_a_host, .before = fill_hosts, .play = a_host);
SCENARIO_OF(edge_heap_of_a_target, .before = fill_hosts, .play = a_target);

/* A target holds a place where lines starve, and none among the cold hosts: so that the second grows on its own. */
static void fill_coldest(struct scene *scene)
{
    struct pool_target_options options;

    pool_target_options_init(&options);
    scene_target(scene, "one more line", &options);
    fill_hosts(scene);
}

static void some_hosts(struct scene *scene)
{
    for (unsigned i = 0; i < 3; i++)
        nth_host(scene, 300 + i);
    scene_ask(scene, 0, ADDRESS);
}
SCENARIO_OF(edge_coldest_of_a_host, .before = fill_coldest, .play = some_hosts);

/* uthash makes twice as many buckets when one has more than ten. Which of them will meet that shows in another pool. */
static struct pool *try_pool(struct scene *scene)
{
    struct pool *pool = pool_new_on(testing_driver(scene->world.t), &scene->world.options);

    cr_assert(ne(ptr, pool, NULL));
    return pool;
}

static bool has_grown(const UT_hash_table *table)
{
    return table->num_buckets > HASH_INITIAL_NUM_BUCKETS;
}

static void add_targets(struct pool *pool, unsigned from, unsigned to)
{
    struct pool_target_options options;
    char name[32];

    pool_target_options_init(&options);
    for (unsigned i = from; i < to; i++) {
        snprintf(name, sizeof name, "target%u", i);
        if (!pool_target_add(pool, name, &options))
            cr_assert(eq(int, errno, ENOMEM));
    }
}

static void fill_names(struct scene *scene)
{
    struct pool *pool = try_pool(scene);

    add_targets(pool, 0, 1);
    for (scene->edge = 1; !has_grown(pool->names->hh.tbl); scene->edge++)
        add_targets(pool, scene->edge, scene->edge + 1);
    pool_free(pool);
    add_targets(scene->world.pool, 0, scene->edge - 1);
}

static void one_more_name(struct scene *scene)
{
    add_targets(scene->world.pool, scene->edge - 1, scene->edge);
    scene_ask(scene, 0, ADDRESS);
}
SCENARIO_OF(edge_table_of_names, .before = fill_names, .play = one_more_name);

static void add_hosts(struct pool *pool, unsigned from, unsigned to)
{
    char text[32];

    for (unsigned i = from; i < to; i++) {
        snprintf(text, sizeof text, "10.1.%u.%u:80", i / 200, i % 200 + 1);
        if (!pool_host(pool, text))
            cr_assert(eq(int, errno, ENOMEM));
    }
}

static void fill_table_of_hosts(struct scene *scene)
{
    struct pool *pool = try_pool(scene);

    add_hosts(pool, 0, 1);
    for (scene->edge = 1; !has_grown(pool->hosts->hh.tbl); scene->edge++)
        add_hosts(pool, scene->edge, scene->edge + 1);
    pool_free(pool);
    add_hosts(scene->world.pool, 0, scene->edge - 1);
}

static void one_more_host(struct scene *scene)
{
    add_hosts(scene->world.pool, scene->edge - 1, scene->edge);
    scene_ask(scene, 0, ADDRESS);
}
SCENARIO_OF(edge_table_of_hosts, .before = fill_table_of_hosts, .play = one_more_host);

/* ---- the table of attempts that outside code keeps ---- */

static int keep(struct protocol_link *pl)
{
    protocol_attempt(pl); /* 0 without memory: nobody uses it here */
    return 0;
}

static const struct protocol keeps = {.size = sizeof keeps, .name = "keeps", .start = keep};

static void many_attempts(struct scene *scene)
{
    scene->world.options.max_links = 2000;
    scene->world.options.max_connecting = 2000;
    scene->world.host.max_links = 600;
    scene->world.host.max_connecting = 600;
    scene->world.host.first_connecting = 600;
    scene->world.host.connect_timeout = 200;
}

/* So many links that stay in their handshake, each with a handle. */
static void keep_up(struct scene *scene, struct pool *pool, unsigned n)
{
    struct pool_endpoint endpoint = {.size = sizeof endpoint, .address = ADDRESS, .protocol = &keeps};
    struct pool_host *host = pool_host_for(pool, &endpoint, NULL);
    struct pool_host_options options = scene->world.host;

    options.min_links = n;
    if (!host || pool_host_set_options(host, &options))
        cr_assert(ne(int, scene->fault.at, 0));
    pool_host_drop(host);
    fake_run(&scene->world, 0.001);
}

static void fill_attempts(struct scene *scene)
{
    struct pool *pool = try_pool(scene);
    struct pool_endpoint endpoint = {.size = sizeof endpoint, .address = ADDRESS, .protocol = &keeps};

    cr_assert(ne(ptr, pool_host_for(pool, &endpoint, NULL), NULL));
    keep_up(scene, pool, 1);
    scene->looks_for = 2 * HASH_INITIAL_NUM_BUCKETS * sizeof(UT_hash_bucket); /* the table lies in a .c of its own */
    for (scene->edge = 1; !scene->has_found; scene->edge++)
        keep_up(scene, pool, scene->edge + 1);
    pool_free(pool);
    cr_assert(ne(ptr, pool_host_for(scene->world.pool, &endpoint, NULL), NULL));
    for (unsigned i = 1; i < scene->edge; i++)
        keep_up(scene, scene->world.pool, i);
}

static void one_more_attempt(struct scene *scene)
{
    keep_up(scene, scene->world.pool, scene->edge);
    keep_up(scene, scene->world.pool, 0);
    scene->serves = OTHER;
}
SCENARIO_OF(edge_table_of_attempts, .options = many_attempts, .before = fill_attempts, .play = one_more_attempt);
