/* cases_xa.c - the cases XA and XB: stale links, leftovers and mixed-up replies; the wrong link. */
#include "tests/conformance/cases.h"

/* The next holder has a link that no one has used, and its own answer. */
static void expect_a_clean_one(struct fake_world *world)
{
    struct fake_user next = {0};

    fake_hold(world, &next, A);
    cr_assert(not(next.lease.reused));
    fake_send(&next, "n");
    fake_run(world, 1);
    cr_assert(eq(chr, cases_read(&next), 'n'));
    fake_give_back(&next);
}

Test(cases, XA1_a_reply_that_is_due_reaches_no_one_else)
{
    struct fake_world world;
    struct fake_user user = {0};

    testing_peer_delay(cases_peer(&world, 1), 0, 0.1);
    fake_hold(&world, &user, A);
    fake_send(&user, "a");
    fake_give_back(&user); /* as one who was cancelled between write and read */
    expect_a_clean_one(&world);
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_UNEXPECTED_DATA], 1));
    fake_world_end(&world);
}

Test(cases, XA2_after_a_read_timeout_the_link_is_not_healthy)
{
    struct fake_world world;
    struct fake_user user = {0};
    char byte;

    testing_peer_delay(cases_peer(&world, 1), 0, 0.2);
    fake_hold(&world, &user, A);
    fake_send(&user, "a");
    fake_run(&world, 0.1);
    cr_assert(eq(long, channel_read(user.lease.channel, &byte, 1), LINKPOOL_EAGAIN));
    fake_give_back(&user);
    fake_settle(&world);
    cr_assert(eq(uint, fake_stats(&world).idle, 0));
    expect_a_clean_one(&world);
    fake_world_end(&world);
}

Test(cases, XA3_a_pipeline_that_was_not_read_to_its_end_ends_the_link)
{
    for (size_t n_read = 0; n_read < 3; n_read++) {
        struct fake_world world;
        struct fake_user user = {0};
        testing_peer_drip(cases_peer(&world, 1), 1, 0.1); /* one answer each 0.1 s */
        fake_hold(&world, &user, A);
        fake_send(&user, "123");
        for (size_t i = 0; i < n_read; i++) {
            fake_run(&world, 0.1);
            cr_assert(eq(chr, cases_read(&user), '1' + (int)i));
        }
        fake_give_back(&user);
        expect_a_clean_one(&world);
        fake_world_end(&world);
    }
}

Test(cases, XA4_half_a_reply_unread_makes_it_unclean)
{
    struct fake_world world;
    struct fake_user user = {0};

    cases_peer(&world, 1);
    fake_hold(&world, &user, A);
    fake_send(&user, "ab");
    fake_settle(&world);
    cr_assert(eq(chr, cases_read(&user), 'a'));
    fake_give_back(&user);
    expect_a_clean_one(&world);
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_UNEXPECTED_DATA], 1));
    fake_world_end(&world);
}

static unsigned readable;

static void on_readable(struct channel *channel)
{
    char byte;

    readable += channel_read(channel, &byte, 1) == 1;
}

Test(cases, XA6_the_next_holder_reads_though_the_last_had_paused)
{
    static const struct channel_events events = {.readable = on_readable};

    for (int dies = 0; dies < 2; dies++) {
        struct fake_world world;
        struct fake_user first = {0}, second = {0};
        struct testing_peer *peer = cases_peer(&world, 1);
        readable = 0;
        fake_hold(&world, &first, A);
        channel_watch(first.lease.channel, &events, LINKPOOL_READ);
        channel_want(first.lease.channel, 0);
        fake_send(&first, "a");
        fake_settle(&world); /* the answer is there, and reading is paused for it */
        cr_assert(eq(uint, readable, 0));
        cr_assert(eq(chr, cases_read(&first), 'a'));
        fake_give_back(&first);
        if (dies) { /* what comes to nobody is read as well */
            testing_peer_cut(peer, LINK_CLOSED_BY_PEER);
            fake_settle(&world);
            cr_assert(eq(uint, fake_stats(&world).links, 0));
        }
        fake_hold(&world, &second, A);
        cr_assert(eq(int, second.lease.reused, !dies));
        channel_watch(second.lease.channel, &events, LINKPOOL_READ);
        fake_send(&second, "b");
        fake_settle(&world);
        cr_assert(eq(uint, readable, 1));
        fake_world_end(&world);
    }
}

