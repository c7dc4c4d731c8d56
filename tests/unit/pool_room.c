/* pool_room.c - how many channels of shared links are lent, of which link, and when another link is opened: over framed
 * links, whose peer names its limit. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <string.h>

#include "tests/fakes/framed_stage.h"
#include "tests/fakes/shared.h"

enum {
    MOST = 12
};

static struct framed_stage stage;
static struct fake_user users[MOST];

/* Links of a peer that allows `channels` each, of which `ours` are lent at most. */
static void begin(unsigned channels, unsigned ours, unsigned max_links)
{
    framed_stage_begin(&stage);
    stage.server.calls.channels = channels;
    stage.world.host.max_channels = ours;
    stage.world.host.max_links = max_links;
}

static void hold(unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++)
        fake_hold(&stage.world, &users[i], framed_address);
}

static unsigned links_opened(void)
{
    return (unsigned)fake_stats(&stage.world).opened;
}

/* The how manieth of its host's links by age, from 0. */
static unsigned link_of(unsigned i)
{
    const struct pool_host *host = users[i].lease.host;
    struct link_stats its, other;
    unsigned older = 0;

    link_stats(channel_link(users[i].lease.channel), &its, sizeof its);
    for (const struct link *link = NULL; (link = pool_host_next_link(host, link));) {
        link_stats(link, &other, sizeof other);
        older += other.id < its.id;
    }
    return older;
}

/* Which link each of them has, as letters by age. */
static const char *links_of(unsigned from, unsigned to)
{
    static char letters[MOST + 1];

    for (unsigned i = from; i < to; i++)
        letters[i - from] = (char)('a' + link_of(i));
    letters[to - from] = '\0';
    return letters;
}

/* ---- our own cap ---- */

Test(pool_room, our_own_cap_bounds_any_shared_link)
{
    begin(100, 3, 2);
    framed_stage_open(&stage);
    hold(0, 6);
    cr_assert(eq(uint, links_opened(), 2));
    cr_assert(eq(str, (char *)links_of(0, 6), "aaabbb"));
    cr_assert(eq(uint, framed_stats(&stage).room, 3));
    cr_assert(eq(uint, framed_stats(&stage).free, 0));
    cr_assert(eq(int, fake_ask(&stage.world, &users[6], framed_address), POOL_PENDING));
    fake_run(&stage.world, 1);
    cr_assert(eq(int, users[6].status, POOL_PENDING));
    fake_give_back(&users[4]);
    fake_settle(&stage.world);
    cr_assert(eq(int, users[6].status, POOL_READY));
    framed_stage_end(&stage);
}

Test(pool_room, our_own_cap_is_no_more_than_the_peer_allows)
{
    begin(2, 5, 1);
    framed_stage_open(&stage);
    hold(0, 2);
    cr_assert(eq(int, fake_ask(&stage.world, &users[2], framed_address), POOL_PENDING));
    framed_session_limit(stage.server.session, 3);
    fake_settle(&stage.world);
    cr_assert(eq(int, users[2].status, POOL_READY));
    framed_session_limit(stage.server.session, 1000);
    fake_settle(&stage.world);
    cr_assert(eq(uint, framed_stats(&stage).room, 5));
    cr_assert(eq(uint, framed_stats(&stage).free, 2));
    framed_stage_end(&stage);
}

Test(pool_room, links_that_are_leased_whole_have_no_cap)
{
    struct fake_world world;
    struct fake_user user = {0};

    fake_world_begin(&world);
    world.host.max_channels = 7;
    fake_world_open(&world);
    fake_echo(&world, framed_address);
    fake_hold(&world, &user, framed_address);
    struct link_stats stats;
    link_stats(channel_link(user.lease.channel), &stats, sizeof stats);
    cr_assert(eq(uint, stats.room, 1));
    cr_assert(eq(uint, stats.free, 0));
    fake_give_back(&user);
    link_stats(pool_host_next_link(user.lease.host, NULL), &stats, sizeof stats);
    cr_assert(eq(uint, stats.free, 1));
    fake_world_end(&world);
}

static void set_cap(unsigned cap)
{
    stage.world.host.max_channels = cap;
    cr_assert(eq(int, pool_host_set_options(fake_host(&stage.world, framed_address), &stage.world.host), 0));
}

