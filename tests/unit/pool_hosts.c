/* pool_hosts.c - hosts and the texts that lead to them: keys, pins, leaving, options. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/fakes/world.h"

static const char a[] = "10.0.0.1:80", b[] = "10.0.0.2:80";

static void begin(struct fake_world *world)
{
    fake_world_begin(world);
    fake_world_open(world);
}

/* ---- the key ---- */

Test(pool_hosts, texts_of_one_address_lead_to_one_host)
{
    static const char *const texts[] = {"[fd00::1]:80", "[FD00::1]:80", "[fd00:0:0:0:0:0:0:1]:80", "[fd00::0001]:80"};
    struct fake_world world;

    begin(&world);
    struct pool_host *host = pool_host(world.pool, texts[0]);
    for (int i = 1; i < 4; i++)
        cr_assert(eq(ptr, pool_host(world.pool, texts[i]), host));
    cr_assert(eq(str, (char *)pool_host_address(host), "[fd00::1]:80"));
    cr_assert(eq(uint, fake_stats(&world).hosts, 1));
    fake_world_end(&world);
}

Test(pool_hosts, each_part_of_the_endpoint_makes_another_host)
{
    struct transport other_transport = transport_tcp;
    struct protocol other_protocol = protocol_raw;
    const struct pool_endpoint endpoints[] = {
        {.address = a},
        {.address = b},
        {.address = "10.0.0.1:81"},
        {.address = "unix:/run/x"},
        {.address = "unix:@/run/x"},
        {.address = a, .server_name = "x"},
        {.address = a, .tag = "x"},
        {.address = a, .local = "10.0.0.9:0"},
        {.address = a, .local = "10.0.0.9:1"},
        {.address = a, .transport = &other_transport},
        {.address = a, .protocol = &other_protocol},
        {.address = a, .server_name = "x", .tag = "x"},
    };
    enum {
        N = sizeof endpoints / sizeof *endpoints
    };
    struct pool_host *hosts[N];
    struct fake_world world;

    begin(&world);
    for (size_t i = 0; i < N; i++) {
        struct pool_endpoint endpoint = endpoints[i];
        endpoint.size = sizeof endpoint;
        hosts[i] = pool_host_for(world.pool, &endpoint, NULL);
        cr_assert(ne(ptr, hosts[i], NULL));
        for (size_t k = 0; k < i; k++)
            cr_assert(ne(ptr, hosts[i], hosts[k], "%zu and %zu", i, k));
        cr_assert(eq(ptr, pool_host_for(world.pool, &endpoint, NULL), hosts[i])); /* the same again: the same host */
    }
    cr_assert(eq(uint, fake_stats(&world).hosts, N));
    fake_world_end(&world);
}

Test(pool_hosts, what_is_the_default_is_no_other_host)
{
    const struct pool_endpoint spelled_out = {.size = sizeof spelled_out,
        .address = a,
        .server_name = "",
        .tag = "",
        .local = "",
        .transport = &transport_tcp,
        .protocol = &protocol_raw,
        .weight = 7};
    struct fake_world world;

    begin(&world);
    cr_assert(eq(ptr, pool_host_for(world.pool, &spelled_out, NULL), pool_host(world.pool, a)));
    fake_world_end(&world);
}

/* Each field of a transport and of a protocol may matter to it: they are told apart by where they are. */
Test(pool_hosts, transports_and_protocols_are_compared_by_pointer)
{
    struct transport transports[3] = {transport_tcp, transport_tcp, transport_tcp};
    struct transport_tcp_options tcp = {.size = sizeof tcp, .keepalive = true};
    struct pool_host *hosts[3];
    struct fake_world world;

    begin(&world);
    transports[1].config = &tcp;
    for (int i = 0; i < 3; i++)
        hosts[i] = pool_host_for(world.pool,
            &(struct pool_endpoint){.size = sizeof(struct pool_endpoint), .address = a, .transport = &transports[i]},
            NULL);
    cr_assert(ne(ptr, hosts[0], hosts[1]));
    cr_assert(ne(ptr, hosts[0], hosts[2]));
    fake_world_end(&world);
}