Test(cases, XA7_counters_of_bytes_begin_at_none)
{
    struct fake_world world;
    struct fake_user user = {0};

    cases_peer(&world, 1);
    for (int i = 0; i < 3; i++) {
        fake_hold(&world, &user, A);
        cr_assert(eq(u64, user.lease.bytes_sent, 0));
        cr_assert(eq(u64, user.lease.bytes_received, 0));
        fake_exchange(&world, &user);
        cr_assert(eq(u64, user.lease.bytes_sent, 1));
        cr_assert(eq(u64, user.lease.bytes_received, 1));
        fake_give_back(&user);
    }
    cr_assert(eq(u64, fake_host_stats(fake_host(&world, A)).bytes_sent, 3)); /* the host's go on */
    cr_assert(eq(u64, fake_host_stats(fake_host(&world, A)).bytes_received, 3));
    fake_world_end(&world);
}

Test(cases, XA10_a_stray_byte_behind_the_reply_ends_the_link)
{
    for (int early = 0; early < 2; early++) {
        struct fake_world world;
        struct fake_user user = {0};
        struct testing_peer *peer = cases_peer(&world, 1);
        fake_hold(&world, &user, A);
        fake_send(&user, "a");
        fake_settle(&world);
        if (early)
            testing_peer_say(peer, "!", 1);
        fake_settle(&world);
        cr_assert(eq(chr, cases_read(&user), 'a'));
        if (!early)
            testing_peer_say(peer, "!", 1); /* it comes with the next poll */
        fake_give_back(&user);
        if (!early)
            fake_settle(&world);
        expect_a_clean_one(&world);
        fake_world_end(&world);
    }
}

/* So many idle links. */
static void warm_up(struct fake_world *world, size_t n)
{
    struct fake_user users[16] = {0};

    cases_ask(world, users, n, A);
    fake_settle(world);
    for (size_t i = 0; i < n; i++)
        fake_exchange(world, &users[i]);
    for (size_t i = 0; i < n; i++)
        fake_give_back(&users[i]);
    cr_assert(eq(uint, fake_stats(world).idle, n));
}

Test(cases, XA11_five_links_closed_at_once_cost_no_tries)
{
    for (int settled = 0; settled < 2; settled++) {
        struct fake_world world;
        struct testing_peer *peer = cases_peer(&world, 5);
        warm_up(&world, 5);
        testing_peer_cut(peer, LINK_CLOSED_BY_PEER);
        if (settled)
            fake_settle(&world);
        else
            fake_turn(&world);
        cases_use(&world, A); /* the first try */
        cr_assert(eq(uint, testing_peer_accepted(peer), 6));
        fake_world_end(&world);
    }
}

Test(cases, XA13_a_link_closed_while_idle_is_gone_within_the_turn)
{
    struct fake_world world;
    struct testing_peer *peer = cases_peer(&world, 1);

    warm_up(&world, 1);
    fake_run(&world, 30);
    testing_peer_cut(peer, LINK_CLOSED_BY_PEER);
    fake_turn(&world);
    cr_assert(eq(uint, testing_open_descriptors(world.t), 0));
    cr_assert(eq(uint, fake_stats(&world).links, 0));
    fake_world_end(&world);
}

Test(cases, XA15_a_death_is_met_as_end_as_reset_and_at_the_write)
{
    for (int how = 0; how < 3; how++) {
        struct fake_world world;
        struct fake_user user = {0};
        struct testing_peer *peer = cases_peer(&world, 1);
        warm_up(&world, 1);
        if (how == 2)
            fake_hold(&world, &user, A);
        testing_peer_cut(peer, how == 1 ? LINK_RESET : LINK_CLOSED_BY_PEER);
        fake_settle(&world);
        if (how == 2) { /* the end of file was not read: the first bytes go, and are answered by a reset */
            fake_send(&user, "q");
            fake_settle(&world);
            cr_assert(eq(long, channel_writev(user.lease.channel, &(struct iovec){"q", 1}, 1), LINKPOOL_ELOST));
            pool_release(&user.lease, POOL_REUSE);
        }
        cases_use(&world, A);
        cr_assert(eq(uint, testing_peer_accepted(peer), 2));
        fake_world_end(&world);
    }
}

Test(cases, XA17_after_a_restart_the_first_use_has_a_live_link)
{
    struct fake_world world;
    struct testing_peer *peer = cases_peer(&world, 16);

    warm_up(&world, 16);
    testing_peer_behave(peer, TESTING_REFUSE);
    testing_peer_cut(peer, LINK_RESET);
    fake_run(&world, 0.1);
    testing_peer_behave(peer, TESTING_ACCEPT);
    cases_use(&world, A);
    fake_world_end(&world);
}

static void close_all(void *peer)
{
    testing_peer_cut(peer, LINK_CLOSED_BY_PEER);
}

static struct fake_world *the_world;

static void ask_and_send(void *user)
{
    struct fake_user *one = user;

    if (fake_ask(the_world, one, A) == POOL_READY)
        fake_send(one, "q");
}

