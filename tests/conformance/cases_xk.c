/* cases_xk.c - the cases XK: handshakes, and links of several streams. */
#include "tests/conformance/cases.h"

static struct testing_peer *begin_session(struct fake_world *world, const struct protocol *protocol)
{
    cases_begin(world);
    cases_gaps(world, 0.2, 2, 10);
    world->host.protocol = protocol;
    fake_world_open(world);
    return fake_echo(world, A);
}

Test(cases, XK1_one_deadline_over_connect_and_handshake)
{
    struct fake_world world;
    struct fake_user user = {0};

    struct testing_peer *peer = begin_session(&world, &fake_session);
    testing_peer_behave(peer, TESTING_SILENT);
    testing_peer_delay(peer, 2, 0);
    double from = testing_now(world.t);
    fake_ask(&world, &user, A);
    fake_run(&world, 10);
    cr_assert(eq(int, user.status, LINKPOOL_EUNAVAILABLE));
    cr_assert(epsilon_eq(dbl, user.told_at - from, 3, 1e-3));
    cr_assert(eq(uint, testing_open_descriptors(world.t), 0));
    fake_world_end(&world);
}

Test(cases, XK2_a_link_in_its_handshake_is_nobodys)
{
    struct fake_world world;
    struct fake_user users[3] = {0};

    testing_peer_delay(begin_session(&world, &fake_session), 0.1, 0.2);
    cases_ask(&world, users, 3, A);
    for (int i = 0; i < 29; i++) {
        fake_run(&world, 0.01);
        cr_assert(eq(uint, fake_stats(&world).leased, 0));
    }
    cr_assert(eq(uint, fake_host_stats(fake_host(&world, A)).links[LINK_HANDSHAKING], 3));
    fake_run(&world, 0.1);
    cr_assert(eq(uint, cases_count(users, 3, POOL_READY), 3));
    fake_world_end(&world);
}

Test(cases, XK3_an_end_of_file_in_the_handshake_has_no_errno_and_a_reason)
{
    struct fake_world world;
    struct fake_user user = {0};
    char text[300];

    struct testing_peer *peer = begin_session(&world, &cases_greeted);
    testing_peer_behave(peer, TESTING_ACCEPT_AND_CLOSE);
    fake_ask(&world, &user, A);
    fake_settle(&world);
    cr_assert(eq(int, user.status, LINKPOOL_EUNAVAILABLE));
    cr_assert(eq(int, user.lease.reason, LINK_CLOSED_BY_PEER));
    cr_assert(eq(int, user.lease.system_errno, 0));
    cr_assert(lt(int, 0, pool_explain(&user.lease, text, sizeof text)));
    fake_world_end(&world);
}

Test(cases, XK4_an_end_that_comes_with_the_last_word_of_the_handshake_is_seen)
{
    for (int waits = 0; waits < 2; waits++) {
        struct fake_world world;
        struct fake_user user = {0};
        char byte;
        struct testing_peer *peer = begin_session(&world, &fake_session);
        testing_peer_cut_after(peer, 1, LINK_CLOSED_BY_PEER); /* H, and the end right behind it */
        if (waits)
            fake_ask(&world, &user, A);
        else
            pool_host_start(pool_host(world.pool, A));
        fake_run(&world, 0.1);
        cr_assert(eq(uint, cases_seen(LINK_READY), 1));
        if (waits) { /* it has it: the end is its to read */
            cr_assert(eq(int, user.status, POOL_READY));
            cr_assert(eq(long, channel_read(user.lease.channel, &byte, 1), 0));
            pool_release(&user.lease, POOL_DISCARD);
        }
        cr_assert(eq(uint, testing_open_descriptors(world.t), 0));
        cr_assert(eq(int, fake_host_stats(fake_host(&world, A)).last_reason, LINK_CLOSED_BY_PEER));
        fake_world_end(&world);
    }
}