Test(pool_hosts, links_are_shared_only_where_the_whole_key_is_equal)
{
    struct fake_user one = {0}, two = {0};
    struct pool_endpoint endpoint = {.size = sizeof endpoint, .address = a, .tag = "tenant 1"};
    struct fake_world world;

    begin(&world);
    struct testing_peer *peer = fake_echo(&world, a);
    struct pool_host *first = pool_host_for(world.pool, &endpoint, NULL);
    endpoint.tag = "tenant 2";
    struct pool_host *second = pool_host_for(world.pool, &endpoint, NULL);
    fake_ask_host(&world, &one, first);
    fake_settle(&world);
    fake_give_back(&one);
    cr_assert(eq(int, fake_ask_host(&world, &two, second), POOL_PENDING));
    fake_settle(&world);
    cr_assert(eq(uint, testing_peer_accepted(peer), 2));
    fake_world_end(&world);
}

Test(pool_hosts, parts_that_are_too_long_or_wrong_are_refused_by_name)
{
    char long_tag[255];
    struct pool_endpoint endpoint = {.size = sizeof endpoint, .address = a, .tag = long_tag};
    struct fake_world world;

    begin(&world);
    memset(long_tag, 'x', 254);
    long_tag[254] = '\0';
    cr_assert(eq(ptr, pool_host_for(world.pool, &endpoint, NULL), NULL));
    cr_assert(eq(int, errno, EINVAL));
    cr_assert(ne(ptr, strstr(pool_last_refusal(world.pool), "tag"), NULL));
    cr_assert(eq(ptr, strstr(pool_last_refusal(world.pool), "xxx"), NULL)); /* tags are never printed */
    long_tag[253] = '\0';
    cr_assert(ne(ptr, pool_host_for(world.pool, &endpoint, NULL), NULL));
    cr_assert(eq(str, (char *)pool_last_refusal(world.pool), ""));
    endpoint.local = "nowhere";
    cr_assert(eq(ptr, pool_host_for(world.pool, &endpoint, NULL), NULL));
    cr_assert(ne(ptr, strstr(pool_last_refusal(world.pool), "local"), NULL));
    cr_assert(eq(ptr, pool_host(world.pool, "db:80"), NULL));
    cr_assert(eq(int, errno, EINVAL));
    cr_assert(ne(ptr, strstr(pool_last_refusal(world.pool), "db:80"), NULL));
    fake_world_end(&world);
}

/* ---- names ---- */

Test(pool_hosts, so_many_texts_are_remembered_and_the_others_work_too)
{
    struct fake_user users[5] = {0};
    struct fake_world world;
    char address[32];

    fake_world_begin(&world);
    world.options.max_names = 2;
    fake_world_open(&world);
    for (int i = 0; i < 5; i++) {
        snprintf(address, sizeof address, "10.0.1.%d:80", i);
        fake_echo(&world, address);
        fake_hold(&world, &users[i], address);
        cr_assert(eq(uint, fake_stats(&world).names, i < 2 ? (unsigned)i + 1 : 2));
    }
    cr_assert(eq(uint, fake_stats(&world).hosts, 5));
    fake_world_end(&world);
}

Test(pool_hosts, a_target_is_found_though_no_more_texts_are_remembered)
{
    static const char *const addresses[] = {b};
    struct fake_user user = {0};
    struct fake_world world;

    fake_world_begin(&world);
    world.options.max_names = 1;
    fake_world_open(&world);
    fake_echo(&world, a);
    fake_echo(&world, b);
    fake_hold(&world, &user, a);
    fake_give_back(&user);
    fake_target(&world, "db", &pool_pick_first, addresses, 1);
    fake_hold(&world, &user, "db");
    fake_world_end(&world);
}

