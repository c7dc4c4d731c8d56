/* memory.c - one allocation failing after another, and one system call: each is met, said clearly, and leaves nothing.
 *
 * A scenario is played again and again: its first allocation fails, then its second, and so on, until it meets none;
 * then the same with all from there on. System calls likewise, with each errno that is plausible for them. When the
 * faults are over, whoever asks anew is served. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>

#include "pool/internal.h"
#include "tests/fakes/session.h"
#include "tests/fakes/shared.h"
#include "tests/fakes/world.h"

#define ADDRESS "10.0.0.1:80"
#define OTHER   "10.0.0.2:80"

enum {
    USERS = 20
};

struct scene {
    struct fake_world world;
    struct fake_user users[USERS];
    struct driver *driver; /* of the link on its own */
    struct link *link;
    unsigned connected, disconnected;
};

/* ---- what must hold of any ---- */

static void check(struct scene *scene)
{
    if (!scene->world.pool)
        return;
    scene->world.pool->checks = 0; /* all of it */
    pool__check(scene->world.pool);
}

/* What may be said to a user when memory, or a call, has failed. */
static void is_clear(const struct pool_lease *lease)
{
    if (lease->status >= 0 || lease->status == LINKPOOL_ENOMEM)
        return;
    if (lease->status != LINKPOOL_EUNAVAILABLE && lease->status != LINKPOOL_ELOST)
        cr_assert(eq(int, lease->status, LINKPOOL_ETIMEDOUT));
    cr_assert(ne(int, lease->reason, LINK_NO_REASON));
}

static void ask(struct scene *scene, unsigned i, const char *text)
{
    if (scene->world.pool)
        fake_ask(&scene->world, &scene->users[i], text);
    is_clear(&scene->users[i].lease);
    check(scene);
}

static void run(struct scene *scene, double seconds)
{
    fake_run(&scene->world, seconds);
    check(scene);
}

static void give_all_back(struct scene *scene)
{
    for (unsigned i = 0; i < USERS; i++) {
        struct fake_user *user = &scene->users[i];
        is_clear(&user->lease);
        cr_assert(le(uint, user->done, 1));
        cr_assert(ne(int, user->lease.status, POOL_PENDING));
        if (user->lease.channel)
            fake_give_back(user);
    }
    check(scene);
}

/* ---- scenarios ---- */

static void by_text(struct scene *scene)
{
    ask(scene, 0, ADDRESS);
    ask(scene, 1, OTHER);
}

static void by_handle(struct scene *scene)
{
    struct pool_host *host = scene->world.pool ? pool_host(scene->world.pool, ADDRESS) : NULL;

    if (host)
        fake_ask_host(&scene->world, &scene->users[0], host);
    else if (scene->world.pool)
        cr_assert(eq(int, errno, ENOMEM));
    run(scene, 0);
    pool_host_drop(host);
}

static void host_with_options(struct scene *scene)
{
    struct pool_endpoint endpoint = {.size = sizeof endpoint, .address = ADDRESS, .tag = "of its own"};
    struct pool_host_options options = scene->world.host;
    struct pool_host *host;
    int error;

    options.max_links = 7;
    options.min_links = 2;
    if (!scene->world.pool)
        return;
    host = pool_host_for(scene->world.pool, &endpoint, &options);
    if (!host) {
        cr_assert(eq(int, errno, ENOMEM));
        return;
    }
    options.max_links = 8;
    error = pool_host_set_options(host, &options);
    if (error)
        cr_assert(eq(int, error, LINKPOOL_ENOMEM));
    fake_ask_host(&scene->world, &scene->users[0], host);
}

static void set_target(struct scene *scene)
{
    struct pool_endpoint endpoints[2];
    struct pool_target_options options;

    fake_endpoints(endpoints, (const char *const[]){ADDRESS, OTHER}, 2);
    pool_target_options_init(&options);
    options.endpoints = endpoints;
    options.n_endpoints = 2;
    options.host = &scene->world.host;
    if (scene->world.pool && !pool_target_add(scene->world.pool, "target", &options)) {
        cr_assert(eq(int, errno, ENOMEM));
        scene->users[0].lease.status = LINKPOOL_ENOMEM;
    }
    check(scene);
}

static void target(struct scene *scene)
{
    set_target(scene);
    if (scene->users[0].lease.status == 0)
        ask(scene, 0, "target");
}

static void target_update(struct scene *scene)
{
    struct pool_endpoint endpoints[2];
    struct pool_target *changed;
    int error;

    fake_endpoints(endpoints, (const char *const[]){OTHER, "10.0.0.3:80"}, 2);
    set_target(scene);
    changed = scene->world.pool ? pool_next_target(scene->world.pool, NULL) : NULL;
    if (!changed)
        return;
    error = pool_target_update(changed, endpoints, 2);
    if (error)
        cr_assert(eq(int, error, LINKPOOL_ENOMEM));
    cr_assert(eq(str, (char *)pool_host_address(pool_target_host(changed, 0)), error ? ADDRESS : OTHER));
    ask(scene, 0, "target");
}

