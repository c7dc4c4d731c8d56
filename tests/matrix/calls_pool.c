/* calls_pool.c - the callers of pool.h: the pool, its leases, hosts and targets. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <ev.h>
#include <math.h>
#include <string.h>

#include "tests/matrix/calls.h"

/* ---- the pool ---- */

void call_pool_new(struct cell *cell)
{
    struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
    struct pool *pool = pool_new(loop, NULL);

    EXPECT(pool != NULL, true);
    pool_free(pool);
    ev_loop_destroy(loop);
}

void call_pool_new_on(struct cell *cell)
{
    struct pool *pool = pool_new_on(testing_driver(cell->t), NULL);

    EXPECT(pool != NULL, true);
    pool_free(pool);
    if (cell->own) {
        EXPECT(pool_new_on(cell->own_driver, NULL) == NULL, true);
        EXPECT(errno, EINVAL);
    }
}

void call_pool_free(struct cell *cell)
{
    struct pool *pool = cell->pool;

    pool_free(NULL);
    if (!cell->freeing)
        cell->pool = NULL;
    pool_free(pool);
}

void call_pool_drain(struct cell *cell)
{
    bool drains = cell_is_closed(cell);

    EXPECT(pool_drain(cell->pool, NAN, NULL, NULL), LINKPOOL_EINVAL);
    EXPECT(pool_drain(cell->pool, 1, cell_on_pool_drained, cell), drains ? LINKPOOL_ESTATE : 0);
    cell->drains_asked += !drains;
}

void call_pool_reset_backoff(struct cell *cell)
{
    pool_reset_backoff(cell->pool);
}

void call_pool_network_changed(struct cell *cell)
{
    pool_network_changed(cell->pool);
    pool_network_changed(cell->pool);
}

static void forget(struct cell_user *user)
{
    if (user->asked && !user->closed && !user->released && !user->gave_up && !(user->done && !user->held))
        user->forgotten++;
}

void call_pool_after_fork(struct cell *cell)
{
    bool is_out = cell->lease != LEASE_OVER;

    forget(&cell->subject);
    forget(&cell->trigger);
    forget(&cell->blocker);
    cell->trigger_calls.forgotten = cell->trigger_calls.asked - cell->trigger_calls.told;
    pool_after_fork(cell->pool);
    EXPECT(cell->subject.lease.channel == NULL, true);
    if (is_out)
        EXPECT(cell->subject.lease.status, LINKPOOL_ECLOSED);
}

void call_pool_now(struct cell *cell)
{
    EXPECT(pool_now(cell->pool) == testing_now(cell->t), true);
}

void call_pool_set_options(struct cell *cell)
{
    struct pool_options options;

    pool_options_init(&options);
    options.max_links = 1;
    EXPECT(pool_set_options(cell->pool, &options), 0);
    options.max_links = 0;
    EXPECT(pool_set_options(cell->pool, &options), LINKPOOL_EINVAL);
}

void call_pool_last_refusal(struct cell *cell)
{
    EXPECT(strcmp(pool_last_refusal(cell->pool), ""), 0);
}

void call_pool_stats(struct cell *cell)
{
    struct pool_stats stats;

    pool_stats(cell->pool, &stats, sizeof stats);
    EXPECT(stats.targets, 1);
    EXPECT(stats.waiting, cell->lease == LEASE_WAITING);
    EXPECT(stats.hosts >= 2, true);
}

void call_pool_options_init_sized(struct cell *cell)
{
    struct pool_options options;

    pool_options_init_sized(&options, sizeof options);
    EXPECT(options.size, sizeof options);
}

void call_pool_options_check(struct cell *cell)
{
    struct pool_options options;

    pool_options_init(&options);
    EXPECT(pool_options_check(&options, NULL, 0), 0);
}

/* ---- leases ---- */

static int can_ask(const struct cell *cell, int otherwise)
{
    if (cell->lease != LEASE_OVER)
        return LINKPOOL_ESTATE;
    return cell_is_closed(cell) ? LINKPOOL_ECLOSED : otherwise;
}

static struct pool_lease *asking(struct cell *cell)
{
    return cell->lease == LEASE_OVER ? cell_prepare(&cell->subject) : &cell->subject.lease;
}

void call_pool_acquire(struct cell *cell)
{
    int expected = can_ask(cell, POOL_PENDING);

    EXPECT(cell_asked(&cell->subject, pool_acquire(cell->pool, "10.0.0.9:80", asking(cell))), expected);
}

