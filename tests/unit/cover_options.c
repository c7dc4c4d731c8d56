/* cover_options.c - what is refused, member by member: options, endpoints, targets, envs, times. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <ev.h>
#include <math.h>
#include <string.h>
#include <sys/resource.h>

#include "tests/fakes/world.h"

#define ADDRESS "10.0.0.1:80"

static const double too_long = 4e8; /* seconds: over ten years, and not for ever */

/* ---- the env ---- */

enum {
    CALLS = 11 /* of struct linkpool_env, after `data` */
};

Test(cover_options, an_env_that_lacks_any_of_its_calls_is_refused)
{
    struct pool_options options;
    struct linkpool_env env;
    char why[128];

    for (int i = 0; i < CALLS; i++) {
        env = linkpool_env_system;
        memset(
            (char *)&env + offsetof(struct linkpool_env, socket) + (size_t)i * sizeof env.socket, 0, sizeof env.socket);
        pool_options_init(&options);
        options.env = &env;
        cr_assert(eq(int, pool_options_check(&options, why, sizeof why), LINKPOOL_EINVAL));
        cr_assert(ne(ptr, strstr(why, "env"), NULL));
    }
    options.env = NULL;
    cr_assert(eq(int, pool_options_check(&options, why, sizeof why), LINKPOOL_EINVAL));
}

/* ---- the options of a host that is there already ---- */

static double one_second(const struct backoff_policy *policy, const struct backoff_history *history, double draw)
{
    (void)policy, (void)history, (void)draw;
    return 1;
}

enum {
    HOST_MEMBERS = 14,
    BACKOFF_MEMBERS = 11,
    HEARTBEAT_MEMBERS = 7
};

static void change_host(struct pool_host_options *options, int i)
{
    double *const times[] = {&options->idle_timeout, &options->max_age, &options->connect_timeout,
        &options->reset_timeout, &options->drain_timeout};
    unsigned *const counts[] = {&options->max_links, &options->min_links, &options->first_connecting,
        &options->max_connecting, &options->max_uses};

    if (i < 5)
        ++*counts[i];
    else if (i < 10)
        *times[i - 5] += 1;
    else if (i == 10)
        options->max_channels++;
    else if (i == 11)
        options->max_unanswered++;
    else if (i == 12)
        options->read_timeout += 1;
    else
        options->spread_links = true;
}

static void change_backoff(struct backoff_policy *policy, int i)
{
    double *const numbers[] = {&policy->base, &policy->factor, &policy->cap, &policy->floor, &policy->spread,
        &policy->stable_after, &policy->reconnect_spread};

    if (i < 7)
        *numbers[i] += 0.01;
    else if (i == 7)
        policy->jitter = BACKOFF_NONE;
    else if (i == 8)
        policy->max_attempts++;
    else if (i == 9)
        policy->delay = one_second;
    else
        policy->data = policy;
}

static void change_heartbeat(struct heartbeat_policy *policy, int i)
{
    double *const numbers[] = {
        &policy->interval, &policy->timeout, &policy->watch_interval, &policy->min, &policy->max, &policy->jitter};

    if (i < 6)
        *numbers[i] += 0.01;
    else
        policy->misses++;
}

static struct pool_host *with_options(struct fake_world *world, const struct pool_host_options *options)
{
    struct pool_endpoint endpoint = {.size = sizeof endpoint, .address = ADDRESS};

    errno = 0;
    return pool_host_for(world->pool, &endpoint, options);
}