Test(pool_room, the_cap_may_change_while_links_are_up)
{
    begin(100, 2, 1);
    framed_stage_open(&stage);
    hold(0, 2);
    cr_assert(eq(int, fake_ask(&stage.world, &users[2], framed_address), POOL_PENDING));
    cr_assert(eq(int, fake_ask(&stage.world, &users[3], framed_address), POOL_PENDING));
    set_cap(3);
    fake_settle(&stage.world);
    cr_assert(eq(int, users[2].status, POOL_READY));
    cr_assert(eq(int, users[3].status, POOL_PENDING));
    set_cap(1); /* below what is in use: those go on */
    fake_settle(&stage.world);
    cr_assert(eq(uint, framed_stats(&stage).channels, 3));
    cr_assert(eq(uint, framed_stats(&stage).room, 1));
    fake_give_back(&users[0]);
    fake_give_back(&users[1]);
    fake_settle(&stage.world);
    cr_assert(eq(int, users[3].status, POOL_PENDING));
    fake_give_back(&users[2]);
    fake_settle(&stage.world);
    cr_assert(eq(int, users[3].status, POOL_READY));
    set_cap(0); /* none: the peer's number alone */
    cr_assert(eq(uint, framed_stats(&stage).room, 100));
    framed_stage_end(&stage);
}

/* They wait for a place in the pool, where there is none, and have one in the link that is there. */
Test(pool_room, those_who_starve_in_a_full_pool_are_served_where_the_cap_is_raised)
{
    begin(100, 2, 2);
    stage.world.options.max_links = 1;
    framed_stage_open(&stage);
    hold(0, 2);
    cr_assert(eq(int, fake_ask(&stage.world, &users[2], framed_address), POOL_PENDING));
    fake_settle(&stage.world);
    struct pool_target *target =
        fake_target(&stage.world, "all", &pool_round_robin, (const char *const[]){framed_address}, 1);
    set_cap(3);
    cr_assert(eq(int, fake_ask_target(&stage.world, &users[3], target), POOL_PENDING)); /* overtakes nobody */
    fake_settle(&stage.world);
    cr_assert(eq(int, users[2].status, POOL_READY));
    framed_stage_end(&stage);
}

Test(pool_room, the_cap_may_change_while_a_link_comes_up)
{
    begin(100, 1, 1);
    stage.server.calls.silent = true;
    framed_stage_open(&stage);
    for (unsigned i = 0; i < 3; i++)
        fake_ask(&stage.world, &users[i], framed_address);
    fake_settle(&stage.world);
    set_cap(2);
    framed_session_welcome(stage.server.session);
    fake_settle(&stage.world);
    cr_assert(eq(uint, framed_stats(&stage).channels, 2));
    cr_assert(eq(int, users[2].status, POOL_PENDING));
    framed_stage_end(&stage);
}

/* ---- which link ---- */

Test(pool_room, the_oldest_link_with_room_is_filled_first)
{
    begin(3, 0, 3);
    framed_stage_open(&stage);
    hold(0, 9);
    cr_assert(eq(str, (char *)links_of(0, 9), "aaabbbccc"));
    fake_give_back(&users[8]);
    fake_give_back(&users[4]);
    fake_give_back(&users[1]);
    hold(9, 12); /* in whatever order they came back */
    cr_assert(eq(str, (char *)links_of(9, 12), "abc"));
    framed_stage_end(&stage);
}

Test(pool_room, where_links_are_spread_each_has_its_turn)
{
    begin(4, 0, 3);
    stage.world.host.spread_links = true;
    framed_stage_open(&stage);
    hold(0, 12);
    cr_assert(eq(str, (char *)links_of(0, 12), "aaaabbbbcccc")); /* each is opened only when those before are full */
    for (unsigned i = 0; i < 12; i++)
        if (i % 4) /* one stays on each */
            fake_give_back(&users[i]);
    unsigned on[3] = {0};
    for (unsigned i = 0; i < 12; i++)
        if (i % 4) {
            fake_hold(&stage.world, &users[i], framed_address);
            on[link_of(i)]++;
            if (i == 3 || i == 7) /* after each round all have had as many */
                for (unsigned k = 0; k < 3; k++)
                    cr_assert(eq(uint, on[k], i == 3 ? 1 : 2));
        }
    cr_assert(eq(uint, links_opened(), 3));
    framed_stage_end(&stage);
}

/* ---- another link ---- */

