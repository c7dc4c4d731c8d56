/* pool_acquire.c - leases from the wish to the channel: order, wishes, deadlines, errors, giving up. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <string.h>

#include "tests/fakes/world.h"

static const char a[] = "10.0.0.1:80", b[] = "10.0.0.2:80", c[] = "10.0.0.3:80";
static const char *const both[] = {a, b};

/* A world whose hosts have so many links at most, and an echoing peer at `a`. */
static struct testing_peer *begin(struct fake_world *world, unsigned max_links)
{
    fake_world_begin(world);
    world->host.max_links = max_links;
    fake_world_open(world);
    return fake_echo(world, a);
}

/* ---- ready, and pending ---- */

Test(pool_acquire, a_ready_link_is_handed_out_at_once_for_free)
{
    struct fake_user user = {0};
    struct fake_world world;

    begin(&world, 64);
    fake_hold(&world, &user, a);
    fake_give_back(&user);
    fake_settle(&world);
    uint64_t allocated = testing_allocations(world.t), calls = 0, since = 0;
    for (int call = 0; call < TESTING_CALLS; call++)
        calls += testing_calls(world.t, (enum testing_call)call);

    cr_assert(eq(int, fake_ask(&world, &user, a), POOL_READY));
    cr_assert(ne(ptr, user.lease.channel, NULL));
    cr_assert(eq(ptr, user.lease.host, fake_host(&world, a)));
    cr_assert(user.lease.reused);
    fake_give_back(&user);
    for (int call = 0; call < TESTING_CALLS; call++)
        since += testing_calls(world.t, (enum testing_call)call);
    cr_assert(eq(u64, testing_allocations(world.t), allocated));
    cr_assert(eq(u64, since, calls));
    fake_settle(&world);
    cr_assert(eq(uint, user.done, 1)); /* of the first time */
    fake_world_end(&world);
}

Test(pool_acquire, the_outcome_is_told_once_from_the_loop_never_inside_the_call)
{
    struct fake_user user = {0};
    struct fake_world world;

    begin(&world, 64);
    cr_assert(eq(int, fake_ask(&world, &user, a), POOL_PENDING));
    cr_assert(eq(int, user.lease.status, POOL_PENDING));
    cr_assert(eq(uint, user.done, 0));
    fake_run(&world, 10);
    cr_assert(eq(uint, user.done, 1));
    cr_assert(eq(int, user.status, POOL_READY));
    cr_assert(not(user.lease.reused));
    fake_world_end(&world);
}

/* ---- order ---- */

Test(pool_acquire, first_come_first_served)
{
    struct fake_user users[6] = {0};
    struct fake_world world;

    begin(&world, 1);
    for (int i = 0; i < 6; i++)
        cr_assert(eq(int, fake_ask(&world, &users[i], a), POOL_PENDING));
    for (unsigned i = 0; i < 6; i++) {
        fake_settle(&world);
        cr_assert(eq(uint, users[i].place, i + 1));
        cr_assert(eq(uint, world.told, i + 1));
        fake_give_back(&users[i]);
    }
    fake_world_end(&world);
}

Test(pool_acquire, a_newcomer_never_overtakes)
{
    struct fake_user holder = {0}, first = {0}, newcomer = {0};
    struct fake_world world;

    begin(&world, 1);
    fake_hold(&world, &holder, a);
    fake_ask(&world, &first, a);
    fake_give_back(&holder);
    cr_assert(eq(int, fake_ask(&world, &newcomer, a), POOL_PENDING));
    fake_settle(&world);
    cr_assert(eq(uint, first.done, 1));
    cr_assert(eq(uint, newcomer.done, 0));
    fake_world_end(&world);
}