Test(cover_options, any_other_option_of_a_host_that_is_there_is_refused)
{
    struct fake_world world;

    fake_world_begin(&world);
    world.host.heartbeat = &heartbeat_adaptive; /* each of its members counts */
    fake_world_open(&world);
    cr_assert(ne(ptr, with_options(&world, &world.host), NULL));
    cr_assert(ne(ptr, with_options(&world, &world.host), NULL));
    for (int i = 0; i < HOST_MEMBERS; i++) {
        struct pool_host_options options = world.host;
        change_host(&options, i);
        cr_assert(eq(ptr, with_options(&world, &options), NULL));
        cr_assert(eq(int, errno, EEXIST));
    }
    for (int i = 0; i < BACKOFF_MEMBERS; i++) {
        struct pool_host_options options = world.host;
        struct backoff_policy policy = *world.host.backoff;
        options.backoff = &policy;
        change_backoff(&policy, i);
        cr_assert(eq(ptr, with_options(&world, &options), NULL));
        cr_assert(eq(int, errno, EEXIST));
    }
    for (int i = 0; i < HEARTBEAT_MEMBERS; i++) {
        struct pool_host_options options = world.host;
        struct heartbeat_policy policy = heartbeat_adaptive;
        options.heartbeat = &policy;
        change_heartbeat(&policy, i);
        cr_assert(eq(ptr, with_options(&world, &options), NULL));
        cr_assert(eq(int, errno, EEXIST));
    }
    fake_world_end(&world);
}

/* ---- endpoints and targets ---- */

static void is_refused(struct fake_world *world, const struct pool_endpoint *endpoint, const char *why)
{
    cr_assert(eq(ptr, pool_host_for(world->pool, endpoint, NULL), NULL));
    cr_assert(eq(int, errno, EINVAL));
    cr_assert(ne(ptr, strstr(pool_last_refusal(world->pool), why), NULL), "%s", pool_last_refusal(world->pool));
}

Test(cover_options, endpoints_with_a_wrong_part_are_refused_by_its_name)
{
    static char long_text[300];
    struct transport without_open = transport_tcp;
    struct protocol deaf = {.size = sizeof deaf, .name = "deaf", .flags = PROTOCOL_SHARED};
    struct fake_world world;

    memset(long_text, 'x', sizeof long_text - 1);
    without_open.open = NULL;
    fake_world_begin(&world);
    fake_world_open(&world);
    is_refused(&world, NULL, "no endpoint");
    is_refused(&world, &(struct pool_endpoint){.size = sizeof(struct pool_endpoint)}, "no address");
    is_refused(&world,
        &(struct pool_endpoint){.size = sizeof(struct pool_endpoint), .address = ADDRESS, .tag = long_text}, "tag");
    is_refused(&world,
        &(struct pool_endpoint){.size = sizeof(struct pool_endpoint), .address = ADDRESS, .server_name = long_text},
        "server_name");
    is_refused(&world,
        &(struct pool_endpoint){.size = sizeof(struct pool_endpoint), .address = ADDRESS, .local = long_text}, "local");
    is_refused(&world,
        &(struct pool_endpoint){.size = sizeof(struct pool_endpoint), .address = ADDRESS, .transport = &without_open},
        "transport");
    is_refused(&world,
        &(struct pool_endpoint){.size = sizeof(struct pool_endpoint), .address = ADDRESS, .protocol = &deaf},
        "protocol");
    fake_world_end(&world);
}

static void target_is_refused(const struct pool_target_options *options, const char *why)
{
    char text[200];

    cr_assert(eq(int, pool_target_options_check(options, text, sizeof text), LINKPOOL_EINVAL));
    cr_assert(ne(ptr, strstr(text, why), NULL), "%s", text);
}

Test(cover_options, targets_with_a_wrong_option_are_refused_by_its_name)
{
    struct pool_picker picker = pool_pick_first;
    struct pool_target_options options, right;
    struct pool_host_options host;

    pool_target_options_init(&right);
    options = right;
    options.picker = NULL;
    target_is_refused(&options, "picker");
    options.picker = &picker;
    picker.size = 8;
    target_is_refused(&options, "picker.size");
    picker.size = sizeof picker;
    picker.pick = NULL;
    target_is_refused(&options, "pick");
    options = right;
    options.n_endpoints = 1;
    target_is_refused(&options, "n_endpoints");
    options = right;
    options.wait_timeout = -1;
    target_is_refused(&options, "wait_timeout");
    options = right;
    pool_host_options_init(&host);
    host.max_links = 0;
    options.host = &host;
    target_is_refused(&options, "max_links");
}

static void host_is_refused(const struct pool_host_options *options, const char *why)
{
    char text[200];

    cr_assert(eq(int, pool_host_options_check(options, text, sizeof text), LINKPOOL_EINVAL));
    cr_assert(ne(ptr, strstr(text, why), NULL), "%s", text);
}