Test(pool_room, no_other_link_is_opened_while_one_has_room_or_comes_up_with_enough)
{
    begin(4, 0, 8);
    framed_stage_open(&stage);
    hold(0, 4); /* the limit is known now */
    cr_assert(eq(uint, links_opened(), 1));
    testing_peer_delay(stage.server.peer, 0.1, 0);
    for (unsigned i = 4; i < 8; i++) /* a second will serve all four */
        cr_assert(eq(int, fake_ask(&stage.world, &users[i], framed_address), POOL_PENDING));
    fake_run(&stage.world, 0.05);
    cr_assert(eq(uint, links_opened(), 2));
    cr_assert(eq(int, fake_ask(&stage.world, &users[8], framed_address), POOL_PENDING));
    fake_run(&stage.world, 0.01);
    cr_assert(eq(uint, links_opened(), 3)); /* and the ninth needs a third */
    fake_run(&stage.world, 1);
    for (unsigned i = 0; i < 9; i++)
        cr_assert(eq(int, users[i].status, POOL_READY));
    for (unsigned i = 9; i < 12; i++) /* room is there */
        cr_assert(eq(int, fake_ask(&stage.world, &users[i], framed_address), POOL_READY));
    cr_assert(eq(uint, links_opened(), 3));
    framed_stage_end(&stage);
}

Test(pool_room, one_who_waits_no_more_when_the_turn_ends_opens_nothing)
{
    begin(1, 0, 8);
    framed_stage_open(&stage);
    hold(0, 1);
    cr_assert(eq(int, fake_ask(&stage.world, &users[1], framed_address), POOL_PENDING));
    cr_assert(eq(int, pool_cancel(&users[1].lease), 0));
    cr_assert(eq(int, fake_ask(&stage.world, &users[2], framed_address), POOL_PENDING));
    fake_give_back(&users[0]); /* in the same turn: it has that one */
    fake_run(&stage.world, 1);
    cr_assert(eq(int, users[2].status, POOL_READY));
    cr_assert(eq(uint, links_opened(), 1));
    framed_stage_end(&stage);
}

/* ---- until the peer has said ---- */

static struct link_attempt attempt;

static int keep(struct protocol_link *pl)
{
    attempt = protocol_attempt(pl);
    return protocol_ready(pl);
}

Test(pool_room, no_more_are_lent_than_a_peer_that_has_named_no_limit_is_known_to_take)
{
    struct protocol protocol = fake_shared;
    struct fake_world world;

    protocol.start = keep;
    protocol.max_channels = 2;
    fake_world_begin(&world);
    world.host.protocol = &protocol;
    world.host.max_links = 1;
    fake_world_open(&world);
    fake_echo(&world, framed_address);
    for (unsigned i = 0; i < 5; i++)
        fake_ask(&world, &users[i], framed_address);
    fake_run(&world, 1);
    cr_assert(eq(uint, fake_stats(&world).leased, 2));
    cr_assert(eq(uint, fake_stats(&world).waiting, 3));
    cr_assert(eq(int, protocol_set_room(protocol_attempt_link(attempt), 4), 0));
    fake_settle(&world);
    cr_assert(eq(uint, fake_stats(&world).leased, 4));
    cr_assert(eq(uint, fake_stats(&world).waiting, 1));
    fake_world_end(&world);
}

Test(pool_room, to_a_peer_nobody_knows_each_who_waits_has_an_attempt_and_the_first_up_serves_all)
{
    begin(100, 0, 8);
    testing_peer_delay(stage.server.peer, 0.1, 0);
    framed_stage_open(&stage);
    for (unsigned i = 0; i < 3; i++)
        fake_ask(&stage.world, &users[i], framed_address);
    fake_run(&stage.world, 0.05);
    cr_assert(eq(uint, links_opened(), 3)); /* each is taken to carry one */
    fake_run(&stage.world, 1);
    cr_assert(eq(str, (char *)links_of(0, 3), "aaa"));
    for (unsigned i = 3; i < 12; i++)
        cr_assert(eq(int, fake_ask(&stage.world, &users[i], framed_address), POOL_READY));
    cr_assert(eq(uint, links_opened(), 3));
    framed_stage_end(&stage);
}

/* ---- links that can carry nobody ---- */

enum {
    HOSTS = 2
};

static struct framed_peer full[HOSTS];

static const char *full_address(unsigned i)
{
    static const char *const addresses[HOSTS] = {"10.0.1.1:80", "10.0.1.2:80"};

    return addresses[i];
}

/* Servers that allow no channel, and who waits for each of them for ten seconds. */
static void begin_full(unsigned max_links)
{
    begin(0, 0, max_links);
    stage.world.backoff = backoff_linkd; /* 0.2, 0.4, 0.8, ... 10 s, each +-20 % */
    stage.world.host.backoff = &stage.world.backoff;
}