Test(pool_acquire, the_lines_of_a_host_and_of_its_targets_are_served_by_ticket)
{
    static const char *const by[] = {"one", a, "two", a, "one", "two"};
    struct fake_user holder = {0}, users[6] = {0};
    struct fake_world world;

    begin(&world, 1);
    fake_target(&world, "one", &pool_round_robin, both, 1);
    fake_target(&world, "two", &pool_pick_first, both, 1);
    fake_hold(&world, &holder, a);
    for (int i = 0; i < 6; i++)
        cr_assert(eq(int, fake_ask(&world, &users[i], by[i]), POOL_PENDING));
    fake_give_back(&holder);
    for (unsigned i = 0; i < 6; i++) {
        fake_settle(&world);
        cr_assert(eq(uint, users[i].place, i + 2));
        fake_give_back(&users[i]);
    }
    fake_world_end(&world);
}

/* ---- wishes ---- */

Test(pool_acquire, fresh_takes_no_used_link)
{
    struct fake_user used = {0}, fresh = {.lease.flags = POOL_FRESH};
    struct fake_world world;

    struct testing_peer *peer = begin(&world, 64);
    fake_hold(&world, &used, a);
    fake_give_back(&used);
    cr_assert(eq(int, fake_ask(&world, &fresh, a), POOL_PENDING));
    fake_settle(&world);
    cr_assert(eq(int, fresh.status, POOL_READY));
    cr_assert(not(fresh.lease.reused));
    cr_assert(eq(uint, testing_peer_accepted(peer), 2));
    cr_assert(eq(uint, fake_stats(&world).idle, 1));
    fake_world_end(&world);
}

Test(pool_acquire, fresh_takes_an_unused_idle_link_at_once)
{
    struct fake_user fresh = {.lease.flags = POOL_FRESH};
    struct fake_world world;

    begin(&world, 64);
    cr_assert(eq(int, pool_host_start(pool_host(world.pool, a)), 0));
    fake_settle(&world);
    cr_assert(eq(int, fake_ask(&world, &fresh, a), POOL_READY));
    fake_world_end(&world);
}

Test(pool_acquire, fresh_makes_the_coldest_used_link_of_a_full_host_give_way)
{
    struct fake_user users[2] = {0}, fresh = {.lease.flags = POOL_FRESH};
    struct fake_world world;

    struct testing_peer *peer = begin(&world, 2);
    for (int i = 0; i < 2; i++)
        fake_hold(&world, &users[i], a);
    const struct link *first = channel_link(users[0].lease.channel), *second = channel_link(users[1].lease.channel);
    cr_assert(ne(ptr, (void *)first, (void *)second));
    for (int i = 0; i < 2; i++) {
        fake_give_back(&users[i]);
        fake_run(&world, 1);
    }
    fake_ask(&world, &fresh, a);
    fake_settle(&world);
    cr_assert(eq(int, fresh.status, POOL_READY));
    cr_assert(not(fresh.lease.reused));
    cr_assert(eq(uint, testing_peer_open(peer), 2));
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_MADE_ROOM], 1));
    cr_assert(eq(int, fake_ask(&world, &users[0], a), POOL_READY));
    cr_assert(eq(ptr, (void *)channel_link(users[0].lease.channel), (void *)second));
    fake_world_end(&world);
}

Test(pool_acquire, a_wish_that_is_not_met_lets_those_behind_it_pass)
{
    struct fake_user holder = {0}, fresh = {.lease.flags = POOL_FRESH}, plain = {0};
    struct fake_world world;

    begin(&world, 1);
    fake_hold(&world, &holder, a);
    fake_ask(&world, &fresh, a);
    fake_ask(&world, &plain, a);
    fake_give_back(&holder);
    fake_settle(&world);
    cr_assert(eq(uint, plain.done, 1));
    cr_assert(eq(uint, fresh.done, 0));
    fake_give_back(&plain);
    fake_settle(&world);
    cr_assert(eq(int, fresh.status, POOL_READY));
    cr_assert(not(fresh.lease.reused));
    fake_world_end(&world);
}