Test(cases, XA19_a_close_that_crosses_the_request_says_that_it_may_be_repeated)
{
    struct fake_world world;
    struct fake_user user = {0};
    struct testing_peer *peer = cases_peer(&world, 1);
    char byte;

    the_world = &world;
    warm_up(&world, 1);
    double when = testing_now(world.t) + 10;
    testing_at(world.t, when, ask_and_send, &user); /* and then the close, which it cannot have seen */
    testing_at(world.t, when, close_all, peer);
    fake_run(&world, 11);
    cr_assert(eq(int, user.status, POOL_READY));
    cr_assert(le(long, channel_read(user.lease.channel, &byte, 1), 0));
    pool_release(&user.lease, POOL_DISCARD);
    cr_assert(user.lease.reused);
    cr_assert(eq(u64, user.lease.bytes_received, 0));
    cr_assert(eq(int, user.lease.fate, POOL_SENT_NO_ANSWER)); /* the kernel had taken it */
    fake_world_end(&world);
}

Test(cases, XA20_an_idle_timeout_learnt_from_the_server_closes_before_it_does)
{
    struct fake_world world;
    struct testing_peer *peer = cases_peer(&world, 1);

    cases_use(&world, A);
    testing_at(world.t, testing_now(world.t) + 5, close_all, peer); /* "Keep-Alive: timeout=5" */
    world.host.idle_timeout = 5 - 1;
    cr_assert(eq(int, pool_host_set_options(fake_host(&world, A), &world.host), 0));
    fake_run(&world, 6);
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_IDLE_TIMEOUT], 1));
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_CLOSED_BY_PEER], 0));
    fake_world_end(&world);
}

/* ---- the key ---- */

Test(cases, XB1_two_unix_paths_are_two_hosts)
{
    static const char *const paths[] = {"unix:/run/service/one.sock", "unix:/run/service/two.sock", "unix:@service",
        "unix:@service2", "unix:/run/service/one.sock2"};
    struct testing_peer *peers[5];
    struct fake_world world;

    cases_open(&world);
    for (int i = 0; i < 5; i++)
        peers[i] = fake_echo(&world, paths[i]);
    for (int i = 0; i < 5; i++)
        cases_use(&world, paths[i]);
    for (int i = 0; i < 5; i++)
        cr_assert(eq(u64, testing_peer_bytes(peers[i]), 1), "%s", paths[i]);
    cr_assert(eq(uint, fake_stats(&world).hosts, 5));
    fake_world_end(&world);
}

Test(cases, XB2_the_same_lease_at_another_address_has_another_link)
{
    struct fake_world world;
    struct fake_user user = {0};
    char text[] = A; /* the caller's own text, rewritten between two uses */

    struct testing_peer *a = cases_peer(&world, 1), *b = fake_echo(&world, B);
    for (int i = 0; i < 4; i++) {
        strcpy(text, i % 2 ? B : A);
        fake_hold(&world, &user, text);
        strcpy(text, "?");
        fake_exchange(&world, &user);
        cr_assert(eq(str, (char *)pool_host_address(user.lease.host), i % 2 ? B : A));
        fake_give_back(&user);
    }
    cr_assert(eq(u64, testing_peer_bytes(a), 2));
    cr_assert(eq(u64, testing_peer_bytes(b), 2));
    fake_world_end(&world);
}

Test(cases, XB8_spellings_of_one_address_are_one_host_and_others_are_not)
{
    static const char *const same[] = {"[::1]:80", "[0:0:0:0:0:0:0:1]:80", "[0000::0001]:80", "[::0.0.0.1]:80"};
    static const char *const others[] = {"[::1]:81", "[::2]:80", "127.0.0.1:80", "[::ffff:127.0.0.1]:80"};
    static const char *const refused[] = {"A.example:080", "10.0.0.1.:80", "10.0.0.1:080", "[::1]:080", "[::1.]:80"};
    struct fake_world world;

    cases_open(&world);
    struct pool_host *host = pool_host(world.pool, same[0]);
    for (int i = 1; i < 4; i++)
        cr_assert(eq(ptr, pool_host(world.pool, same[i]), host), "%s", same[i]);
    for (int i = 0; i < 4; i++)
        cr_assert(ne(ptr, pool_host(world.pool, others[i]), host), "%s", others[i]);
    for (int i = 0; i < 5; i++)
        cr_assert(eq(ptr, pool_host(world.pool, refused[i]), NULL), "%s", refused[i]);
    fake_world_end(&world);
}

Test(cases, XB9_ids_of_links_never_repeat)
{
    struct fake_world world;
    struct fake_user user = {0};
    uint64_t last = 0;

    cases_peer(&world, 1);
    for (int i = 0; i < 1000; i++) {
        fake_hold(&world, &user, A);
        cr_assert(lt(u64, last, cases_link_id(&user)));
        last = cases_link_id(&user);
        pool_release(&user.lease, POOL_DISCARD);
    }
    fake_world_end(&world);
}