static void wait_at_full(unsigned hosts, unsigned flags)
{
    for (unsigned i = 0; i < hosts; i++) {
        memset(&full[i], 0, sizeof full[i]);
        framed_peer_begin(&full[i], fake_peer(&stage.world, full_address(i), TESTING_ACCEPT));
        full[i].calls.channels = 0;
        testing_peer_delay(full[i].peer, 0.001, 0);
        users[i].lease.flags = flags;
        users[i].lease.timeout = 60;
        fake_ask(&stage.world, &users[i], full_address(i));
    }
}

/* Two at once, and six or seven after 0.2, 0.6, 1.4, 3, 6.2 and 12.6 s, a fifth more or less. */
static void expect_paced(const struct testing_peer *peer)
{
    cr_assert(ge(uint, testing_peer_attempts(peer), 6));
    cr_assert(le(uint, testing_peer_attempts(peer), 8));
    cr_assert(lt(dbl, testing_peer_attempt_at(peer, 1) - testing_peer_attempt_at(peer, 0), 0.1));
    for (unsigned i = 2; i < testing_peer_attempts(peer); i++) {
        double gap = testing_peer_attempt_at(peer, i) - testing_peer_attempt_at(peer, i - 1);
        cr_assert(ge(dbl, gap, 0.8 * 0.1 * (1 << i) / 2));
    }
}

static void end_full(unsigned hosts)
{
    for (unsigned i = 0; i < hosts; i++)
        cr_assert(eq(int, users[i].status, POOL_PENDING)); /* no failure: nothing fails fast */
    framed_stage_end(&stage);
}

Test(pool_room, a_peer_whose_links_carry_nobody_is_dialled_by_the_backoff)
{
    begin_full(64);
    framed_stage_open(&stage);
    wait_at_full(1, 0);
    fake_run(&stage.world, 10);
    expect_paced(full[0].peer);
    cr_assert(eq(uint, (unsigned)fake_host_stats(fake_host(&stage.world, full_address(0))).failed, 0));
    end_full(1);
}

Test(pool_room, hosts_whose_links_carry_nobody_do_not_fight_for_a_full_pool)
{
    for (unsigned total = 1; total <= 3; total++) {
        begin_full(64);
        stage.world.options.max_links = total;
        framed_stage_open(&stage);
        wait_at_full(HOSTS, 0);
        fake_run(&stage.world, 10);
        for (unsigned i = 0; i < HOSTS; i++)
            cr_assert(le(uint, testing_peer_attempts(full[i].peer), 8));
        end_full(HOSTS);
    }
}

Test(pool_room, a_fresh_lease_does_not_dial_in_a_circle_where_links_carry_nobody)
{
    for (unsigned max_links = 1; max_links <= 3; max_links++) {
        begin_full(max_links);
        framed_stage_open(&stage);
        wait_at_full(1, POOL_FRESH);
        fake_run(&stage.world, 10);
        expect_paced(full[0].peer);
        end_full(1);
    }
}

Test(pool_room, a_fresh_lease_of_a_target_is_tried_for_as_often)
{
    const char *address = full_address(0);

    begin_full(1);
    framed_stage_open(&stage);
    framed_peer_begin(&full[0], fake_peer(&stage.world, address, TESTING_ACCEPT));
    full[0].calls.channels = 0;
    users[0].lease.flags = POOL_FRESH;
    users[0].lease.timeout = 60;
    fake_ask_target(&stage.world, &users[0], fake_target(&stage.world, "t", &pool_pick_first, &address, 1));
    fake_run(&stage.world, 10);
    expect_paced(full[0].peer);
    end_full(1);
}

Test(pool_room, a_protocol_that_refuses_each_channel_is_dialled_by_the_backoff)
{
    struct fake_shared_ways ways = {.refuses = true};
    struct protocol refusing = fake_shared;

    begin_full(64);
    refusing.config = &ways;
    stage.world.host.protocol = &refusing;
    framed_stage_open(&stage);
    struct testing_peer *peer = fake_echo(&stage.world, full_address(0));
    users[0].lease.timeout = 60;
    fake_ask(&stage.world, &users[0], full_address(0));
    fake_run(&stage.world, 10);
    expect_paced(peer);
    end_full(1);
}