Test(pool_acquire, who_starves_for_an_unused_link_has_the_place_of_one_that_comes_back)
{
    struct fake_user user = {0}, fresh = {.lease.flags = POOL_FRESH};
    struct fake_world world;

    fake_world_begin(&world);
    world.options.max_links = 1;
    fake_world_open(&world);
    fake_echo(&world, a);
    fake_hold(&world, &user, a);
    cr_assert(eq(int, fake_ask(&world, &fresh, a), POOL_PENDING));
    fake_run(&world, 0.1);
    fake_give_back(&user);
    fake_run(&world, 0.1);
    cr_assert(eq(int, fresh.status, POOL_READY));
    cr_assert(not(fresh.lease.reused));
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_MADE_ROOM], 1));
    fake_give_back(&fresh);
    fake_world_end(&world);
}

/* The picker names the host that has none free, which may not open another just now. */
Test(pool_acquire, an_unused_link_is_opened_where_one_may_be_whatever_the_picker_prefers)
{
    struct fake_user used = {0}, fresh[2] = {{.lease.flags = POOL_FRESH}, {.lease.flags = POOL_FRESH}};
    struct fake_world world;

    fake_world_begin(&world);
    world.host.first_connecting = world.host.max_connecting = 1;
    fake_world_open(&world);
    struct testing_peer *silent = fake_peer(&world, b, TESTING_BLACK_HOLE), *peer = fake_echo(&world, a);
    struct pool_target *target = fake_target(&world, "db", &pool_round_robin, (const char *const[]){b, a}, 2);
    fake_hold(&world, &used, a);
    fake_give_back(&used);
    for (int i = 0; i < 2; i++)
        cr_assert(eq(int, fake_ask_target(&world, &fresh[i], target), POOL_PENDING));
    fake_run(&world, 0.5);
    cr_assert(eq(uint, testing_peer_attempts(silent), 1));
    cr_assert(eq(uint, testing_peer_attempts(peer), 2));
    cr_assert(eq(int, fresh[0].status, POOL_READY)); /* it is first in line for what comes up first */
    cr_assert(not(fresh[0].lease.reused));
    fake_world_end(&world);
}

Test(pool_acquire, avoid_asks_for_another_host)
{
    const struct pool_picker *const pickers[] = {&pool_pick_first, &pool_round_robin};

    for (int i = 0; i < 2; i++) {
        struct fake_user user = {0};
        struct fake_world world;
        begin(&world, 64);
        fake_echo(&world, b);
        struct pool_target *target = fake_target(&world, "db", pickers[i], both, 2);
        for (int k = 0; k < 5; k++) {
            user.lease.avoid = pool_target_host(target, 0);
            fake_hold(&world, &user, "db");
            cr_assert(eq(ptr, user.lease.host, pool_target_host(target, 1)));
            fake_give_back(&user);
        }
        fake_world_end(&world);
    }
}

Test(pool_acquire, the_wish_of_one_lease_moves_nobody_else)
{
    struct fake_user user = {0}, next = {0};
    struct fake_world world;

    begin(&world, 64);
    fake_echo(&world, b);
    struct pool_target *target = fake_target(&world, "db", &pool_pick_first, both, 2);
    user.lease.avoid = pool_target_host(target, 0);
    fake_hold(&world, &user, "db");
    fake_give_back(&user);
    fake_hold(&world, &next, "db");
    cr_assert(eq(ptr, next.lease.host, pool_target_host(target, 0)));
    fake_world_end(&world);
}

Test(pool_acquire, avoid_holds_only_while_another_host_can)
{
    const struct pool_picker *const pickers[] = {&pool_pick_first, &pool_round_robin};

    for (int i = 0; i < 2; i++) {
        struct fake_user user = {0};
        struct fake_world world;
        begin(&world, 64);
        struct pool_target *target = fake_target(&world, "db", pickers[i], both, 2);
        cr_assert(eq(int, pool_host_drain(pool_target_host(target, 1), 0), 0));
        user.lease.avoid = pool_target_host(target, 0);
        fake_hold(&world, &user, "db");
        cr_assert(eq(ptr, user.lease.host, pool_target_host(target, 0)));
        fake_world_end(&world);
    }
}