Test(cover_options, counts_of_a_host_have_their_bounds)
{
    struct pool_host_options options;

    pool_host_options_init(&options);
    options.max_connecting = 0;
    host_is_refused(&options, "max_connecting is 0; it is from 1 to 65535");
    pool_host_options_init(&options);
    options.max_channels = UINT32_MAX;
    host_is_refused(&options, "max_channels is 4294967295; it is from 0 to 2147483647");
}

/* ---- the pool ---- */

Test(cover_options, the_time_of_a_host_that_nobody_needs_has_its_bounds)
{
    struct pool_options options;
    char why[128];

    pool_options_init(&options);
    options.host_timeout = 0;
    cr_assert(eq(int, pool_options_check(&options, why, sizeof why), LINKPOOL_EINVAL));
    cr_assert(ne(ptr, strstr(why, "host_timeout"), NULL));
}

Test(cover_options, a_pool_is_not_made_without_a_driver_or_of_wrong_options)
{
    struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
    struct pool_options options;

    pool_options_init(&options);
    cr_assert(eq(ptr, pool_new_on(NULL, &options), NULL));
    cr_assert(eq(int, errno, EINVAL));
    cr_assert(eq(ptr, pool_new(NULL, &options), NULL));
    cr_assert(eq(int, errno, EINVAL));
    options.max_links = 0;
    cr_assert(eq(ptr, pool_new(loop, &options), NULL));
    cr_assert(eq(int, errno, EINVAL));
    ev_loop_destroy(loop);
}

Test(cover_options, with_next_to_no_descriptors_the_default_is_one_link)
{
    struct rlimit limit, was;
    struct pool_options options;

    cr_assert(eq(int, getrlimit(RLIMIT_NOFILE, &was), 0));
    limit = was;
    limit.rlim_cur = 1;
    cr_assert(eq(int, setrlimit(RLIMIT_NOFILE, &limit), 0));
    pool_options_init(&options);
    setrlimit(RLIMIT_NOFILE, &was);
    cr_assert(eq(uint, options.max_links, 1));
}

/* ---- times of calls ---- */

Test(cover_options, drains_over_ten_years_are_refused_and_endless_ones_are_not)
{
    struct pool_target_options options;
    struct fake_world world;

    fake_world_begin(&world);
    fake_world_open(&world);
    pool_target_options_init(&options);
    struct pool_host *host = pool_host(world.pool, ADDRESS);
    struct pool_target *target = pool_target_add(world.pool, "target", &options);
    cr_assert(eq(int, pool_host_drain(host, too_long), LINKPOOL_EINVAL));
    cr_assert(eq(int, pool_host_drain(host, INFINITY), 0));
    cr_assert(eq(int, pool_target_drain(target, too_long, NULL, NULL), LINKPOOL_EINVAL));
    cr_assert(eq(int, pool_target_drain(target, -1, NULL, NULL), LINKPOOL_EINVAL));
    cr_assert(eq(int, pool_target_drain(target, INFINITY, NULL, NULL), 0));
    cr_assert(eq(int, pool_target_drain(target, INFINITY, NULL, NULL), LINKPOOL_ESTATE));
    cr_assert(eq(int, pool_drain(world.pool, too_long, NULL, NULL), LINKPOOL_EINVAL));
    cr_assert(eq(int, pool_drain(world.pool, INFINITY, NULL, NULL), 0));
    fake_world_end(&world);
}

Test(cover_options, handles_that_are_none_change_nothing)
{
    pool_host_drop(NULL);
    pool_target_remove(NULL);
    link_free(NULL);
    pool_free(NULL);
    driver_free(NULL);
    cr_assert(eq(int, protocol_ready(NULL), LINKPOOL_ELOST));
    cr_assert(eq(int, protocol_set_room(NULL, 1), LINKPOOL_ELOST));
    cr_assert(eq(int, protocol_going(NULL, NULL, LINK_NO_REASON, NULL), LINKPOOL_ELOST));
    cr_assert(eq(int, protocol_fail(NULL, LINK_RESET, NULL), LINKPOOL_ELOST));
    cr_assert(eq(int, transport_lost(NULL, LINK_RESET, 0, NULL), LINKPOOL_ELOST));
}
