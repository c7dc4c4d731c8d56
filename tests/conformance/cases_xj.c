/* cases_xj.c - the cases XJ to XM: descriptors and processes, handshakes and streams, memory, balance. */
#include "tests/conformance/cases.h"

#include <ev.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

Test(cases, XJ2_at_the_limit_an_idle_link_elsewhere_gives_its_descriptor)
{
    struct fake_world world;
    struct fake_user user = {0};

    cases_peer(&world, 4);
    fake_echo(&world, B);
    cases_use(&world, A);
    fake_hold(&world, &user, A);
    fake_give_back(&user);
    testing_limit_descriptors(world.t, 1);
    cases_use(&world, B);
    cr_assert(eq(u64, fake_stats(&world).ends[LINK_MADE_ROOM], 1));
    cr_assert(eq(uint, testing_open_descriptors(world.t), 1));
    fake_world_end(&world);
}

/* There is no option to close abruptly: what is used again leaves nothing to wait for. */
Test(cases, XJ3_fifty_thousand_uses_of_one_address_take_one_port)
{
    struct fake_world world;
    struct testing_peer *peer = cases_peer(&world, 4);

    for (int i = 0; i < 50000; i++)
        cases_use(&world, A);
    cr_assert(eq(uint, testing_peer_accepted(peer), 1));
    fake_world_end(&world);
}

/* ---- on the real loop ---- */

static void ignore(struct pool_lease *lease)
{
    (void)lease;
}

struct real {
    struct ev_loop *loop;
    struct testing_peer *peer;
    struct pool *pool;
    struct pool_lease lease;
};

static void begin_real(struct real *real)
{
    *real = (struct real){.loop = ev_loop_new(EVFLAG_AUTO | EVFLAG_FORKCHECK), .lease = {.done = ignore}};
    real->peer = testing_peer_on_loop(real->loop, "127.0.0.1:0", TESTING_ACCEPT);
    real->pool = pool_new(real->loop, NULL);
    testing_peer_serve(real->peer, testing_echo, NULL);
    cr_assert(ge(int, pool_acquire(real->pool, testing_peer_address(real->peer), &real->lease), POOL_READY));
    while (!real->lease.channel)
        ev_run(real->loop, EVRUN_ONCE);
}

static void end_real(struct real *real)
{
    pool_free(real->pool);
    testing_peer_free(real->peer);
    ev_loop_destroy(real->loop);
}

Test(cases, XJ5_writing_to_a_peer_that_reset_raises_no_signal)
{
    struct iovec part = {"q", 1};
    struct real real;
    ssize_t sent = 1;

    begin_real(&real);
    signal(SIGPIPE, SIG_DFL);
    while (!testing_peer_open(real.peer))
        ev_run(real.loop, EVRUN_ONCE);
    testing_peer_cut(real.peer, LINK_RESET);
    for (int i = 0; i < 1000 && sent > 0; i++)
        sent = channel_writev(real.lease.channel, &part, 1);
    cr_assert(eq(long, sent, LINKPOOL_ELOST)); /* and the process is there */
    pool_release(&real.lease, POOL_DISCARD);
    end_real(&real);
}

static int child(struct real *real)
{
    pool_after_fork(real->pool);
    bool is_over = real->lease.status == LINKPOOL_ECLOSED && !real->lease.channel;
    pool_free(real->pool);
    return is_over ? 0 : 1;
}

Test(cases, XJ6_a_childs_end_of_the_pool_puts_no_byte_on_the_parents_links)
{
    struct iovec part = {"q", 1};
    struct real real;
    char answer = 0;
    int status = -1;

    begin_real(&real);
    pid_t pid = fork();
    if (pid == 0)
        _exit(child(&real));
    cr_assert(eq(int, waitpid(pid, &status, 0), pid));
    cr_assert(eq(int, status, 0));
    cr_assert(eq(long, channel_writev(real.lease.channel, &part, 1), 1));
    while (channel_read(real.lease.channel, &answer, 1) != 1)
        ev_run(real.loop, EVRUN_ONCE);
    cr_assert(eq(chr, answer, 'q'));
    cr_assert(eq(u64, testing_peer_bytes(real.peer), 1)); /* the parent's, and no other */
    pool_release(&real.lease, POOL_REUSE);
    end_real(&real);
}

/* A use by one who asks again where he is told to. */
static bool use_patiently(struct fake_world *world, const char *text)
{
    struct iovec part = {"x", 1};
    struct fake_user user = {0};
    ssize_t n;
    char byte;

    fake_ask(world, &user, text);
    fake_run(world, 4);
    if (user.status != POOL_READY)
        return false;
    while ((n = channel_writev(user.lease.channel, &part, 1)) == LINKPOOL_EAGAIN)
        fake_settle(world);
    fake_settle(world);
    while (n == 1 && (n = channel_read(user.lease.channel, &byte, 1)) == LINKPOOL_EAGAIN)
        n = 1;
    pool_release(&user.lease, POOL_REUSE);
    return n == 1;
}

Test(cases, XJ7_interrupted_and_failing_calls_are_met)
{
    static const struct {
        enum testing_call call;
        int error;
        bool goes_on;
    } faults[] = {{TESTING_CONNECT, ECONNABORTED, false}, {TESTING_SOCKET, ENFILE, false},
        {TESTING_RECVMSG, EINTR, true}, {TESTING_SENDMSG, EINTR, true}, {TESTING_CLOSE, EINTR, true},
        {TESTING_SOCKET, ENOBUFS, false}};

    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct fake_world world;
        cases_peer(&world, 2);
        testing_fail_call(world.t, faults[i].call, 1, faults[i].error, false);
        cr_assert(eq(int, use_patiently(&world, A), faults[i].goes_on), "fault %zu", i);
        fake_run(&world, 11);
        cr_assert(use_patiently(&world, A)); /* and in any case it recovers */
        fake_world_end(&world);
    }
}

/* ---- handshakes ---- */

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
    cr_assert(gt(int, pool_explain(&user.lease, text, sizeof text), 0));
    fake_world_end(&world);
}

Test(cases, XK4_an_end_that_comes_with_the_last_word_of_the_handshake_is_seen)
{
    struct fake_world world;
    struct fake_user user = {0};

    struct testing_peer *peer = begin_session(&world, &fake_session);
    testing_peer_cut_after(peer, 1, LINK_CLOSED_BY_PEER); /* H, and the end right behind it */
    fake_ask(&world, &user, A);
    fake_run(&world, 0.1);
    if (user.status == POOL_READY) { /* told before the end came: it is the holder's to read */
        char byte;
        cr_assert(eq(long, channel_read(user.lease.channel, &byte, 1), 0));
        pool_release(&user.lease, POOL_DISCARD);
    }
    fake_run(&world, 0.05);
    cr_assert(eq(uint, fake_stats(&world).idle, 0));
    cr_assert(eq(uint, testing_open_descriptors(world.t), 0));
    fake_world_end(&world);
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