/* ---- deadlines ---- */

Test(pool_acquire, the_deadline_is_five_seconds_where_nobody_says_another)
{
    struct fake_user user = {0};
    struct fake_world world;

    begin(&world, 1);
    struct fake_user holder = {0};
    fake_hold(&world, &holder, a);
    double asked = testing_now(world.t);
    fake_ask(&world, &user, a);
    fake_run(&world, 4.999);
    cr_assert(eq(uint, user.done, 0));
    fake_run(&world, 1);
    cr_assert(eq(int, user.status, LINKPOOL_ETIMEDOUT));
    cr_assert(epsilon_eq(dbl, user.told_at - asked, 5, 1e-9));
    cr_assert(eq(int, user.lease.stage, POOL_STAGE_LINE));
    fake_world_end(&world);
}

Test(pool_acquire, nothing_rearms_a_deadline)
{
    struct fake_user user = {.lease = {.timeout = 7, .flags = POOL_WAIT_FOR_READY}};
    struct fake_world world;

    struct testing_peer *peer = begin(&world, 4);
    testing_peer_behave(peer, TESTING_ACCEPT_AND_RESET); /* links come and go all the while */
    struct pool_target *target = fake_target(&world, "db", &pool_round_robin, both, 2);
    cr_assert(eq(int, pool_host_drain(pool_target_host(target, 0), INFINITY), 0));
    testing_peer_free(peer);
    double asked = testing_now(world.t);
    fake_ask(&world, &user, "db");
    for (int i = 0; i < 6; i++) {
        fake_run(&world, 1);
        pool_reset_backoff(world.pool);
        pool_target_update(
            target, &(struct pool_endpoint){.size = sizeof(struct pool_endpoint), .address = i % 2 ? b : c}, 1);
    }
    cr_assert(eq(uint, user.done, 0));
    fake_run(&world, 5);
    cr_assert(eq(int, user.status, LINKPOOL_ETIMEDOUT));
    cr_assert(epsilon_eq(dbl, user.told_at - asked, 7, 1e-9));
    fake_world_end(&world);
}

Test(pool_acquire, a_shorter_time_holds_for_those_who_come_after_it_was_set)
{
    struct fake_user holder = {0}, before = {0}, after = {0};
    struct fake_world world;

    begin(&world, 1);
    fake_hold(&world, &holder, a);
    double asked = testing_now(world.t);
    fake_ask(&world, &before, a);
    world.options.wait_timeout = 1;
    cr_assert(eq(int, pool_set_options(world.pool, &world.options), 0));
    fake_ask(&world, &after, a);
    fake_run(&world, 10);
    cr_assert(epsilon_eq(dbl, after.told_at - asked, 1, 1e-9));
    cr_assert(epsilon_eq(dbl, before.told_at - asked, 5, 1e-9));
    fake_world_end(&world);
}

Test(pool_acquire, each_lease_may_have_a_time_of_its_own)
{
    static const double times[] = {3, 0, 0.5, 9, INFINITY};
    static const double expected[] = {3, 5, 0.5, 9};
    struct fake_user holder = {0}, users[5] = {0};
    struct fake_world world;

    begin(&world, 1);
    fake_hold(&world, &holder, a);
    double asked = testing_now(world.t);
    for (int i = 0; i < 5; i++) {
        users[i].lease.timeout = times[i];
        fake_ask(&world, &users[i], a);
    }
    fake_run(&world, 1e6);
    for (int i = 0; i < 4; i++) {
        cr_assert(eq(int, users[i].status, LINKPOOL_ETIMEDOUT));
        cr_assert(epsilon_eq(dbl, users[i].told_at - asked, expected[i], 1e-9));
    }
    cr_assert(eq(uint, users[4].done, 0)); /* INFINITY: none */
    fake_give_back(&holder);
    fake_settle(&world);
    cr_assert(eq(int, users[4].status, POOL_READY));
    fake_world_end(&world);
}