static void many_waiters(struct scene *scene)
{
    for (unsigned i = 0; i < USERS; i++) {
        scene->users[i].lease.timeout = 2; /* a time of its own: a timer of its own */
        ask(scene, i, ADDRESS);
    }
}

static void many_hosts(struct scene *scene)
{
    static const char *const addresses[] = {ADDRESS, OTHER, "10.0.0.3:80", "10.0.0.4:80", "10.0.0.5:80", "10.0.0.6:80",
        "10.0.0.7:80", "10.0.0.8:80", "10.0.0.9:80", "10.0.1.0:80"};

    for (unsigned i = 0; i < 10; i++)
        ask(scene, i, addresses[i]);
}

static void shared(struct scene *scene)
{
    static struct protocol wide; /* more than one slab of channels */
    struct pool_endpoint endpoint = {.size = sizeof endpoint, .address = ADDRESS, .protocol = &wide};
    struct pool_host *host;

    wide = fake_shared;
    wide.max_channels = 2 * USERS;
    host = scene->world.pool ? pool_host_for(scene->world.pool, &endpoint, NULL) : NULL;
    for (unsigned i = 0; host && i < USERS; i++) {
        fake_ask_host(&scene->world, &scene->users[i], host);
        if (i == 2)
            run(scene, 0.001);
        check(scene);
    }
}

static void session(struct scene *scene)
{
    struct pool_endpoint endpoint = {.size = sizeof endpoint, .address = ADDRESS, .protocol = &fake_session};
    struct pool_host *host = scene->world.pool ? pool_host_for(scene->world.pool, &endpoint, NULL) : NULL;

    if (host)
        fake_ask_host(&scene->world, &scene->users[0], host);
}

/* ---- a link on its own ---- */

static void on_connected(struct link *link, struct channel *channel)
{
    struct scene *scene = link_data(link);

    (void)channel;
    scene->connected++;
}

static void on_disconnected(struct link *link, enum link_reason reason)
{
    struct scene *scene = link_data(link);

    (void)reason;
    scene->disconnected++;
}

static void start_link(struct scene *scene, const struct protocol *protocol)
{
    struct link_options options;

    link_options_init(&options);
    options.env = testing_env(scene->world.t);
    options.protocol = protocol;
    options.data = scene;
    options.connected = on_connected;
    options.disconnected = on_disconnected;
    scene->driver = testing_driver(scene->world.t);
    scene->link = link_new(scene->driver, ADDRESS, &options);
    if (scene->link)
        cr_assert(eq(int, link_start(scene->link), 0));
    else
        cr_assert(eq(int, errno, ENOMEM));
}

static void alone(struct scene *scene)
{
    start_link(scene, &protocol_raw);
}
static void alone_shared(struct scene *scene)
{
    start_link(scene, &fake_shared);
}

/* ---- the sweeps ---- */

static void begin(struct scene *scene)
{
    *scene = (struct scene){0};
    fake_world_begin(&scene->world);
    fake_echo(&scene->world, ADDRESS);
    fake_echo(&scene->world, OTHER);
}

static void open_pool(struct scene *scene)
{
    struct driver *driver = testing_driver(scene->world.t);

    scene->world.pool = pool_new_on(driver, &scene->world.options);
    if (scene->world.pool)
        return;
    cr_assert(eq(int, errno, ENOMEM));
    driver_free(driver);
}

/* The faults are over: whoever asks anew, or waits for its link, is served. */
static void serve_anew(struct scene *scene)
{
    struct fake_user late = {0};

    if (scene->world.pool) {
        late.lease.flags = POOL_WAIT_FOR_READY;
        cr_assert(ge(int, fake_ask(&scene->world, &late, ADDRESS), 0));
        fake_run(&scene->world, 5);
        cr_assert(ne(ptr, late.lease.channel, NULL));
        fake_give_back(&late);
        check(scene);
    }
    if (scene->link) {
        fake_run(&scene->world, 5);
        cr_assert(eq(int, link_state(scene->link), LINK_READY));
        cr_assert(eq(uint, scene->connected, scene->disconnected + 1));
    }
}

static void end(struct scene *scene)
{
    link_free(scene->link);
    driver_free(scene->driver);
    fake_world_end(&scene->world);
}

