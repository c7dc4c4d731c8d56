/* cover_verdict.c - links that were up and die while another attempt is under way. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "tests/fakes/world.h"

#define ADDRESS "10.0.0.1:80"

static struct testing_peer *begin(struct fake_world *world)
{
    fake_world_begin(world);
    world->backoff.jitter = BACKOFF_NONE;
    world->backoff.reconnect_spread = 0;
    return fake_echo(world, ADDRESS);
}

/* The next attempt takes a second to connect. */
static void begin_another(struct fake_world *world, struct testing_peer *peer, struct fake_user *user)
{
    testing_peer_delay(peer, 1, 0);
    user->lease.flags = POOL_WAIT_FOR_READY;
    fake_ask(world, user, ADDRESS);
    fake_settle(world);
    cr_assert(eq(int, user->status, POOL_PENDING));
}

Test(cover_verdict, those_that_die_together_beside_an_attempt_are_one_failure)
{
    struct fake_user held[3] = {0}, late = {0};
    struct fake_world world;

    struct testing_peer *peer = begin(&world);
    fake_world_open(&world);
    for (unsigned i = 0; i < 3; i++)
        fake_hold(&world, &held[i], ADDRESS);
    begin_another(&world, peer, &late);
    testing_peer_cut(peer, LINK_RESET);
    fake_settle(&world);
    for (unsigned i = 0; i < 3; i++) {
        char byte;
        cr_assert(eq(long, channel_read(held[i].lease.channel, &byte, 1), LINKPOOL_ELOST));
        fake_give_back(&held[i]);
    }
    cr_assert(eq(ulong, fake_stats(&world).ends[LINK_RESET], 3));
    cr_assert(eq(uint, fake_host_stats(fake_host(&world, ADDRESS)).failures, 1));
    fake_run(&world, 1.1);
    cr_assert(eq(int, late.status, POOL_READY));
    fake_give_back(&late);
    fake_world_end(&world);
}

/* A link that nobody has used dies beside an attempt, and the policy says "no more": the host is not out of service,
 * since that attempt may come up; what is kept up waits a minute. */
Test(cover_verdict, a_policy_that_has_run_out_makes_what_is_kept_up_wait_a_minute)
{
    struct pool_host_options options;
    struct fake_world world;

    struct testing_peer *peer = begin(&world);
    world.backoff.max_attempts = 1;
    world.host.min_links = 1;
    fake_world_open(&world);
    struct pool_host *host = pool_host(world.pool, ADDRESS);
    fake_run(&world, 0.5);
    cr_assert(eq(uint, fake_stats(&world).idle, 1));
    testing_peer_delay(peer, 1, 0);
    options = world.host;
    options.min_links = 3;
    options.first_connecting = options.max_connecting = 1; /* one of the two that are missing */
    cr_assert(eq(int, pool_host_set_options(host, &options), 0));
    fake_settle(&world);
    cr_assert(eq(uint, testing_peer_attempts(peer), 2)); /* a second is on its way */
    testing_peer_cut(peer, LINK_RESET);
    fake_run(&world, 2);
    cr_assert(eq(uint, fake_stats(&world).idle, 1));
    cr_assert(eq(int, pool_host_state(host), LINK_READY));
    fake_run(&world, 50);
    cr_assert(eq(uint, testing_peer_attempts(peer), 2));
    fake_run(&world, 12);
    cr_assert(eq(uint, fake_stats(&world).idle, 3));
    pool_host_drop(host);
    fake_world_end(&world);
}