Test(pool_acquire, the_stage_says_what_ate_the_deadline)
{
    struct fake_user connecting = {.lease.timeout = 1},
                     backing_off = {.lease = {.timeout = 1, .flags = POOL_WAIT_FOR_READY}};
    struct fake_world world;

    fake_world_begin(&world);
    world.backoff.base = world.backoff.cap = 60;
    fake_world_open(&world);
    fake_peer(&world, a, TESTING_BLACK_HOLE);
    fake_peer(&world, b, TESTING_REFUSE);
    fake_ask(&world, &connecting, a);
    fake_ask(&world, &backing_off, b);
    fake_run(&world, 1.5);
    cr_assert(eq(int, connecting.lease.stage, POOL_STAGE_CONNECT));
    cr_assert(eq(int, backing_off.lease.stage, POOL_STAGE_BACKOFF));
    cr_assert(eq(int, backing_off.lease.reason, LINK_REFUSED));
    fake_world_end(&world);
}

/* ---- errors ---- */

Test(pool_acquire, wrong_leases_are_refused_and_nothing_is_kept)
{
    static const struct pool_lease wrong[] = {{.timeout = -1}, {.timeout = -INFINITY}, {.timeout = NAN},
        {.timeout = 11 * 366 * 86400.0}, {.flags = 4}, {.flags = 0x80000001}};
    struct fake_world world;

    begin(&world, 64);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct fake_user user = {.lease = wrong[i]};
        cr_assert(eq(int, fake_ask(&world, &user, a), LINKPOOL_EINVAL, "%zu", i));
        cr_assert(eq(int, user.lease.status, LINKPOOL_EINVAL));
    }
    struct pool_lease nobody = {0};
    cr_assert(eq(int, pool_acquire(world.pool, a, &nobody), LINKPOOL_EINVAL));
    fake_run(&world, 1);
    cr_assert(eq(uint, fake_stats(&world).waiting, 0));
    cr_assert(eq(u64, fake_stats(&world).opened, 0));
    fake_world_end(&world);
}

Test(pool_acquire, what_is_neither_address_nor_target_is_refused)
{
    static const char *const texts[] = {"db", "", "db:5432", "10.0.0.1:0", "10.0.0.1:65536", "10.0.0.1", ":80"};
    struct fake_world world;

    begin(&world, 64);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct fake_user user = {0};
        cr_assert(eq(int, fake_ask(&world, &user, texts[i]), LINKPOOL_EADDRESS, "%s", texts[i]));
        cr_assert(eq(int, user.lease.status, LINKPOOL_EADDRESS));
    }
    cr_assert(eq(uint, fake_stats(&world).hosts, 0));
    cr_assert(eq(uint, fake_stats(&world).names, 0));
    fake_world_end(&world);
}

Test(pool_acquire, a_lease_that_waits_or_holds_is_left_alone)
{
    struct fake_user holder = {0}, waiter = {0};
    struct fake_world world;

    begin(&world, 1);
    fake_hold(&world, &holder, a);
    fake_ask(&world, &waiter, a);
    struct channel *channel = holder.lease.channel;
    cr_assert(eq(int, pool_acquire(world.pool, a, &holder.lease), LINKPOOL_ESTATE));
    cr_assert(eq(int, pool_acquire(world.pool, "nothing", &waiter.lease), LINKPOOL_ESTATE));
    cr_assert(eq(int, pool_acquire_host(holder.lease.host, &waiter.lease), LINKPOOL_ESTATE));
    cr_assert(eq(ptr, holder.lease.channel, channel));
    cr_assert(eq(int, waiter.lease.status, POOL_PENDING));
    fake_give_back(&holder);
    fake_settle(&world);
    cr_assert(eq(int, waiter.status, POOL_READY));
    fake_world_end(&world);
}

