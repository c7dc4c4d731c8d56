/* cover_pool.c - the pool's rarer ways: what goes from the middle of a list, what is called twice, late or too early.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "tests/fakes/session.h"
#include "tests/fakes/shared.h"
#include "tests/fakes/world.h"

#define ADDRESS "10.0.0.1:80"
#define OTHER   "10.0.0.2:80"
#define THIRD   "10.0.0.3:80"

static void begin(struct fake_world *world)
{
    fake_world_begin(world);
    fake_echo(world, ADDRESS);
    fake_echo(world, OTHER);
    fake_echo(world, THIRD);
}

static void hold_all(struct fake_world *world, struct fake_user *users, unsigned n, const char *text)
{
    for (unsigned i = 0; i < n; i++)
        fake_hold(world, &users[i], text);
}

static void give_back_in_order(struct fake_user *users, const unsigned *order, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        fake_give_back(&users[order[i]]);
}

/* ---- lists ---- */

Test(cover_pool, links_are_leased_and_given_back_in_any_order)
{
    static const unsigned orders[][4] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 2, 0, 3}, {2, 0, 3, 1}};
    struct fake_user users[4] = {0};
    struct fake_world world;

    for (int spread = 0; spread < 2; spread++) {
        begin(&world);
        world.host.spread_links = spread;
        fake_world_open(&world);
        for (unsigned i = 0; i < 4; i++) {
            hold_all(&world, users, 4, ADDRESS);
            give_back_in_order(users, orders[i], 4);
        }
        cr_assert(eq(uint, fake_stats(&world).idle, 4));
        fake_world_end(&world);
        memset(users, 0, sizeof users);
    }
}

Test(cover_pool, an_unused_link_is_found_among_used_ones)
{
    struct fake_user users[3] = {0}, fresh = {.lease.flags = POOL_FRESH};
    struct pool_host_options options;
    struct fake_world world;

    begin(&world);
    fake_world_open(&world);
    hold_all(&world, users, 2, ADDRESS);
    options = world.host;
    options.min_links = 3; /* the third is opened for nobody */
    struct pool_host *host = pool_host(world.pool, ADDRESS);
    cr_assert(eq(int, pool_host_set_options(host, &options), 0));
    fake_run(&world, 0.1);
    give_back_in_order(users, (const unsigned[]){0, 1}, 2);
    cr_assert(eq(int, fake_ask_host(&world, &fresh, host), POOL_READY));
    cr_assert(not(fresh.lease.reused));
    fake_world_end(&world);
}

Test(cover_pool, streams_of_a_link_end_in_any_order)
{
    static const unsigned orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 0, 2}};
    struct fake_user users[3] = {0};
    struct fake_world world;

    begin(&world);
    world.host.protocol = &fake_shared;
    fake_world_open(&world);
    for (unsigned i = 0; i < 3; i++) {
        hold_all(&world, users, 3, ADDRESS);
        give_back_in_order(users, orders[i], 3);
    }
    cr_assert(eq(uint, fake_stats(&world).links, 1));
    fake_world_end(&world);
}

/* Outcomes that are decided and not yet told, taken back from each place of the list. */
Test(cover_pool, winners_give_up_in_any_order)
{
    static const unsigned orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 2, 0}};
    struct fake_user users[6] = {0};
    struct fake_world world;

    for (unsigned order = 0; order < 3; order++) {
        begin(&world);
        world.host.max_links = 3;
        fake_world_open(&world);
        hold_all(&world, users, 3, ADDRESS);
        for (unsigned i = 3; i < 6; i++)
            fake_ask(&world, &users[i], ADDRESS);
        for (unsigned i = 0; i < 3; i++)
            fake_give_back(&users[i]);
        for (unsigned i = 0; i < 3; i++)
            cr_assert(eq(int, pool_cancel(&users[3 + orders[order][i]].lease), 0));
        fake_run(&world, 0.1);
        cr_assert(eq(uint, fake_stats(&world).idle, 3));
        cr_assert(eq(uint, users[3].done + users[4].done + users[5].done, 0));
        fake_world_end(&world);
        memset(users, 0, sizeof users);
    }
}

Test(cover_pool, waiters_give_up_in_any_order)
{
    static const unsigned orders[][4] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 2, 0, 3}};
    struct fake_user users[4] = {0};
    struct fake_world world;

    fake_world_begin(&world);
    fake_peer(&world, ADDRESS, TESTING_BLACK_HOLE);
    fake_world_open(&world);
    for (unsigned order = 0; order < 3; order++) {
        for (unsigned i = 0; i < 4; i++)
            fake_ask(&world, &users[i], ADDRESS);
        for (unsigned i = 0; i < 4; i++)
            cr_assert(eq(int, pool_cancel(&users[orders[order][i]].lease), 0));
    }
    cr_assert(eq(uint, fake_stats(&world).waiting, 0));
    fake_world_end(&world);
}