void call_pool_acquire_host(struct cell *cell)
{
    int expected = can_ask(cell, POOL_READY);

    EXPECT(cell_asked(&cell->subject, pool_acquire_host(cell->host, asking(cell))), expected);
}

void call_pool_acquire_target(struct cell *cell)
{
    int expected = can_ask(cell, cell->target_drains ? LINKPOOL_ECLOSED : POOL_PENDING);

    EXPECT(cell_asked(&cell->subject, pool_acquire_target(cell->target, asking(cell))), expected);
}

void call_pool_cancel(struct cell *cell)
{
    bool waits = cell->lease == LEASE_WAITING || cell->lease == LEASE_WON || cell->lease == LEASE_FAILED;

    EXPECT(pool_cancel(&cell->subject.lease), waits ? 0 : LINKPOOL_ESTATE);
    cell->subject.gave_up += waits;
    EXPECT(pool_cancel(&cell->subject.lease), LINKPOOL_ESTATE);
}

void call_pool_release(struct cell *cell)
{
    bool holds = cell->lease == LEASE_HELD || cell->lease == LEASE_LOST;

    EXPECT(pool_release(&cell->subject.lease, (enum pool_disposition)7), LINKPOOL_EINVAL);
    EXPECT(pool_release(&cell->subject.lease, POOL_REUSE), holds ? 0 : LINKPOOL_ESTATE);
    cell->subject.released += holds;
    EXPECT(pool_release(&cell->subject.lease, POOL_DISCARD), LINKPOOL_ESTATE);
}

void call_pool_explain(struct cell *cell)
{
    char text[400];
    int length = pool_explain(&cell->subject.lease, text, sizeof text);

    EXPECT(length > 0, true);
    EXPECT(strlen(text), length);
}

/* ---- hosts ---- */

/* Its one link is there: held, or idle. */
static bool is_up(const struct cell *cell)
{
    return !cell_is_closed(cell);
}

void call_pool_host(struct cell *cell)
{
    struct pool_host *host = pool_host(cell->pool, "10.0.0.1:80");

    EXPECT(host == cell->host, !cell_is_closed(cell));
    if (!host)
        EXPECT(errno, ESHUTDOWN);
    pool_host_drop(host);
}

void call_pool_host_for(struct cell *cell)
{
    struct pool_endpoint endpoint = {.size = sizeof endpoint, .address = "10.0.0.9:80", .tag = "other"};
    struct pool_host_options options;
    struct pool_host *host;

    pool_host_options_init(&options);
    options.min_links = 2;
    host = pool_host_for(cell->pool, &endpoint, &options);
    EXPECT(host != NULL, !cell_is_closed(cell));
    if (!host)
        EXPECT(errno, ESHUTDOWN);
}

void call_pool_host_drop(struct cell *cell)
{
    pool_host_drop(NULL);
    pool_host_drop(cell->host);
    cell->host = NULL;
}

void call_pool_host_start(struct cell *cell)
{
    EXPECT(pool_host_start(cell->host), cell_is_closed(cell) ? LINKPOOL_ECLOSED : 0);
}

void call_pool_host_drain(struct cell *cell)
{
    EXPECT(pool_host_drain(cell->host, -1), LINKPOOL_EINVAL);
    EXPECT(pool_host_drain(cell->host, 0), 0);
    EXPECT(pool_host_state(cell->host), is_up(cell) || !cell->freeing ? LINK_DRAINING : LINK_IDLE);
}

void call_pool_host_recycle(struct cell *cell)
{
    EXPECT(pool_host_recycle(cell->host, -1), LINKPOOL_EINVAL);
    EXPECT(pool_host_recycle(cell->host, 0), 0);
}

void call_pool_host_set_options(struct cell *cell)
{
    struct pool_host_options options;

    pool_host_options_init(&options);
    EXPECT(pool_host_set_options(cell->host, &options), 0);
    options.max_links = 0;
    EXPECT(pool_host_set_options(cell->host, &options), LINKPOOL_EINVAL);
}

void call_pool_host_options_init_sized(struct cell *cell)
{
    struct pool_host_options options;

    pool_host_options_init_sized(&options, sizeof options);
    EXPECT(options.size, sizeof options);
}

void call_pool_host_options_check(struct cell *cell)
{
    struct pool_host_options options;

    pool_host_options_init(&options);
    EXPECT(pool_host_options_check(&options, NULL, 0), 0);
}

void call_pool_host_state(struct cell *cell)
{
    EXPECT(pool_host_state(cell->host), is_up(cell) ? LINK_READY : LINK_IDLE);
}