/* ---- staying and leaving ---- */

static void use(struct fake_world *world, const char *address)
{
    struct fake_user user = {0};

    fake_hold(world, &user, address);
    fake_give_back(&user);
}

Test(pool_hosts, a_host_nobody_needs_leaves_after_host_timeout)
{
    struct fake_world world;

    begin(&world);
    fake_echo(&world, a);
    use(&world, a);
    fake_run(&world, 55.1); /* idle_timeout */
    cr_assert(eq(uint, fake_stats(&world).links, 0));
    fake_run(&world, 299);
    cr_assert(eq(uint, fake_stats(&world).hosts, 1));
    fake_run(&world, 2);
    cr_assert(eq(uint, fake_stats(&world).hosts, 0));
    cr_assert(eq(uint, fake_stats(&world).names, 0));
    use(&world, a); /* and comes back */
    fake_world_end(&world);
}

Test(pool_hosts, ever_new_keys_leave_the_pool_bounded)
{
    struct fake_world world;
    char address[32];

    fake_world_begin(&world);
    world.host.idle_timeout = 1;
    world.options.host_timeout = 2;
    fake_world_open(&world);
    for (int i = 0; i < 100; i++) {
        snprintf(address, sizeof address, "10.0.2.%d:80", i);
        fake_echo(&world, address);
        use(&world, address);
        fake_run(&world, 1);
        cr_assert(le(uint, fake_stats(&world).hosts, 4));
        cr_assert(le(uint, fake_stats(&world).names, 4));
    }
    fake_world_end(&world);
}

Test(pool_hosts, a_pinned_host_stays_until_as_many_drops)
{
    struct fake_world world;

    begin(&world);
    struct pool_host *host = pool_host(world.pool, a);
    cr_assert(eq(ptr, pool_host(world.pool, a), host));
    fake_run(&world, 1000);
    cr_assert(eq(ptr, fake_host(&world, a), host));
    pool_host_drop(host);
    fake_run(&world, 1000);
    cr_assert(eq(ptr, fake_host(&world, a), host));
    pool_host_drop(host);
    fake_run(&world, 299);
    cr_assert(eq(ptr, fake_host(&world, a), host));
    fake_run(&world, 2);
    cr_assert(eq(ptr, fake_host(&world, a), NULL));
    fake_world_end(&world);
}

Test(pool_hosts, a_target_pins_its_hosts)
{
    static const char *const addresses[] = {a, b};
    struct fake_world world;

    begin(&world);
    struct pool_target *target = fake_target(&world, "db", &pool_round_robin, addresses, 2);
    fake_run(&world, 1000);
    cr_assert(eq(uint, fake_stats(&world).hosts, 2));
    struct pool_endpoint one = {.size = sizeof one, .address = b};
    cr_assert(eq(int, pool_target_update(target, &one, 1), 0));
    fake_run(&world, 301);
    cr_assert(eq(ptr, fake_host(&world, a), NULL));
    pool_target_remove(target);
    fake_run(&world, 301);
    cr_assert(eq(uint, fake_stats(&world).hosts, 0));
    fake_world_end(&world);
}

Test(pool_hosts, leases_and_waiters_keep_a_host)
{
    struct fake_user holder = {0}, waiter = {.lease.timeout = INFINITY};
    struct fake_world world;

    fake_world_begin(&world);
    world.host.max_links = 1;
    fake_world_open(&world);
    fake_echo(&world, a);
    fake_peer(&world, b, TESTING_REFUSE);
    waiter.lease.flags = POOL_WAIT_FOR_READY;
    fake_hold(&world, &holder, a);
    fake_ask(&world, &waiter, b);
    fake_run(&world, 2000);
    cr_assert(ne(ptr, fake_host(&world, a), NULL));
    cr_assert(ne(ptr, fake_host(&world, b), NULL));
    fake_world_end(&world);
}