Test(cover_pool, targets_go_in_any_order)
{
    static const char *const addresses[] = {ADDRESS, OTHER};
    static const char *const names[] = {"a", "b", "c", "d"};
    struct pool_target *targets[4];
    struct fake_user users[4] = {0};
    struct fake_world world;

    begin(&world);
    fake_world_open(&world);
    for (unsigned i = 0; i < 4; i++) {
        targets[i] = fake_target(&world, names[i], &pool_round_robin, addresses, 2);
        cr_assert(ge(int, fake_ask_target(&world, &users[i], targets[i]), 0));
    }
    fake_run(&world, 0.1);
    pool_target_remove(targets[1]);
    cr_assert(eq(int, fake_ask_target(&world, &(struct fake_user){0}, targets[1]), LINKPOOL_ECLOSED));
    pool_target_remove(targets[1]); /* once is enough */
    cr_assert(eq(int, pool_target_start(targets[1]), LINKPOOL_ECLOSED));
    cr_assert(eq(int, pool_target_drain(targets[1], 1, NULL, NULL), LINKPOOL_ESTATE));
    cr_assert(eq(int, pool_target_update(targets[1], NULL, 0), LINKPOOL_ECLOSED));
    pool_target_remove(targets[3]);
    pool_target_remove(targets[0]);
    for (unsigned i = 4; i-- > 0;) {
        fake_give_back(&users[(i + 2) % 4]); /* their memory goes with the last lease, in another order */
        fake_run(&world, 0.01);
    }
    cr_assert(eq(uint, fake_stats(&world).targets, 1));
    fake_world_end(&world);
}

/* ---- hosts ---- */

Test(cover_pool, pins_are_taken_back_once_and_endpoints_weigh)
{
    struct pool_endpoint endpoint = {.size = sizeof endpoint, .address = ADDRESS, .weight = 3};
    struct pool_target_options options;
    struct fake_world world;

    begin(&world);
    fake_world_open(&world);
    pool_target_options_init(&options);
    options.endpoints = &endpoint;
    options.n_endpoints = 1;
    cr_assert(ne(ptr, pool_target_add(world.pool, "target", &options), NULL));
    struct pool_host *host = pool_host(world.pool, ADDRESS);
    pool_host_drop(host);
    pool_host_drop(host); /* none is left */
    cr_assert(eq(uint, fake_stats(&world).hosts, 1));
    fake_world_end(&world);
}

Test(cover_pool, a_host_that_drains_may_be_told_so_again)
{
    struct fake_user users[2] = {0};
    struct fake_world world;

    begin(&world);
    fake_world_open(&world);
    hold_all(&world, users, 2, ADDRESS);
    struct pool_host *host = users[0].lease.host;
    cr_assert(eq(int, pool_host_drain(host, 10), 0));
    cr_assert(eq(int, pool_host_drain(host, 5), 0));
    fake_give_back(&users[0]);
    fake_run(&world, 5.1);
    cr_assert(eq(uint, users[1].closed + (users[1].lease.channel != NULL), 1));
    cr_assert(eq(uint, fake_stats(&world).links, 0));
    fake_world_end(&world);
}

Test(cover_pool, what_is_recycled_keeps_its_time_when_options_change)
{
    struct fake_user users[2] = {0};
    struct pool_host_options options;
    struct fake_world world;

    begin(&world);
    fake_world_open(&world);
    hold_all(&world, users, 2, ADDRESS);
    struct pool_host *host = users[0].lease.host;
    fake_give_back(&users[0]);
    cr_assert(eq(int, pool_host_recycle(host, 0.5), 0)); /* in 2 s and 4 s */
    cr_assert(eq(int, pool_host_recycle(host, NAN), LINKPOOL_EINVAL));
    options = world.host;
    options.max_age = 100;
    cr_assert(eq(int, pool_host_set_options(host, &options), 0));
    fake_run(&world, 3);
    cr_assert(eq(uint, fake_stats(&world).links, 1));
    fake_run(&world, 2);
    fake_give_back(&users[1]);
    cr_assert(eq(uint, fake_stats(&world).links, 0));
    fake_world_end(&world);
}