void call_pool_host_address(struct cell *cell)
{
    EXPECT(strcmp(pool_host_address(cell->host), "10.0.0.1:80"), 0);
}

void call_pool_host_stats(struct cell *cell)
{
    struct pool_host_stats stats;

    pool_host_stats(cell->host, &stats, sizeof stats);
    EXPECT(stats.links[LINK_READY], is_up(cell));
    EXPECT(stats.idle, is_up(cell) && cell->lease == LEASE_OVER);
    EXPECT(stats.waiting, cell->lease == LEASE_WAITING);
}

void call_pool_host_next_link(struct cell *cell)
{
    const struct link *link = pool_host_next_link(cell->host, NULL);

    EXPECT(link != NULL, is_up(cell));
    if (link)
        EXPECT(pool_host_next_link(cell->host, link) == NULL, true);
}

void call_pool_next_host(struct cell *cell)
{
    struct pool_host *host = NULL;
    bool found = false;

    while ((host = pool_next_host(cell->pool, host)))
        found = found || host == cell->host;
    EXPECT(found, true);
}

/* ---- targets ---- */

void call_pool_target_add(struct cell *cell)
{
    struct pool_target_options options;
    struct pool_target *target;

    pool_target_options_init(&options);
    target = pool_target_add(cell->pool, "other", &options);
    EXPECT(target != NULL, !cell_is_closed(cell));
    if (!target)
        EXPECT(errno, ESHUTDOWN);
}

void call_pool_target_update(struct cell *cell)
{
    struct pool_endpoint endpoint = {.size = sizeof endpoint, .address = "10.0.0.9:80"};
    bool closed = cell_is_closed(cell) || cell->target_drains;

    EXPECT(pool_target_update(cell->target, &endpoint, 1), closed ? LINKPOOL_ECLOSED : 0);
}

void call_pool_target_start(struct cell *cell)
{
    bool closed = cell_is_closed(cell) || cell->target_drains;

    EXPECT(pool_target_start(cell->target), closed ? LINKPOOL_ECLOSED : 0);
}

void call_pool_target_drain(struct cell *cell)
{
    bool over = cell->freeing || cell->target_drains;

    EXPECT(pool_target_drain(cell->target, -1, NULL, NULL), LINKPOOL_EINVAL);
    EXPECT(pool_target_drain(cell->target, 1, cell_on_target_drained, cell), over ? LINKPOOL_ESTATE : 0);
    cell->drains_asked += !over;
}

void call_pool_target_recycle(struct cell *cell)
{
    EXPECT(pool_target_recycle(cell->target, -1), LINKPOOL_EINVAL);
    EXPECT(pool_target_recycle(cell->target, 1), 0);
}

void call_pool_target_remove(struct cell *cell)
{
    pool_target_remove(NULL);
    pool_target_remove(cell->target);
    cell->target = NULL;
}

void call_pool_target_options_init_sized(struct cell *cell)
{
    struct pool_target_options options;

    pool_target_options_init_sized(&options, sizeof options);
    EXPECT(options.size, sizeof options);
}

void call_pool_target_options_check(struct cell *cell)
{
    struct pool_target_options options;

    pool_target_options_init(&options);
    EXPECT(pool_target_options_check(&options, NULL, 0), 0);
}

void call_pool_target_state(struct cell *cell)
{
    bool closed = cell_is_closed(cell) || cell->target_drains;

    EXPECT(pool_target_state(cell->target), closed ? LINK_CLOSED : LINK_IDLE);
}

void call_pool_host_explain(struct cell *cell)
{
    char text[400];
    int length = pool_host_explain(cell->host, text, sizeof text);

    EXPECT(strlen(text), length);
    EXPECT(strncmp(text, pool_host_address(cell->host), strlen(pool_host_address(cell->host))), 0);
}

void call_pool_target_explain(struct cell *cell)
{
    char text[400];
    int length = pool_target_explain(cell->target, text, sizeof text);

    EXPECT(strlen(text), length);
    EXPECT(strstr(text, "10.0.0.4:80") != NULL, true);
}

void call_pool_target_name(struct cell *cell)
{
    EXPECT(strcmp(pool_target_name(cell->target), "target"), 0);
}

void call_pool_target_host(struct cell *cell)
{
    EXPECT(pool_target_host(cell->target, 0) != NULL, true);
    EXPECT(pool_target_host(cell->target, 1) == NULL, true);
}

void call_pool_next_target(struct cell *cell)
{
    EXPECT(pool_next_target(cell->pool, NULL) == cell->target, true);
    EXPECT(pool_next_target(cell->pool, cell->target) == NULL, true);
}