/* ---- options ---- */

Test(pool_hosts, the_first_to_name_a_host_sets_its_options)
{
    struct pool_endpoint endpoint = {.size = sizeof endpoint, .address = a};
    struct pool_host_options other;
    struct fake_world world;

    begin(&world);
    pool_host_options_init(&other);
    other.backoff = &world.backoff;
    struct pool_host *host = pool_host_for(world.pool, &endpoint, &other);
    cr_assert(ne(ptr, host, NULL));
    cr_assert(eq(ptr, pool_host_for(world.pool, &endpoint, &other), host)); /* the same are fine */
    cr_assert(eq(ptr, pool_host_for(world.pool, &endpoint, NULL), host));   /* and none */
    other.max_links = 3;
    cr_assert(eq(ptr, pool_host_for(world.pool, &endpoint, &other), NULL));
    cr_assert(eq(int, errno, EEXIST));
    cr_assert(ne(ptr, strstr(pool_last_refusal(world.pool), a), NULL));
    fake_world_end(&world);
}

Test(pool_hosts, a_target_with_other_options_for_a_member_is_refused_with_its_name)
{
    struct pool_endpoint endpoints[2] = {
        {.size = sizeof *endpoints, .address = b}, {.size = sizeof *endpoints, .address = a}};
    struct pool_target_options options;
    struct pool_host_options other;
    struct fake_world world;

    begin(&world);
    pool_host(world.pool, a);
    pool_host_options_init(&other);
    other.idle_timeout = 7;
    pool_target_options_init(&options);
    options.endpoints = endpoints;
    options.n_endpoints = 2;
    options.host = &other;
    cr_assert(eq(ptr, pool_target_add(world.pool, "db", &options), NULL));
    cr_assert(eq(int, errno, EEXIST));
    cr_assert(ne(ptr, strstr(pool_last_refusal(world.pool), a), NULL));
    cr_assert(eq(uint, fake_stats(&world).targets, 0));
    options.n_endpoints = 1;
    struct pool_target *target = pool_target_add(world.pool, "db", &options);
    cr_assert(ne(ptr, target, NULL));
    cr_assert(eq(int, pool_target_update(target, endpoints, 2), LINKPOOL_ESTATE));
    cr_assert(ne(ptr, strstr(pool_last_refusal(world.pool), a), NULL));
    cr_assert(eq(ptr, pool_target_host(target, 1), NULL)); /* nothing changed */
    fake_world_end(&world);
}

