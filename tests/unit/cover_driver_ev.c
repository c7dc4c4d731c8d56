/* cover_driver_ev.c - a libev driver that nobody owns any more, and one that finds no memory. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <ev.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "linkpool/linkpool.h"

static void never(struct driver_io *io, unsigned events)
{
    (void)io, (void)events;
}

Test(driver_ev, what_rings_when_nobody_owns_the_driver_any_more_is_dropped)
{
    struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
    struct driver *driver = driver_ev_new(loop);

    driver->ops->alarm(driver, driver->now);
    driver->ops->later(driver);
    ev_run(loop, 0); /* until both are over: then nothing keeps it */
    driver_free(driver);
    ev_loop_destroy(loop);
}

/* ---- no memory: the address space is as large as it may be, and all that is free in it is taken ---- */

struct taken {
    struct taken *next;
};

/* All blocks of that size and above. */
static struct taken *take_all(size_t least)
{
    struct taken *all = NULL, *one;

    for (size_t size = 1 << 24; size >= least; size /= 2)
        while ((one = malloc(size))) {
            one->next = all;
            all = one;
        }
    return all;
}

static void give_all_back(struct taken *all)
{
    while (all) {
        struct taken *one = all;
        all = one->next;
        free(one);
    }
}

#ifdef __SANITIZE_ADDRESS__
enum {
    SANITIZED = 1
};
#else
enum {
    SANITIZED = 0
};
#endif

Test(driver_ev, without_memory_there_is_no_driver_and_no_watcher)
{
    if (SANITIZED)
        cr_skip("its own memory would be bounded as well");
    struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
    struct driver *driver = driver_ev_new(loop), *none;
    struct driver_io io = {.on = never};
    struct rlimit limit, was;
    int pair[2], answer, error;

    cr_assert(eq(int, socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0));
    cr_assert(eq(int, getrlimit(RLIMIT_AS, &was), 0));
    limit = was;
    limit.rlim_cur = 0; /* what is there stays; nothing is added */
    cr_assert(eq(int, setrlimit(RLIMIT_AS, &limit), 0));
    struct taken *all = take_all(sizeof *all);
    none = driver_ev_new(loop);
    error = errno;
    answer = driver->ops->io_start(driver, &io, pair[0], LINKPOOL_READ);
    give_all_back(all);
    setrlimit(RLIMIT_AS, &was);
    cr_assert(eq(ptr, none, NULL));
    cr_assert(eq(int, error, ENOMEM));
    cr_assert(eq(int, answer, LINKPOOL_ENOMEM));
    cr_assert(eq(int, driver->ops->io_start(driver, &io, pair[0], LINKPOOL_READ), 0));
    driver_free(driver);
    ev_loop_destroy(loop);
    close(pair[0]);
    close(pair[1]);
}

/* ---- libev would abort: it is not asked for what there is no memory for ---- */

static struct rlimit as_before;

static struct taken *bound_memory(size_t least)
{
    struct rlimit limit;

    cr_assert(eq(int, getrlimit(RLIMIT_AS, &as_before), 0));
    limit = as_before;
    limit.rlim_cur = 0;
    cr_assert(eq(int, setrlimit(RLIMIT_AS, &limit), 0));
    return take_all(least);
}

static void unbound_memory(struct taken *all)
{
    give_all_back(all);
    setrlimit(RLIMIT_AS, &as_before);
}

static void there_is_no_driver_without(size_t bytes)
{
    if (SANITIZED)
        cr_skip("its own memory would be bounded as well");
    struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
    void *spare = malloc(4000); /* for the driver itself */
    struct driver *none;
    int error;

    struct taken *all = bound_memory(bytes);
    free(spare);
    none = driver_ev_new(loop);
    error = errno;
    unbound_memory(all);
    cr_assert(eq(ptr, none, NULL));
    cr_assert(eq(int, error, ENOMEM));
    ev_loop_destroy(loop);
}

Test(driver_ev, without_memory_for_descriptors_there_is_no_driver)
{
    there_is_no_driver_without(8192);
}

Test(driver_ev, without_memory_for_events_there_is_no_driver)
{
    there_is_no_driver_without(131072);
}

Test(driver_ev, without_memory_for_its_number_a_descriptor_is_not_watched)
{
    if (SANITIZED)
        cr_skip("its own memory would be bounded as well");
    struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
    struct driver *driver = driver_ev_new(loop);
    struct driver_io low = {.on = never}, high = {.on = never};
    int pair[2], answer;

    cr_assert(eq(int, socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0));
    cr_assert(eq(int, driver->ops->io_start(driver, &low, pair[0], LINKPOOL_READ), 0));
    struct taken *all = bound_memory(sizeof *all);
    answer = driver->ops->io_start(driver, &high, 1 << 20, LINKPOOL_READ);
    unbound_memory(all);
    cr_assert(eq(int, answer, LINKPOOL_ENOMEM));
    cr_assert(eq(int, driver->ops->io_start(driver, &high, 1 << 20, LINKPOOL_READ), 0));
    driver->ops->io_stop(driver, &high); /* before a poll, which would find it closed */
    driver_free(driver);
    ev_loop_destroy(loop);
    close(pair[0]);
    close(pair[1]);
}

enum {
    RESERVED = 2048 /* what a driver is made for */
};

Test(driver_ev, without_memory_for_its_events_a_descriptor_is_not_watched)
{
    if (SANITIZED)
        cr_skip("its own memory would be bounded as well");
    static struct driver_io ios[RESERVED + 1];
    struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
    struct driver *driver = driver_ev_new(loop);
    int pair[2], answer;

    cr_assert(eq(int, socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0));
    for (unsigned i = 0; i < RESERVED; i++) {
        ios[i].on = never;
        cr_assert(eq(int, driver->ops->io_start(driver, &ios[i], pair[0], LINKPOOL_READ), 0));
    }
    ios[RESERVED].on = never;
    struct taken *all = bound_memory(131072);
    answer = driver->ops->io_start(driver, &ios[RESERVED], pair[0], LINKPOOL_READ);
    unbound_memory(all);
    cr_assert(eq(int, answer, LINKPOOL_ENOMEM));
    cr_assert(eq(int, driver->ops->io_start(driver, &ios[RESERVED], pair[0], LINKPOOL_READ), 0));
    driver_free(driver);
    ev_loop_destroy(loop);
    close(pair[0]);
    close(pair[1]);
}