Test(pool_room, the_wait_is_over_once_a_link_has_room)
{
    begin_full(64);
    stage.world.backoff = backoff_edge; /* 1, 2, 4, ... s */
    framed_stage_open(&stage);
    wait_at_full(1, 0);
    fake_run(&stage.world, 5);
    unsigned before = testing_peer_attempts(full[0].peer);
    full[0].calls.channels = 1;
    framed_session_limit(full[0].session, 1);
    users[1].lease.timeout = 60;
    fake_ask(&stage.world, &users[1], full_address(0)); /* more than that link has room for */
    fake_run(&stage.world, 0.1);
    cr_assert(eq(int, users[0].status, POOL_READY));
    cr_assert(eq(int, users[1].status, POOL_READY));
    cr_assert(eq(uint, testing_peer_attempts(full[0].peer), before + 1));
    framed_stage_end(&stage);
}

Test(pool_room, links_under_way_as_the_pause_begins_belong_to_it)
{
    begin_full(64);
    framed_stage_open(&stage);
    wait_at_full(1, 0);
    for (unsigned i = 1; i < 5; i++) {
        users[i].lease.timeout = 60;
        fake_ask(&stage.world, &users[i], full_address(0));
    }
    fake_run(&stage.world, 0.1);
    cr_assert(eq(uint, testing_peer_attempts(full[0].peer), 5));
    fake_run(&stage.world, 0.2); /* 0.2 s, a fifth more or less: as of the second alone */
    cr_assert(ge(uint, testing_peer_attempts(full[0].peer), 6));
    end_full(5);
}

Test(pool_room, the_pause_of_a_peer_whose_links_carry_nobody_has_an_upper_bound_for_ever)
{
    begin_full(64);
    framed_stage_open(&stage);
    wait_at_full(1, 0);
    pool_cancel(&users[0].lease);
    users[0].lease.timeout = INFINITY;
    fake_ask(&stage.world, &users[0], full_address(0));
    fake_run(&stage.world, 1500);
    unsigned n = testing_peer_attempts(full[0].peer);
    fake_run(&stage.world, 121);
    cr_assert(ge(uint, testing_peer_attempts(full[0].peer) - n, 9)); /* each 8 to 12 s */
    cr_assert(le(uint, testing_peer_attempts(full[0].peer) - n, 16));
    end_full(1);
}

Test(pool_room, a_policy_that_has_run_out_lets_it_be_dialled_once_a_minute)
{
    begin_full(64);
    stage.world.backoff.max_attempts = 1;
    framed_stage_open(&stage);
    wait_at_full(1, 0);
    pool_cancel(&users[0].lease);
    users[0].lease.timeout = INFINITY;
    fake_ask(&stage.world, &users[0], full_address(0));
    fake_run(&stage.world, 50);
    unsigned n = testing_peer_attempts(full[0].peer);
    cr_assert(le(uint, n, 3));
    fake_run(&stage.world, 70);
    cr_assert(eq(uint, testing_peer_attempts(full[0].peer), n + 1));
    end_full(1);
}

Test(pool_room, a_link_lost_meanwhile_does_not_cut_the_pause_short)
{
    static const double spreads[] = {0.25, 1000}; /* shorter than what is left of it, and longer */

    for (int i = 0; i < 2; i++) {
        begin_full(64);
        stage.world.backoff = backoff_edge; /* 1, 2, 4, ... s; READY is proof at once */
        stage.world.backoff.reconnect_spread = spreads[i];
        framed_stage_open(&stage);
        wait_at_full(1, 0);
        fake_run(&stage.world, 5); /* the next is due after 7 s */
        unsigned n = testing_peer_attempts(full[0].peer);
        testing_peer_cut(full[0].peer, LINK_RESET);
        fake_run(&stage.world, 1);
        cr_assert(eq(uint, testing_peer_attempts(full[0].peer), n));
        end_full(1);
    }
}

/* It had room as it came up. */
Test(pool_room, a_peer_that_takes_nobody_any_more_is_dialled_without_a_pause)
{
    begin(1, 0, 2);
    framed_stage_open(&stage);
    hold(0, 1);
    fake_give_back(&users[0]);
    fake_run(&stage.world, 1);
    framed_session_limit(stage.server.session, 0);
    fake_settle(&stage.world);
    fake_hold(&stage.world, &users[0], framed_address);
    cr_assert(eq(uint, testing_peer_attempts(stage.server.peer), 2));
    fake_give_back(&users[0]);
    framed_stage_end(&stage);
}

Test(pool_room, a_peer_that_says_again_that_it_takes_nobody_is_dialled_as_often)
{
    begin_full(64);
    framed_stage_open(&stage);
    wait_at_full(1, 0);
    for (int i = 0; i < 100; i++) {
        fake_run(&stage.world, 0.1);
        framed_session_limit(full[0].session, 0);
    }
    expect_paced(full[0].peer);
    end_full(1);
}
