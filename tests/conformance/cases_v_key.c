/* cases_v_key.c - the cases VA2, VA4 and XB6: the matrix of the key.
 *
 * Each member of an endpoint and of a host's options has a line in the lists below, with its rule. The lists fill a
 * structure in order, so that a member which is added to the library and not to its list does not compile here. */
#include "tests/conformance/cases.h"

#pragma GCC diagnostic error "-Wmissing-field-initializers"

static struct transport other_transport;
static struct protocol other_protocol;
static struct backoff_policy other_backoff;

enum rule {
    KEY,     /* a different link must come */
    NO_KEY,  /* the same link must come */
    REFUSED, /* of options: who names the host with another value is refused, and told which host it was */
};

/* member, rule, another value than begin() gives it */
#define ENDPOINT(member)                                                                                               \
    member(size, NO_KEY, offsetof(struct pool_endpoint, weight)) member(address, KEY, B)                               \
        member(server_name, KEY, "other.example") member(tag, KEY, "other") member(local, KEY, "10.9.9.10:0")          \
            member(transport, KEY, &other_transport) member(protocol, KEY, &other_protocol) member(weight, NO_KEY, 7)

#define HOST_OPTIONS(member)                                                                                           \
    member(size, NO_KEY, offsetof(struct pool_host_options, protocol)) member(max_links, REFUSED, 63)                  \
        member(min_links, REFUSED, 1) member(first_connecting, REFUSED, 7) member(max_connecting, REFUSED, 127)        \
            member(max_uses, REFUSED, 1) member(spread_links, REFUSED, true) member(idle_timeout, REFUSED, 54)         \
                member(max_age, REFUSED, 1) member(connect_timeout, REFUSED, 4) member(reset_timeout, REFUSED, 4)      \
                    member(drain_timeout, REFUSED, 31) member(backoff, REFUSED, &other_backoff)                        \
                        member(transport, KEY, &other_transport) member(protocol, KEY, &other_protocol)                \
                            member(heartbeat, REFUSED, &heartbeat_adaptive) member(read_timeout, REFUSED, 1)           \
                                member(max_unanswered, REFUSED, 4) member(max_channels, REFUSED, 5)

#define VALUE_OF(name, rule, other) all->name,
#define NAME_OF(name, rule, other)  {#name, rule},
struct named {
    const char *name;
    enum rule rule;
};

static const struct named endpoint_rules[] = {ENDPOINT(NAME_OF)}, option_rules[] = {HOST_OPTIONS(NAME_OF)};

enum {
    ENDPOINT_MEMBERS = sizeof endpoint_rules / sizeof *endpoint_rules,
    OPTION_MEMBERS = sizeof option_rules / sizeof *option_rules
};

/* One value a member, in order: one that is missing is an error of the compiler's. */
static struct pool_endpoint whole_endpoint(const struct pool_endpoint *all)
{
    return (struct pool_endpoint){ENDPOINT(VALUE_OF)};
}

static struct pool_host_options whole_options(const struct pool_host_options *all)
{
    return (struct pool_host_options){HOST_OPTIONS(VALUE_OF)};
}

#define FLIP(name, rule, other)                                                                                        \
    if (n-- == 0)                                                                                                      \
        all->name = other;

static void flip_endpoint(struct pool_endpoint *all, int n)
{
    ENDPOINT(FLIP)
}

static void flip_option(struct pool_host_options *all, int n)
{
    HOST_OPTIONS(FLIP)
}

static struct pool_endpoint begin(struct fake_world *world)
{
    other_transport = transport_tcp;
    other_protocol = protocol_raw;
    other_backoff = backoff_default;
    other_backoff.base = 0.3;
    cases_open(world);
    fake_echo(world, A);
    fake_echo(world, B);
    return (struct pool_endpoint){.size = sizeof(struct pool_endpoint),
        .address = A,
        .server_name = "one.example",
        .tag = "one",
        .local = "10.9.9.9:0",
        .transport = &transport_tcp,
        .protocol = &protocol_raw,
        .weight = 1};
}