/* Plays it with the k-th allocation failing. Answers whether it met that many. */
static bool play_without_memory(void (*play)(struct scene *scene), unsigned k, bool all_from_then)
{
    struct scene scene;
    bool met;

    begin(&scene);
    testing_fail_allocation(scene.world.t, k, all_from_then);
    open_pool(&scene);
    play(&scene);
    run(&scene, 10);
    give_all_back(&scene);
    met = testing_allocations(scene.world.t) >= k;
    testing_fail_allocation(scene.world.t, 0, false);
    serve_anew(&scene);
    end(&scene);
    return met;
}

static void sweep_memory(void (*play)(struct scene *scene))
{
    unsigned once = 1, from_then = 1;

    while (play_without_memory(play, once, false))
        once++;
    while (play_without_memory(play, from_then, true))
        from_then++;
    cr_assert(gt(uint, once, 3)); /* it did allocate */
    cr_assert(lt(uint, from_then, 1000));
}

/* clang-format off */
Test(memory, failing_by_text)           { sweep_memory(by_text); }
Test(memory, failing_by_handle)         { sweep_memory(by_handle); }
Test(memory, failing_host_with_options) { sweep_memory(host_with_options); }
Test(memory, failing_target)            { sweep_memory(target); }
Test(memory, failing_target_update)     { sweep_memory(target_update); }
Test(memory, failing_many_waiters)      { sweep_memory(many_waiters); }
Test(memory, failing_many_hosts)        { sweep_memory(many_hosts); }
Test(memory, failing_shared)            { sweep_memory(shared); }
Test(memory, failing_session)           { sweep_memory(session); }
Test(memory, failing_alone)             { sweep_memory(alone); }
Test(memory, failing_alone_shared)      { sweep_memory(alone_shared); }
/* clang-format on */

/* ---- system calls ---- */

static const int plausible[TESTING_CALLS][8] = {
    [TESTING_SOCKET] = {EMFILE, ENFILE, ENOMEM, ENOBUFS, EACCES, EAFNOSUPPORT},
    [TESTING_CONNECT] = {ECONNREFUSED, ENETUNREACH, EHOSTUNREACH, ETIMEDOUT, EADDRNOTAVAIL, EACCES, EINTR},
    [TESTING_SETSOCKOPT] = {ENOPROTOOPT, ENOBUFS, EINVAL},
    [TESTING_GETSOCKOPT] = {ENOBUFS, EBADF},
    [TESTING_RECVMSG] = {EAGAIN, EINTR, ECONNRESET, ETIMEDOUT, ENOMEM, ECONNREFUSED},
    [TESTING_SENDMSG] = {EAGAIN, EINTR, EPIPE, ECONNRESET, ENOBUFS, ENOMEM},
    [TESTING_SHUTDOWN] = {ENOTCONN, ENOBUFS},
    [TESTING_CLOSE] = {EINTR, EIO},
};

/* Each holder says something, hears the answer and gives back. */
static void exchange(struct scene *scene)
{
    for (unsigned i = 0; i < USERS; i++) {
        struct channel *channel = scene->users[i].lease.channel;
        char byte = 'm';
        if (!channel)
            continue;
        channel_writev(channel, &(struct iovec){&byte, 1}, 1);
        channel_send(channel, &byte, 1);
        run(scene, 0.01);
        if (scene->users[i].lease.channel)
            channel_read(channel, &byte, 1);
    }
}

static bool play_with_fault(void (*play)(struct scene *scene), enum testing_call call, unsigned k, int error)
{
    struct scene scene;
    bool met;

    begin(&scene);
    open_pool(&scene);
    testing_fail_call(scene.world.t, call, k, error, false);
    play(&scene);
    run(&scene, 1);
    exchange(&scene);
    give_all_back(&scene);
    run(&scene, 60); /* what fell idle goes: close() as well */
    met = testing_calls(scene.world.t, call) >= k;
    testing_fail_call(scene.world.t, call, 0, 0, false);
    serve_anew(&scene);
    end(&scene);
    return met;
}

static void sweep_calls(void (*play)(struct scene *scene))
{
    unsigned faults = 0;

    for (int call = 0; call < TESTING_CALLS; call++)
        for (const int *error = plausible[call]; *error; error++)
            for (unsigned k = 1; play_with_fault(play, (enum testing_call)call, k, *error); k++)
                faults++;
    cr_assert(gt(uint, faults, 15)); /* it did call the system */
}

/* clang-format off */
Test(memory, system_calls_failing_by_text)      { sweep_calls(by_text); }
Test(memory, system_calls_failing_target)       { sweep_calls(target); }
Test(memory, system_calls_failing_shared)       { sweep_calls(shared); }
Test(memory, system_calls_failing_session)      { sweep_calls(session); }
Test(memory, system_calls_failing_alone)        { sweep_calls(alone); }
/* clang-format on */