Test(cover_pool, a_lowered_bound_of_a_host_ends_what_comes_back)
{
    struct fake_user users[3] = {0};
    struct pool_host_options options;
    struct fake_world world;

    begin(&world);
    fake_world_open(&world);
    hold_all(&world, users, 3, ADDRESS);
    options = world.host;
    options.max_links = 2;
    cr_assert(eq(int, pool_host_set_options(users[0].lease.host, &options), 0));
    give_back_in_order(users, (const unsigned[]){0, 1, 2}, 3);
    cr_assert(eq(uint, fake_stats(&world).links, 2));
    fake_world_end(&world);
}

/* ---- peers that are leaving ---- */

static struct protocol_link *the_link;
static int note_link(struct protocol_link *pl)
{
    the_link = pl;
    return protocol_ready(pl);
}

static struct protocol leaving;

/* A holder of a link whose peer has said that it is leaving. */
static void hold_what_leaves(struct fake_world *world, struct fake_user *user, const struct protocol *protocol)
{
    begin(world);
    leaving = *protocol;
    leaving.start = note_link;
    world->host.protocol = &leaving;
    fake_world_open(world);
    fake_hold(world, user, ADDRESS);
    cr_assert(eq(int, protocol_going(the_link, NULL, LINK_NO_REASON, NULL), 0));
}

Test(cover_pool, an_exclusive_link_whose_peer_leaves_ends_when_it_comes_back)
{
    struct fake_user user = {0};
    struct fake_world world;

    hold_what_leaves(&world, &user, &protocol_raw);
    cr_assert(eq(int, (int)link_state(the_link->link), LINK_DRAINING));
    fake_give_back(&user);
    cr_assert(eq(uint, fake_stats(&world).links, 0));
    cr_assert(eq(ulong, fake_stats(&world).ends[LINK_CLOSED_BY_PEER], 1));
    fake_world_end(&world);
}

Test(cover_pool, a_link_whose_peer_leaves_is_neither_recycled_nor_retired_again)
{
    static const char *const addresses[] = {ADDRESS, OTHER};
    struct fake_user user = {0}, other = {0};
    struct fake_world world;

    hold_what_leaves(&world, &user, &fake_shared);
    struct pool_target *target = fake_target(&world, "target", &pool_pick_first, addresses, 2);
    cr_assert(eq(int, pool_host_recycle(user.lease.host, 0), 0));
    cr_assert(eq(int, pool_target_recycle(target, NAN), LINKPOOL_EINVAL));
    cr_assert(eq(int, pool_target_recycle(target, 1), 0));
    cr_assert(eq(int, pool_target_update(target, NULL, 0), 0)); /* its host leaves its last target */
    cr_assert(eq(int, (int)link_state(the_link->link), LINK_DRAINING));
    cr_assert(eq(int, pool_host_drain(user.lease.host, 1), 0));
    fake_run(&world, 2);
    cr_assert(eq(uint, user.closed, 1));
    cr_assert(eq(uint, other.closed, 0));
    fake_world_end(&world);
}

Test(cover_pool, a_link_that_has_no_room_for_now_is_expected_to_serve_one)
{
    struct fake_user users[3] = {0};
    struct fake_world world;

    begin(&world);
    leaving = fake_shared;
    leaving.start = note_link;
    world.host.protocol = &leaving;
    fake_world_open(&world);
    fake_hold(&world, &users[0], ADDRESS);
    cr_assert(eq(int, protocol_set_room(the_link, 0), 0));
    fake_hold(&world, &users[1], ADDRESS); /* by another link */
    cr_assert(ne(ptr, channel_link(users[0].lease.channel), channel_link(users[1].lease.channel)));
    fake_world_end(&world);
}

/* ---- verdicts ---- */

/* All attempts are used up by an attempt that fails beside others: the last of them is the verdict all the same. */
Test(cover_pool, the_end_of_all_attempts_is_told_when_the_last_has_failed)
{
    struct fake_user users[4] = {0};
    struct fake_world world;

    fake_world_begin(&world);
    struct testing_peer *peer = fake_peer(&world, ADDRESS, TESTING_ACCEPT_AND_CLOSE);
    testing_peer_spread(peer, 1);
    testing_peer_delay(peer, 0.05, 0);
    world.backoff.max_attempts = 1;
    fake_world_open(&world);
    for (unsigned i = 0; i < 4; i++) {
        users[i].lease.flags = POOL_WAIT_FOR_READY;
        fake_ask(&world, &users[i], ADDRESS);
    }
    fake_run(&world, 6);
    for (unsigned i = 0; i < 4; i++)
        cr_assert(ne(int, users[i].status, POOL_PENDING));
    fake_world_end(&world);
}