/* The id of the link that serves one who names this endpoint; 0: refused. */
static uint64_t link_for(
    struct fake_world *world, const struct pool_endpoint *endpoint, const struct pool_host_options *options)
{
    struct fake_user user = {0};
    struct pool_host *host = pool_host_for(world->pool, endpoint, options);

    if (!host)
        return 0;
    fake_ask_host(world, &user, host);
    fake_settle(world);
    cr_assert(eq(int, user.status, POOL_READY));
    fake_exchange(world, &user);
    uint64_t id = cases_link_id(&user);
    fake_give_back(&user);
    pool_host_drop(host);
    return id;
}

static void flip_each_endpoint_member(void)
{
    for (int i = 0; i < ENDPOINT_MEMBERS; i++) {
        struct fake_world world;
        struct pool_endpoint one = begin(&world), same = whole_endpoint(&one), other = one;
        flip_endpoint(&other, i);
        uint64_t id = link_for(&world, &one, NULL);
        cr_assert(eq(u64, link_for(&world, &same, NULL), id));
        uint64_t flipped = link_for(&world, &other, NULL);
        cr_assert(ne(u64, flipped, 0));
        cr_assert(eq(int, flipped != id, endpoint_rules[i].rule == KEY), "%s", endpoint_rules[i].name);
        cr_assert(eq(u64, link_for(&world, &one, NULL), id)); /* and each finds its own again */
        cr_assert(eq(u64, link_for(&world, &other, NULL), flipped));
        fake_world_end(&world);
    }
}

Test(cases, VA2_each_member_of_the_key_alone_makes_another_link)
{
    flip_each_endpoint_member();
}

Test(cases, XB6_no_option_is_left_out_of_the_match)
{
    for (int i = 0; i < OPTION_MEMBERS; i++) {
        struct fake_world world;
        struct pool_host_options one, other;
        struct pool_endpoint endpoint = begin(&world);
        endpoint.transport = NULL; /* the options' */
        endpoint.protocol = NULL;
        pool_host_options_init(&one);
        other = whole_options(&one);
        uint64_t id = link_for(&world, &endpoint, &one);
        cr_assert(eq(u64, link_for(&world, &endpoint, &other), id));
        flip_option(&other, i);
        uint64_t flipped = link_for(&world, &endpoint, &other);
        cr_assert(eq(int, !flipped, option_rules[i].rule == REFUSED), "%s", option_rules[i].name);
        if (!flipped)
            cr_assert(ne(ptr, strstr(pool_last_refusal(world.pool), A), NULL), "%s", option_rules[i].name);
        else
            cr_assert(eq(int, flipped != id, option_rules[i].rule == KEY), "%s", option_rules[i].name);
        fake_world_end(&world);
    }
}

/* ---- scopes ---- */

static struct pool_host *host_of(struct fake_world *world, const char *address)
{
    struct pool_host *host = pool_host(world->pool, address);

    if (host)
        pool_host_drop(host);
    return host;
}

Test(cases, VA4_the_scope_of_an_address_is_part_of_the_key)
{
    struct fake_world world;
    static const char *const refused[] = {"[fe80::1%nosuchthing]:80", "[fe80::1%25lo]:80", "[fe80::1%]:80",
        "[fe80::1%abcdefghijklmnop]:80", "[fe80::1%0]:80", "[fe80::1%lo%lo]:80"};

    cases_open(&world);
    struct pool_host *lo = host_of(&world, "[fe80::1%lo]:80"), *far = host_of(&world, "[fe80::1%7777]:80");
    struct pool_host *none = host_of(&world, "[fe80::1]:80");
    cr_assert(ne(ptr, lo, NULL));
    cr_assert(ne(ptr, far, NULL));
    cr_assert(ne(ptr, none, NULL));
    cr_assert(ne(ptr, lo, far));
    cr_assert(ne(ptr, lo, none));
    cr_assert(ne(ptr, far, none));
    cr_assert(eq(ptr, host_of(&world, "[fe80::1%1]:80"), lo)); /* the loopback interface by its number */
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        cr_assert(eq(ptr, host_of(&world, refused[i]), NULL), "%s", refused[i]);
        cr_assert(eq(int, errno, EINVAL));
    }
    fake_world_end(&world);
}