Test(pool_acquire, a_failed_lease_may_be_used_again)
{
    struct fake_user user = {0};
    struct fake_world world;

    struct testing_peer *peer = begin(&world, 64);
    testing_peer_behave(peer, TESTING_REFUSE);
    fake_ask(&world, &user, a);
    fake_run(&world, 0.01);
    cr_assert(eq(int, user.status, LINKPOOL_EUNAVAILABLE));
    cr_assert(eq(int, user.lease.reason, LINK_REFUSED));
    cr_assert(ne(int, user.lease.system_errno, 0));
    testing_peer_behave(peer, TESTING_ACCEPT);
    fake_run(&world, 5);
    fake_hold(&world, &user, a);
    cr_assert(eq(int, user.lease.reason, LINK_NO_REASON));
    cr_assert(eq(int, user.lease.system_errno, 0));
    fake_world_end(&world);
}

/* ---- giving up ---- */

Test(pool_acquire, a_cancelled_lease_is_never_told)
{
    struct fake_user holder = {0}, users[3] = {0};
    struct fake_world world;

    begin(&world, 1);
    fake_hold(&world, &holder, a);
    for (int i = 0; i < 3; i++)
        fake_ask(&world, &users[i], a);
    cr_assert(eq(int, pool_cancel(&users[1].lease), 0));
    cr_assert(eq(int, pool_cancel(&users[1].lease), LINKPOOL_ESTATE));
    cr_assert(eq(int, pool_cancel(&holder.lease), LINKPOOL_ESTATE)); /* it does not wait */
    fake_give_back(&holder);
    fake_settle(&world);
    fake_give_back(&users[0]);
    fake_settle(&world);
    cr_assert(eq(uint, users[1].done, 0));
    cr_assert(eq(uint, users[2].done, 1));
    cr_assert(eq(u64, fake_stats(&world).cancelled, 1));
    fake_world_end(&world);
}

Test(pool_acquire, an_attempt_nobody_waits_for_any_more_ends_as_an_idle_link)
{
    struct fake_user user = {0};
    struct fake_world world;

    struct testing_peer *peer = begin(&world, 64);
    testing_peer_delay(peer, 0.1, 0);
    fake_ask(&world, &user, a);
    fake_settle(&world);
    cr_assert(eq(int, pool_cancel(&user.lease), 0));
    fake_run(&world, 1);
    cr_assert(eq(uint, fake_stats(&world).idle, 1));
    cr_assert(eq(uint, user.done, 0));
    fake_world_end(&world);
}

Test(pool_acquire, a_winner_cancelled_before_it_was_told_passes_the_win_on)
{
    struct fake_user holder = {0}, winner = {0}, next = {0};
    struct fake_world world;

    begin(&world, 1);
    fake_hold(&world, &holder, a);
    fake_ask(&world, &winner, a);
    fake_ask(&world, &next, a);
    fake_give_back(&holder);
    cr_assert(eq(int, pool_cancel(&winner.lease), 0));
    fake_settle(&world);
    cr_assert(eq(uint, winner.done, 0));
    cr_assert(eq(int, next.status, POOL_READY));
    cr_assert(eq(u64, fake_host_stats(next.lease.host).uses, 3)); /* the winner's counts: it had been granted */
    fake_world_end(&world);
}

Test(pool_acquire, a_failure_cancelled_before_it_was_told_is_not_told)
{
    struct pool_target_options options;
    struct fake_user user = {0};
    struct fake_world world;

    begin(&world, 1);
    pool_target_options_init(&options);
    struct pool_target *target = pool_target_add(world.pool, "later", &options);
    cr_assert(eq(int, fake_ask_target(&world, &user, target), POOL_PENDING));
    pool_target_remove(target);
    cr_assert(eq(int, pool_cancel(&user.lease), 0));
    fake_run(&world, 10);
    cr_assert(eq(uint, user.done, 0));
    fake_world_end(&world);
}

