/* cover_system.c - what the system seldom says: no random bits, no limit of descriptors, an interface that comes, goes,
 * or has a strange name. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>

#include "tests/fakes/owner.h"

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* The program's own come before the C library's. Each test has a process of its own. */
static bool has_no_random, has_no_limit;
static rlim_t the_limit;

__attribute__((visibility("default"))) ssize_t getrandom(void *bytes, size_t n, unsigned flags)
{
    if (!has_no_random)
        return REAL(getrandom)(bytes, n, flags);
    errno = EAGAIN;
    return -1;
}

__attribute__((visibility("default"))) int getrlimit(__rlimit_resource_t resource, struct rlimit *limit)
{
    if (has_no_limit) {
        errno = EPERM;
        return -1;
    }
    if (!the_limit)
        return REAL(getrlimit)(resource, limit);
    *limit = (struct rlimit){the_limit, the_limit};
    return 0;
}

/* Interface 7, while it is there: it goes with the look-up of that number. */
static const char *interface;
static unsigned look_ups, goes_at;
static int nametoindex_errno;

__attribute__((visibility("default"))) unsigned if_nametoindex(const char *name)
{
    if (!interface && !nametoindex_errno)
        return REAL(if_nametoindex)(name);
    if (interface && !strcmp(name, interface) && (++look_ups < goes_at || !goes_at))
        return 7;
    errno = nametoindex_errno ? nametoindex_errno : ENODEV;
    return 0;
}

__attribute__((visibility("default"))) char *if_indextoname(unsigned index, char name[IF_NAMESIZE])
{
    if (!interface)
        return REAL(if_indextoname)(index, name);
    return index == 7 || index == 25 ? strcpy(name, interface) : NULL;
}

Test(cover_system, without_the_kernels_random_bits_draws_differ_all_the_same)
{
    uint64_t first, second;

    has_no_random = true;
    first = linkpool_env_system.random(NULL);
    second = linkpool_env_system.random(NULL);
    cr_assert(ne(u64, first, second));
}

static unsigned max_links(void)
{
    struct pool_options options;

    pool_options_init(&options);
    return options.max_links;
}

Test(cover_system, a_pool_has_half_the_descriptors_or_a_million_where_that_is_more)
{
    the_limit = 1000;
    cr_assert(eq(uint, max_links(), 500));
    the_limit = 1;
    cr_assert(eq(uint, max_links(), 1));
    the_limit = 4000000;
    cr_assert(eq(uint, max_links(), 1000000));
    the_limit = RLIM_INFINITY;
    cr_assert(eq(uint, max_links(), 1000000));
    has_no_limit = true;
    cr_assert(eq(uint, max_links(), 1000000));
}

static int canonical(const char *address, char *text, size_t n)
{
    return link_address_check(address, text, n);
}

Test(cover_system, an_interface_that_cannot_be_looked_up_is_not_said_to_be_missing)
{
    char text[200];

    nametoindex_errno = ENXIO;
    cr_assert(eq(int, canonical("[fe80::1%eth7]:80", text, sizeof text), LINKPOOL_EADDRESS));
    cr_assert(ne(ptr, strstr(text, "no interface has this name"), NULL), "%s", text);
    nametoindex_errno = EMFILE;
    cr_assert(eq(int, canonical("[fe80::1%eth7]:80", text, sizeof text), LINKPOOL_EADDRESS));
    cr_assert(eq(ptr, strstr(text, "no interface has this name"), NULL), "%s", text);
}

Test(cover_system, a_scope_of_25_is_a_number_where_an_interface_has_it)
{
    char text[200];

    interface = "eth7";
    cr_assert(eq(int, canonical("[fe80::1%25]:80", text, sizeof text), 0));
    cr_assert(eq(str, text, "[fe80::1%eth7]:80"));
    cr_assert(eq(int, canonical("[fe80::1%26]:80", text, sizeof text), 0));
    cr_assert(eq(str, text, "[fe80::1%26]:80"));
    cr_assert(eq(int, canonical("[fe80::1%251]:80", text, sizeof text), LINKPOOL_EADDRESS));
}

Test(cover_system, an_interface_with_a_bracket_goes_by_its_number)
{
    char text[200];

    interface = "a]b";
    cr_assert(eq(int, canonical("[fe80::1%7]:80", text, sizeof text), 0));
    cr_assert(eq(str, text, "[fe80::1%7]:80"));
}

/* It goes at the n-th look-up: each is met, of the address and of the local address. */
Test(cover_system, an_interface_that_goes_makes_its_addresses_unreachable)
{
    struct link_options options;
    unsigned lost = 0;

    interface = "eth7";
    for (goes_at = 1; goes_at < 12; goes_at++) {
        struct testing *t = testing_new(1);
        struct driver *driver = testing_driver(t);
        look_ups = 0;
        testing_peer_add(t, "[fe80::1%7]:80", TESTING_ACCEPT);
        link_options_init(&options);
        options.env = testing_env(t);
        options.local = "[fe80::2%eth7]:0";
        struct link *link = link_new(driver, "[fe80::1%eth7]:80", &options);
        if (link) {
            cr_assert(eq(int, link_start(link), 0));
            testing_run_for(t, 0.1);
            if (link_state(link) != LINK_READY) {
                cr_assert(eq(int, link_last_reason(link, NULL, NULL), LINK_UNREACHABLE));
                lost++;
            }
        } else {
            cr_assert(eq(int, errno, EINVAL));
        }
        link_free(link);
        driver_free(driver);
        cr_assert(eq(uint, testing_open_descriptors(t), 0));
        testing_free(t);
    }
    cr_assert(eq(uint, lost, 3)); /* for the socket, to bind it, to connect it */
}