Test(cases, XK10_a_peer_that_turns_us_away_after_ready_is_left_alone_for_a_backoff)
{
    struct fake_world world;

    cases_begin(&world);
    cases_gaps(&world, 0.2, 2, 10);
    world.backoff.stable_after = 10;
    world.host.protocol = &cases_shared;
    world.host.min_links = 1;
    fake_world_open(&world);
    struct testing_peer *peer = fake_peer(&world, A, TESTING_ACCEPT);
    testing_peer_greet(peer, "\0B\0", 4); /* "enhance your calm" */
    pool_host(world.pool, A);
    fake_run(&world, 50);
    cr_assert(ge(uint, testing_peer_attempts(peer), 7));
    cr_assert(le(uint, testing_peer_attempts(peer), 12));
    cr_assert(eq(int, fake_host_stats(fake_host(&world, A)).last_reason, LINK_HANDSHAKE_FAILED));
    fake_world_end(&world);
}

Test(cases, XK11_a_link_that_was_told_to_go_takes_no_new_streams)
{
    struct fake_world world;
    struct fake_user old[3] = {0}, next[3] = {0};

    struct testing_peer *peer = begin_session(&world, &cases_shared);
    cases_ask(&world, old, 3, A);
    fake_settle(&world);
    uint64_t gone = cases_link_id(&old[0]);
    cases_say(peer, 'G', 255);
    fake_settle(&world);
    cases_ask(&world, next, 3, A);
    fake_settle(&world);
    for (int i = 0; i < 3; i++) {
        cr_assert(ne(u64, cases_link_id(&next[i]), gone));
        cr_assert(eq(int, channel_send(old[i].lease.channel, "q", 1), 0));
        fake_settle(&world);
        cr_assert(eq(u64, old[i].lease.bytes_received, 1));
        fake_give_back(&old[i]);
    }
    fake_settle(&world);
    cr_assert(eq(uint, testing_peer_open(peer), 1));
    fake_world_end(&world);
}

Test(cases, XK12_a_limit_that_falls_below_use_lets_on_nobody_more)
{
    struct fake_world world;
    struct fake_user users[3] = {0}, late = {0};

    cases_begin(&world);
    world.host.protocol = &cases_shared;
    world.host.max_links = 1;
    fake_world_open(&world);
    struct testing_peer *peer = fake_echo(&world, A);
    cases_ask(&world, users, 3, A);
    fake_settle(&world);
    cases_say(peer, 'N', 1);
    fake_settle(&world);
    fake_ask(&world, &late, A);
    for (int i = 0; i < 3; i++) {
        fake_settle(&world);
        cr_assert(eq(int, late.status, POOL_PENDING));
        cr_assert(eq(uint, users[i].closed, 0));
        fake_give_back(&users[i]);
    }
    fake_settle(&world);
    cr_assert(eq(int, late.status, POOL_READY));
    fake_world_end(&world);
}

Test(cases, XK13_of_a_thousand_uses_all_but_the_first_are_of_a_used_link)
{
    struct fake_world world;

    cases_peer(&world, 4);
    for (int i = 0; i < 1000; i++)
        cases_use(&world, A);
    cr_assert(eq(u64, fake_stats(&world).reused, 999));
    fake_world_end(&world);
}

Test(cases, XK14_a_link_whose_uses_are_up_retires_itself)
{
    struct fake_world world;
    struct fake_user users[5] = {0};

    cases_begin(&world);
    world.host.protocol = &cases_shared;
    world.host.max_uses = 2;
    fake_world_open(&world);
    struct testing_peer *peer = fake_echo(&world, A);
    cases_ask(&world, users, 5, A); /* at once: five on three links */
    fake_run(&world, 1);
    cr_assert(eq(uint, cases_count(users, 5, POOL_READY), 5));
    cr_assert(eq(uint, testing_peer_accepted(peer), 3));
    for (int i = 0; i < 5; i++)
        fake_give_back(&users[i]);
    fake_settle(&world);
    cr_assert(eq(uint, testing_peer_open(peer), 1)); /* the one that has a use left */
    fake_world_end(&world);
}