Test(cover_pool, a_host_is_brought_back_while_its_other_attempts_are_under_way)
{
    struct fake_user users[3] = {0};
    struct fake_world world;

    fake_world_begin(&world);
    struct testing_peer *peer = fake_peer(&world, ADDRESS, TESTING_BLACK_HOLE);
    fake_world_open(&world);
    fake_ask(&world, &users[0], ADDRESS);
    fake_run(&world, 1);
    for (unsigned i = 1; i < 3; i++)
        fake_ask(&world, &users[i], ADDRESS);
    fake_run(&world, 2.1); /* the first has timed out, the others have not */
    cr_assert(eq(int, pool_host_start(fake_host(&world, ADDRESS)), 0));
    testing_peer_behave(peer, TESTING_ACCEPT);
    fake_run(&world, 1.5);
    cr_assert(eq(uint, fake_stats(&world).links > 0, 1));
    fake_world_end(&world);
}

/* ---- pickers ---- */

static int answer;
static int pick_as_told(const struct pool_pick *pick, const struct pool_lease *lease, uint64_t draw)
{
    (void)pick, (void)lease, (void)draw;
    return answer;
}
static const struct pool_picker told = {.size = sizeof told, .name = "told", .pick = pick_as_told};

Test(cover_pool, a_picker_that_names_no_host_of_the_list_makes_leases_wait)
{
    static const char *const addresses[] = {ADDRESS, OTHER};
    struct fake_user users[4] = {0};
    struct fake_world world;

    begin(&world);
    fake_world_open(&world);
    struct pool_target *target = fake_target(&world, "target", &told, addresses, 2);
    answer = 0;
    fake_ask_target(&world, &users[0], target);
    fake_run(&world, 0.1);
    fake_give_back(&users[0]); /* a free link on the first, */
    answer = 1;                /* and the picker wants the second */
    cr_assert(eq(int, fake_ask_target(&world, &users[1], target), POOL_PENDING));
    cr_assert(eq(int, pool_cancel(&users[1].lease), 0));
    answer = 7;
    cr_assert(eq(int, fake_ask_target(&world, &users[2], target), POOL_PENDING));
    answer = POOL_PICK_DOWN;
    cr_assert(eq(int, fake_ask_target(&world, &users[3], target), POOL_PENDING));
    fake_world_end(&world);
}

/* ---- words ---- */

Test(cover_pool, words_need_no_room)
{
    struct fake_user user = {0};
    struct fake_world world;
    char text[4] = "abc";

    begin(&world);
    fake_world_open(&world);
    cr_assert(ge(int, pool_explain(&user.lease, NULL, 0), 0));
    cr_assert(ge(int, pool_explain(&user.lease, text, sizeof text), 0));
    fake_ask(&world, &user, ADDRESS);
    cr_assert(lt(int, 0, pool_explain(&user.lease, NULL, 0)));
    cr_assert(lt(int, 3, pool_explain(&user.lease, text, sizeof text)));
    cr_assert(eq(sz, strlen(text), 3));
    fake_world_end(&world);
}

/* ---- a drain of everything, and calls that come after it ---- */

Test(cover_pool, a_pool_that_drains_answers_so)
{
    static const char *const addresses[] = {ADDRESS};
    struct fake_user user = {0}, late = {0};
    struct fake_world world;

    begin(&world);
    fake_world_open(&world);
    struct pool_target *target = fake_target(&world, "target", &pool_pick_first, addresses, 1);
    fake_hold(&world, &user, "target");
    cr_assert(eq(int, pool_drain(world.pool, INFINITY, NULL, NULL), 0));
    cr_assert(eq(int, fake_ask_target(&world, &late, target), LINKPOOL_ECLOSED));
    cr_assert(eq(int, pool_target_update(target, NULL, 0), LINKPOOL_ECLOSED));
    cr_assert(eq(int, pool_target_start(target), LINKPOOL_ECLOSED));
    cr_assert(eq(int, pool_host_start(user.lease.host), LINKPOOL_ECLOSED));
    cr_assert(eq(ptr, pool_host(world.pool, OTHER), NULL));
    cr_assert(eq(int, errno, ESHUTDOWN));
    cr_assert(eq(int, pool_target_drain(target, 1, NULL, NULL), 0));
    cr_assert(eq(int, fake_ask_target(&world, &late, target), LINKPOOL_ECLOSED));
    fake_give_back(&user);
    fake_run(&world, 2);
    cr_assert(eq(uint, fake_stats(&world).links, 0));
    fake_world_end(&world);
}