Test(pool_hosts, each_wrong_option_is_refused_by_its_name)
{
    struct pool_options options;
    char text[128];
    struct fake_world world;

    begin(&world);
#define REFUSED(member, value)                                                                                         \
    pool_options_init(&options);                                                                                       \
    options.env = testing_env(world.t);                                                                                \
    options.member = value;                                                                                            \
    cr_assert(eq(int, pool_options_check(&options, text, sizeof text), LINKPOOL_EINVAL, #member));                     \
    cr_assert(ne(ptr, strstr(text, #member), NULL, "%s", text));                                                       \
    errno = 0;                                                                                                         \
    cr_assert(eq(ptr, pool_new(NULL, &options), NULL));                                                                \
    cr_assert(eq(int, errno, EINVAL));                                                                                 \
    cr_assert(eq(int, pool_set_options(world.pool, &options), LINKPOOL_EINVAL));
    REFUSED(max_links, 0)
    REFUSED(max_hosts, 0)
    REFUSED(max_names, 0)
    REFUSED(max_waiting, 0)
    REFUSED(max_connecting, 0)
    REFUSED(max_line, 0)
    REFUSED(wait_timeout, 0)
    REFUSED(wait_timeout, -1)
    REFUSED(wait_timeout, NAN)
    REFUSED(host_timeout, 0)
    REFUSED(host_timeout, 11 * 366 * 86400.0)
#undef REFUSED
    fake_world_end(&world);
}

Test(pool_hosts, each_wrong_option_of_a_host_is_refused_by_its_name)
{
    struct backoff_policy backoff = backoff_default;
    struct pool_host_options options;
    char text[128];
    struct fake_world world;

    begin(&world);
    struct pool_host *host = pool_host(world.pool, b);
#define REFUSED(member, value)                                                                                         \
    pool_host_options_init(&options);                                                                                  \
    options.member = value;                                                                                            \
    cr_assert(eq(int, pool_host_options_check(&options, text, sizeof text), LINKPOOL_EINVAL, #member));                \
    cr_assert(ne(ptr, strstr(text, #member), NULL, "%s", text));                                                       \
    cr_assert(eq(ptr,                                                                                                  \
        pool_host_for(                                                                                                 \
            world.pool, &(struct pool_endpoint){.size = sizeof(struct pool_endpoint), .address = a}, &options),        \
        NULL));                                                                                                        \
    cr_assert(ne(ptr, strstr(pool_last_refusal(world.pool), #member), NULL));
    REFUSED(max_links, 0)
    REFUSED(min_links, 65)
    REFUSED(first_connecting, 0)
    REFUSED(first_connecting, 129)
    REFUSED(max_connecting, 0)
    REFUSED(idle_timeout, -1)
    REFUSED(max_age, NAN)
    REFUSED(connect_timeout, 0)
    REFUSED(reset_timeout, 0)
    REFUSED(drain_timeout, 0)
    REFUSED(backoff, NULL)
    REFUSED(transport, NULL)
    REFUSED(protocol, NULL)
    backoff.factor = 0.5;
    REFUSED(backoff, &backoff)
#undef REFUSED
    options.backoff = &backoff_default;
    options.connect_timeout = -3;
    cr_assert(eq(int, pool_host_set_options(host, &options), LINKPOOL_EINVAL));
    cr_assert(ne(ptr, strstr(pool_last_refusal(world.pool), "connect_timeout"), NULL));
    cr_assert(eq(ptr, fake_host(&world, a), NULL)); /* nothing was kept */
    fake_world_end(&world);
}

/* Both sides may grow: an older caller's shorter struct is completed by the defaults. */
Test(pool_hosts, shorter_options_of_older_callers_are_completed)
{
    struct pool_host_options options;
    struct pool_endpoint endpoint = {.size = offsetof(struct pool_endpoint, tag), .address = a, .tag = "not read"};
    struct fake_world world;

    begin(&world);
    pool_host_options_init_sized(&options, offsetof(struct pool_host_options, first_connecting));
    cr_assert(eq(sz, options.size, offsetof(struct pool_host_options, first_connecting)));
    options.idle_timeout = -1; /* not read */
    cr_assert(eq(int, pool_host_options_check(&options, NULL, 0), 0));
    cr_assert(eq(ptr, pool_host_for(world.pool, &endpoint, &options), pool_host(world.pool, a)));
    fake_world_end(&world);
}

Test(pool_hosts, shorter_endpoints_in_a_list_lie_as_far_apart_as_their_size_says)
{
    struct older { /* an endpoint before it had a server name */
        size_t size;
        const char *address;
    } endpoints[] = {{sizeof *endpoints, a}, {sizeof *endpoints, b}};
    struct pool_target_options options;
    struct fake_world world;

    begin(&world);
    pool_target_options_init(&options);
    options.endpoints = (const struct pool_endpoint *)(const void *)endpoints;
    options.n_endpoints = 2;
    struct pool_target *target = pool_target_add(world.pool, "db", &options);
    cr_assert(ne(ptr, target, NULL));
    cr_assert(eq(ptr, pool_target_host(target, 0), pool_host(world.pool, a)));
    cr_assert(eq(ptr, pool_target_host(target, 1), pool_host(world.pool, b)));
    fake_world_end(&world);
}