/* In `done`, gives the channel back at once: who is next has won, and is told after the next poll. */
struct hasty {
    struct pool_lease lease;
    struct testing_peer *peer;
};

static void give_back_and_cut(struct pool_lease *lease)
{
    struct hasty *hasty = lease->data;

    pool_release(lease, POOL_REUSE);
    testing_peer_cut(hasty->peer, LINK_CLOSED_BY_PEER);
}

Test(pool_acquire, a_winner_whose_link_dies_before_it_was_told_goes_back_to_its_place)
{
    struct fake_user holder = {0}, winner = {0}, behind = {0};
    struct fake_world world;

    struct testing_peer *peer = begin(&world, 1);
    struct hasty hasty = {.lease.done = give_back_and_cut, .peer = peer};
    hasty.lease.data = &hasty;
    fake_hold(&world, &holder, a);
    fake_run(&world, 11); /* its end is no failure any more */
    pool_acquire(world.pool, a, &hasty.lease);
    fake_ask(&world, &winner, a);
    fake_ask(&world, &behind, a);
    fake_give_back(&holder);
    fake_run(&world, 4);
    cr_assert(eq(uint, winner.done, 1)); /* once, */
    cr_assert(eq(int, winner.status, POOL_READY));
    cr_assert(eq(uint, testing_peer_accepted(peer), 2)); /* of another link, */
    cr_assert(eq(uint, behind.done, 0));                 /* before those behind it */
    fake_exchange(&world, &winner);
    fake_world_end(&world);
}

Test(pool_acquire, a_pool_that_has_room_again_is_not_called_full)
{
    struct fake_user holder = {0}, waiter = {0};
    struct fake_world world;
    char text[400];

    fake_world_begin(&world);
    world.options.max_links = 1;
    fake_world_open(&world);
    fake_echo(&world, a);
    fake_echo(&world, b);
    fake_hold(&world, &holder, a);
    fake_ask(&world, &waiter, b);
    fake_settle(&world);
    pool_explain(&waiter.lease, text, sizeof text);
    cr_assert(ne(ptr, strstr(text, "the pool is full: 1 of 1"), NULL), "%s", text);
    world.options.max_links = 2;
    cr_assert(eq(int, pool_set_options(world.pool, &world.options), 0));
    pool_explain(&waiter.lease, text, sizeof text);
    cr_assert(eq(ptr, strstr(text, "the pool is full"), NULL), "%s", text);
    fake_run(&world, 0.1);
    cr_assert(eq(int, waiter.status, POOL_READY));
    fake_world_end(&world);
}

/* It is found out as the link is handed on, in the turn in which it came back. */
Test(pool_acquire, a_target_whose_one_free_link_turns_out_to_be_dead_opens_another)
{
    struct fake_user first = {0}, second = {0};
    struct fake_world world;

    struct testing_peer *peer = begin(&world, 1);
    struct pool_target *target = fake_target(&world, "db", &pool_pick_first, both, 1);
    fake_hold(&world, &first, "db");
    fake_send(&first, "x");
    fake_settle(&world);
    char byte;
    cr_assert(eq(long, channel_read(first.lease.channel, &byte, 1), 1)); /* it filled its buffer */
    testing_peer_cut(peer, LINK_CLOSED_BY_PEER);
    fake_give_back(&first);
    cr_assert(eq(int, fake_ask_target(&world, &second, target), POOL_PENDING));
    fake_run(&world, 1);
    cr_assert(eq(int, second.status, POOL_READY));
    cr_assert(not(second.lease.reused));
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_CLOSED_BY_PEER], 1));
    fake_give_back(&second);
    fake_world_end(&world);
}
